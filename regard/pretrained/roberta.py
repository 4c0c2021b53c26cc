"""RoBERTa and XLM-RoBERTa: BERT whose positions begin after the number of the padding token.

Liu et al., 2019, https://arxiv.org/abs/1907.11692; Conneau et al., 2020,
https://arxiv.org/abs/1911.02116
"""

from dataclasses import replace

from regard.models.pretrained.architecture import EncoderArchitecture
from regard.pretrained.bert import bert_architecture, bert_blocks, bert_embeddings, token_head
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.families import Family, Sources, linear

FIRST_POSITION = 2
"""The position of the first token: the number of the padding token, which is 1, and one more."""


def _architecture(checkpoint: Checkpoint) -> EncoderArchitecture:
    checkpoint.config.refuse("pad_token_id", FIRST_POSITION - 1)
    architecture = bert_architecture(checkpoint)
    return replace(architecture, positions=architecture.positions - FIRST_POSITION)


def _encoder(architecture: EncoderArchitecture) -> Sources:
    return {**bert_embeddings(first_position=FIRST_POSITION), **bert_blocks(architecture)}


def _text_head() -> Sources:
    return {
        **linear("dense", "classifier.dense", optional=True),
        **linear("decision", "classifier.out_proj"),
    }


FAMILY = Family(
    "roberta",
    "roberta.",
    _architecture,
    _encoder,
    _text_head,
    token_head,
    tasks={"RobertaForSequenceClassification": "classify", "RobertaForTokenClassification": "tag"},
    headless=("RobertaModel", "RobertaForMaskedLM"),
)
XLM_FAMILY = replace(
    FAMILY,
    name="xlm-roberta",
    tasks={
        "XLMRobertaForSequenceClassification": "classify",
        "XLMRobertaForTokenClassification": "tag",
    },
    headless=("XLMRobertaModel", "XLMRobertaForMaskedLM"),
)
