"""Guided alignment: attention is taught to look where given word links say.

Chen et al., 2016, Guided Alignment Training for Topic-Aware Neural Machine Translation,
https://arxiv.org/abs/1607.01628; a single head of a transformer: Garg et al., 2019, Jointly
Learning to Align and Translate with Transformer Models, https://arxiv.org/abs/1909.02074.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.data import Pair, Summary, resolve
from regard.data.builtin import AlignedPair
from regard.data.lines import lines
from regard.data.tokenizer import Encoded
from regard.data.words import token_to_word
from regard.errors import RegardError
from regard.metrics.alignment import GoldLinks, Link, parse_pharaoh
from regard.models import TranslatorConfig
from regard.tasks.sides import word_spans


@dataclass(frozen=True, order=True)
class Place:
    """Where in a translator alignments are read: a layer, a head, and which row is a word's."""

    layer: int
    head: int | None
    """None: the mean of all heads."""
    shift: int = 0
    """0: the row that writes the word; 1: the row after it, which has read the word."""

    def __str__(self) -> str:
        head = "mean of heads" if self.head is None else f"head {self.head}"
        return f"layer {self.layer}, {head}, {'reading' if self.shift else 'writing'} each word"

    def of(self, weights: Mapping[str, Tensor]) -> Float[Tensor, "b t k"]:
        """The weights of this place, a row a step."""
        looks = source_looks(weights)[self.layer]
        return looks.mean(1) if self.head is None else looks[:, self.head]


def source_looks(weights: Mapping[str, Tensor]) -> list[Float[Tensor, "b h t k"]]:
    """Attention from target to source, layer by layer."""
    return [look for name, look in weights.items() if name.split(".")[-1] == "source"]


def guided_place(config: TranslatorConfig, layer: int | None, head: int) -> Place:
    """The attention that is to be guided: the recurrent one, or one head of a transformer.

    A recurrent decoder writes a word from what it looks at, so that the row that writes it is
    guided. The head of a transformer is guided in the row that has just read the word, where the
    word itself is known (Chen et al., 2020, https://arxiv.org/abs/2004.14837); it stands in the
    layer before the last unless said.
    """
    if (config.decoder or config.model) == "recurrent":
        if config.attention == "none":
            raise RegardError("option alignments: a model without attention cannot be guided")
        layers, heads, shift = 1, 1, 0
    else:
        layers, heads, shift = config.layers or 3, config.heads, 1
    chosen = max(0, layers - 2) if layer is None else layer
    for name, value, count in (("align_layer", chosen, layers), ("align_head", head, heads)):
        if not 0 <= value < count:
            raise RegardError(f"option {name}: expected 0 to {count - 1}, got {value}")
    return Place(chosen, head, shift)


def guided_loss(weights: Float[Tensor, "b t k"], goal: Float[Tensor, "b t k"]) -> Float[Tensor, ""]:
    """-Σₖ gₜₖ log aₜₖ, the mean over those rows t that have a goal."""
    rows = (goal.sum(-1) > 0).sum().clamp(min=1)
    return -(goal * weights.clamp(min=torch.finfo(weights.dtype).tiny).log()).sum() / rows


def goals(flat: Sequence[np.ndarray], rows: int, keys: int, shift: int) -> Float[Tensor, "b t k"]:
    """Each row's share of attention for the tokens that it is linked to; zeros where to none."""
    made = np.zeros((len(flat), rows, keys), dtype=np.float32)
    for one, links in zip(made, flat, strict=True):
        source, target = np.reshape(links, (-1, 2)).T
        one[target + shift, source] = 1
    return torch.from_numpy(made / np.maximum(made.sum(-1, keepdims=True), 1))


def token_links(pair: Pair, source: Encoded, target: Encoded) -> np.ndarray:
    """The links of words as links of all their tokens: source, target, source, target, …"""
    links = pair.links if isinstance(pair, AlignedPair) else ()
    sides = tokens_of(pair.source, source), tokens_of(pair.target, target)
    return np.array(list(_spread(links, *sides)), np.int32)


def tokens_of(text: str, encoded: Encoded) -> list[list[int]]:
    """The tokens of each word between spaces."""
    spans = word_spans(text)
    found: list[list[int]] = [[] for _ in spans]
    for token, word in enumerate(token_to_word(encoded.offsets, spans)):
        if word is not None:
            found[word].append(token)
    return found


def _spread(
    links: Collection[Link], source: list[list[int]], target: list[list[int]]
) -> Iterator[int]:
    for s, t in sorted(links):
        for k in source[s]:
            for q in target[t]:
                yield from (k, q)


def with_links(pairs: Iterator[Pair], summary: Summary, path: str) -> Iterator[AlignedPair]:
    """Pairs as they are read, each with the links of its line in a Pharaoh file that counts from 0.

    The reader counts every line, those too that it leaves out, so that both stay in step.
    """
    links = _Lines(path)
    for pair in pairs:
        found = links.line(summary.total.read)
        if found is not None:
            yield AlignedPair(pair.source, pair.target, pair.where, _inside(pair, *found))
    read, lines_of_links = summary.total.read, links.count()
    if read != lines_of_links:
        raise RegardError(
            f"{path} has {lines_of_links:,} lines but the data has {read:,} pairs: "
            "expected the links of one pair a line"
        )


class _Lines:
    """A file of links, line after line."""

    def __init__(self, path: str) -> None:
        self._rest = ((f"{s.name}:{n}", text) for s in resolve(path) for n, text in lines(s))
        self._taken = 0

    def line(self, number: int) -> tuple[str, GoldLinks] | None:
        """The line of that number, from 1; None if there are fewer."""
        found = None
        while self._taken < number and (found := next(self._rest, None)) is not None:
            self._taken += 1
        if found is None:
            return None
        where, text = found
        try:
            return where, parse_pharaoh(text or "")
        except ValueError as error:
            raise RegardError(f"{where}: {error}") from error

    def count(self) -> int:
        """How many lines there are in all."""
        return self._taken + sum(1 for _ in self._rest)


def _inside(pair: Pair, where: str, links: GoldLinks) -> tuple[Link, ...]:
    sides = {"source": len(pair.source.split()), "target": len(pair.target.split())}
    for link in links.sure:
        for (side, words), index in zip(sides.items(), link, strict=True):
            if index >= words:
                raise RegardError(
                    f"{where}: link {link[0]}-{link[1]}: the {side} sentence has {words} words, "
                    "counted from 0"
                )
    return tuple(sorted(links.sure))
