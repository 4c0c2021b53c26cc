"""What of a tagger is explained: the tag of each word."""

import numpy as np
import torch
from torch import Tensor

from regard.data.tokenizers.tokenizer import UNK
from regard.errors import RegardError
from regard.models import Tagger
from regard.tasks.shared.attention_flow import flow_within
from regard.tasks.shared.attention_modules import attention_modules
from regard.tasks.shared.explain_target import ExplainTarget, Reading, erase_tokens
from regard.tasks.shared.trace_sides import text_side, word_spans
from regard.tasks.tagging.task import MAX_WORDS, Tagging

SMALLEST = 1e-30
"""The smallest probability whose logarithm is taken."""


def explain_tags(
    task: Tagging, network: Tagger, text: str, erase: str | None, every: bool
) -> ExplainTarget | None:
    """The tag of each word; a tagger needs a word for every tag, so that words become unknown."""
    if erase == "delete":
        raise RegardError("a tagger needs a word for every tag: use --erase unknown, not delete")
    spans = word_spans(text)[:MAX_WORDS]
    words = [text[start:end] for start, end in spans]
    if not words:
        return None
    ids, lengths, characters = task.inputs([words])

    def read(kept: Tensor, positions: Tensor, need_weights: bool) -> Reading:
        size, rows = len(kept), torch.arange(len(kept))
        unknown = torch.zeros_like(characters[0])
        unknown[:, 0] = UNK
        letters = torch.where(kept[:, :, None], characters, unknown)
        all_lengths = lengths.expand(size)
        versions = erase_tokens(ids[0], kept, "unknown")[0]
        output = network(versions, all_lengths, letters, need_weights=need_weights)
        if network.crf is None:
            return Reading(output.logits[rows, positions].log_softmax(-1), output.weights)
        marginals = network.crf.marginals(output.logits, all_lengths)[rows, positions]
        return Reading(marginals.clamp(min=SMALLEST).log(), output.weights)

    logits = network(ids, lengths, characters).logits
    best = network.decode(logits, lengths)[0]
    inputs = (network.inputs.words, network.characters, network.ngrams)
    return ExplainTarget(
        network=network,
        input_layers=tuple(layer for layer in inputs if layer is not None),  # type: ignore[misc]
        output_attention=attention_modules(network),
        read=read,
        side_name="text",
        side=text_side(text, spans),
        positions=tuple(range(len(words))),
        chosen=tuple(best),
        names=tuple(task.labels.names[tag] for tag in best),
        visible=np.ones((len(words), len(words)), dtype=bool),
        units=np.arange(len(words)),
        flow=flow_within,
        erase="unknown",
    )
