"""What of a tagger is explained: the tag of each word."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from regard.data.tokenizers.tokenizer import UNK
from regard.devices import to_device
from regard.errors import RegardError
from regard.models.output import Weights
from regard.tasks.shared.attention_flow import (
    AttentionFlow,
    Flow,
    flow_of_tokens,
    flow_within,
)
from regard.tasks.shared.attention_modules import attention_modules
from regard.tasks.shared.explain_target import ExplainTarget, Reading, erase_tokens
from regard.tasks.shared.trace_sides import text_side, word_spans
from regard.tasks.tagging.task import AnyTagger, Tagging

SMALLEST = 1e-30
"""The smallest probability whose logarithm is taken."""


def explain_tags(
    task: Tagging, network: AnyTagger, text: str, erase: str | None, every: bool
) -> ExplainTarget | None:
    """The tag of each word; a tagger needs a word for every tag, so that words become unknown."""
    if erase == "delete":
        raise RegardError("a tagger needs a word for every tag: use --erase unknown, not delete")
    spans = word_spans(text)
    words = [text[start:end] for start, end in spans]
    if not words:
        return None
    words = task.split(words)[0]
    spans = spans[: len(words)]
    ids, lengths, characters = to_device(task.inputs([words]), network)

    def read(kept: Tensor, positions: Tensor, need_weights: bool) -> Reading:
        size, rows = len(kept), torch.arange(len(kept), device=kept.device)
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
        side_name="text" if task.pretrained is None else "words",
        side=text_side(text, spans),
        positions=tuple(range(len(words))),
        chosen=tuple(best),
        names=tuple(task.labels.names[tag] for tag in best),
        visible=np.ones((len(words), len(words)), dtype=bool),
        units=np.arange(len(words)),
        flow=flow_within if task.pretrained is None else _flow_between_words(characters[0] != 0),
        erase="unknown",
    )


def _flow_between_words(real: Tensor) -> Flow:
    """Attention between words from that between tokens: from the first token of a word, to all
    tokens of another.

    Args:
        real: where a word has tokens [t, p].
    """
    counts = real.sum(1)
    starts = (counts.cumsum(0) - counts).tolist()
    words = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
    joined = torch.nn.functional.one_hot(words, len(counts))

    def flow(weights: Weights, positions: Sequence[int], tokens: int) -> AttentionFlow:
        between = flow_within(weights, [starts[position] + 1 for position in positions], tokens)
        direct, rolled_out = flow_of_tokens(between, len(words))
        return AttentionFlow(
            None if direct is None else direct @ joined.to(direct),
            None if rolled_out is None else rolled_out @ joined.to(rolled_out),
        )

    return flow
