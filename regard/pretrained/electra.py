"""ELECTRA: BERT with word vectors of their own size. Clark et al., 2020,
https://arxiv.org/abs/2003.10555"""

from dataclasses import replace

from regard.models.pretrained.architecture import EncoderArchitecture
from regard.pretrained.bert import bert_architecture, bert_blocks, bert_embeddings, token_head
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.families import Family, Sources, linear


def _architecture(checkpoint: Checkpoint) -> EncoderArchitecture:
    return replace(bert_architecture(checkpoint), dense="gelu")


def _encoder(architecture: EncoderArchitecture) -> Sources:
    projected = architecture.word_size != architecture.width
    return {
        **bert_embeddings(),
        **(linear("inputs.project", "embeddings_project") if projected else {}),
        **bert_blocks(architecture),
    }


def _text_head() -> Sources:
    return {
        **linear("dense", "classifier.dense", optional=True),
        **linear("decision", "classifier.out_proj"),
    }


FAMILY = Family(
    "electra",
    "electra.",
    _architecture,
    _encoder,
    _text_head,
    token_head,
    tasks={"ElectraForSequenceClassification": "classify", "ElectraForTokenClassification": "tag"},
    headless=("ElectraModel", "ElectraForPreTraining", "ElectraForMaskedLM"),
)
