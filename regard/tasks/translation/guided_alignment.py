"""Guided alignment: attention is trained on given word alignments.

Chen et al., 2016, Guided Alignment Training for Topic-Aware Neural Machine Translation,
https://arxiv.org/abs/1607.01628; a single head of a transformer: Garg et al., 2019, Jointly
Learning to Align and Translate with Transformer Models, https://arxiv.org/abs/1909.02074.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data import AlignedPair, Pair, Summary, resolve
from regard.data.readers.lines import lines
from regard.data.tokenizers.tokenizer import Encoded
from regard.errors import OptionError, RegardError
from regard.metrics.alignment import Link, parse_weighted_pharaoh
from regard.models import TranslatorConfig
from regard.models.pretrained.architecture import TranslatorArchitecture
from regard.tasks.shared.word_attention import AttentionPlace, tokens_of_words

WEIGHT_UNIT = 10_000
"""Weights are stored as integers, in these parts."""


class AttentionToGuide(NamedTuple):
    """How many layers and heads attend to the source, and which row is guided."""

    layers: int
    heads: int
    shift: int


def attention_to_guide(model: TranslatorConfig | TranslatorArchitecture) -> AttentionToGuide:
    """The attention to the source that a model has.

    A recurrent decoder predicts a word from what it attends to, so that the row that predicts it
    is guided. The head of a transformer is guided in the row that has just read the word, where
    the word itself is known (Chen et al., 2020, https://arxiv.org/abs/2004.14837).
    """
    if isinstance(model, TranslatorArchitecture):
        return AttentionToGuide(model.decoder_layers, model.decoder_heads, 1)
    if (model.decoder or model.model) != "recurrent":
        return AttentionToGuide(model.decoder_layers or model.layers or 3, model.heads, 1)
    if model.attention == "none":
        raise OptionError("alignments", "a model without attention cannot be guided")
    return AttentionToGuide(1, 1, 0)


def guided_place(candidates: AttentionToGuide, layer: int | None, head: int) -> AttentionPlace:
    """The attention that is guided: by default in the layer before the last."""
    layers, heads, shift = candidates
    chosen = max(0, layers - 2) if layer is None else layer
    for name, value, count in (("align_layer", chosen, layers), ("align_head", head, heads)):
        if not 0 <= value < count:
            raise OptionError(name, f"expected 0 to {count - 1}, got {value}")
    return AttentionPlace(chosen, head, shift)


def guided_alignment_loss(
    weights: Float[Tensor, "b t k"], targets: Float[Tensor, "b t k"]
) -> Float[Tensor, ""]:
    """-Σₖ gₜₖ log aₜₖ, the mean over those rows t that have a target."""
    rows = (targets.sum(-1) > 0).sum().clamp(min=1)
    return -(targets * weights.clamp(min=torch.finfo(weights.dtype).tiny).log()).sum() / rows


def alignment_targets(
    flat: Sequence[np.ndarray],
    rows: int,
    keys: int,
    shift: int,
    weights: Sequence[np.ndarray] | None = None,
) -> Float[Tensor, "b t k"]:
    """Attention spread evenly over the tokens that a row is linked to; zeros without links.

    With `weights` of the links, as `token_weights` has them, it is spread by weight. A row whose
    weights sum to less than 1 keeps that sum: the rest is the probability of no counterpart, and
    such a row counts less in the loss.
    """
    targets = np.zeros((len(flat), rows, keys), dtype=np.float32)
    for i, (matrix, links) in enumerate(zip(targets, flat, strict=True)):
        source, target = np.reshape(links, (-1, 2)).T
        matrix[target + shift, source] = 1 if weights is None else weights[i] / WEIGHT_UNIT
    return torch.from_numpy(targets / np.maximum(targets.sum(-1, keepdims=True), 1))


def token_links(pair: Pair, source: Encoded, target: Encoded) -> np.ndarray:
    """The links of words as links of all their tokens: source, target, source, target, …"""
    links = pair.links if isinstance(pair, AlignedPair) else ()
    sides = tokens_of_words(pair.source, source), tokens_of_words(pair.target, target)
    return np.array(list(_spread(links, *sides)), np.int32)


def _spread(
    links: Collection[Link], source: list[list[int]], target: list[list[int]]
) -> Iterator[int]:
    for s, t in sorted(links):
        for k in source[s]:
            for q in target[t]:
                yield from (k, q)


def token_weights(pair: Pair, source: Encoded, target: Encoded) -> np.ndarray:
    """The weights of `token_links`, in units of `WEIGHT_UNIT`.

    The weight of a soft link is shared by the tokens of its source word; all tokens of certain
    links have the same weight.
    """
    links = pair.links if isinstance(pair, AlignedPair) else ()
    given = pair.weights if isinstance(pair, AlignedPair) else ()
    sides = tokens_of_words(pair.source, source), tokens_of_words(pair.target, target)
    values: list[int] = []
    for (s, t), weight in sorted(zip(links, given or [1.0] * len(links), strict=True)):
        sharing = len(sides[0][s]) if given else 1
        count = len(sides[0][s]) * len(sides[1][t])
        values += [round(weight / max(1, sharing) * WEIGHT_UNIT)] * count
    return np.array(values, np.int32)


def with_links(pairs: Iterator[Pair], summary: Summary, path: str) -> Iterator[AlignedPair]:
    """Pairs as they are read, each with the links of its line in a Pharaoh file that counts from 0.

    Links may have weights (`0-1:0.93`), such as `regard align --soft` writes.

    The summary of the reader counts every line, also those that it leaves out: it says which line
    of links belongs to a pair.
    """
    links = _LinkFile(path)
    for pair in pairs:
        line = links.line(summary.total.read)
        if line is not None:
            linked = _checked_links(pair, *line)
            soft = any(weight < 1 for weight in linked.values())
            weights = tuple(linked.values()) if soft else ()
            yield AlignedPair(pair.source, pair.target, pair.where, tuple(linked), weights)
    read, lines_of_links = summary.total.read, links.count()
    if read != lines_of_links:
        raise RegardError(
            f"{path} has {lines_of_links:,} lines but the data has {read:,} pairs: "
            "expected one line of links per pair"
        )


class _LinkFile:
    """A file of links, read line by line."""

    def __init__(self, path: str) -> None:
        self._rest = ((f"{s.name}:{n}", text) for s in resolve(path) for n, text in lines(s))
        self._taken = 0

    def line(self, number: int) -> tuple[str, dict[Link, float]] | None:
        """The line of that number, from 1; None if there are fewer."""
        line = None
        while self._taken < number and (line := next(self._rest, None)) is not None:
            self._taken += 1
        if line is None:
            return None
        where, text = line
        try:
            return where, parse_weighted_pharaoh(text or "")
        except ValueError as error:
            raise RegardError(f"{where}: {error}") from error

    def count(self) -> int:
        """The number of lines of the whole file."""
        return self._taken + sum(1 for _ in self._rest)


def _checked_links(pair: Pair, where: str, links: dict[Link, float]) -> dict[Link, float]:
    sides = {"source": len(pair.source.split()), "target": len(pair.target.split())}
    for link in links:
        for (side, words), index in zip(sides.items(), link, strict=True):
            if index >= words:
                raise RegardError(
                    f"{where}: link {link[0]}-{link[1]}: the {side} sentence has {words} words, "
                    "counted from 0"
                )
    return dict(sorted(links.items()))
