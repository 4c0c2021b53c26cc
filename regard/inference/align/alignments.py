"""Word alignments from the attention of a translator, by forced decoding of given translations.

Attention between tokens becomes attention between words: the weights of the tokens of a source
word are summed, those of the tokens of a target word averaged. The row of the end of the sentence
is dropped, and so are weights on tokens that belong to no word.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from jaxtyping import Float

from regard.data import Pair
from regard.data.corpus import in_chunks
from regard.errors import unknown
from regard.inference.align.erasure import erasure_losses, normalize_losses
from regard.inference.align.extract_links import EXTRACTIONS
from regard.inference.align.forced_pairs import (
    EncodedSide,
    attention_sizes,
    encode_pairs,
    force_pairs,
)
from regard.inference.align.read_pairs import reverse_pairs
from regard.inference.align.symmetrize import AGREE, SYMMETRIZATIONS, agree
from regard.inference.run import Run
from regard.tasks.shared.word_attention import AttentionPlace, source_attention

SHIFTS = (0, 1)
"""The row of a word: the one that predicts it, or the one that has read it."""
CHUNK_PAIRS = 500
"""Pairs whose weights are held in memory at once."""


@dataclass(frozen=True)
class PairAttention:
    """The attention between the words of one pair, in every layer and head."""

    source: list[str]
    target: list[str]
    weights: Float[np.ndarray, "layers heads shifts t s"]
    truncated: bool = False
    """Whether a side was too long, so that words at its end have no weights."""

    def at(self, place: AttentionPlace) -> Float[np.ndarray, "t s"]:
        """The weights of one place."""
        heads = self.weights[place.layer, :, place.shift]
        chosen: np.ndarray = heads.mean(0) if place.head is None else heads[place.head]
        return chosen


@dataclass(frozen=True)
class Alignment:
    """Which words of a pair belong together."""

    source: list[str]
    target: list[str]
    links: tuple[tuple[int, int], ...]
    """Source word, target word, from 0."""
    weights: Float[np.ndarray, "t s"]
    """How much each target word attends to each source word; with two runs, the mean of both,
    or their product by `agree`."""
    truncated: bool = False

    def __str__(self) -> str:
        """The line of a Pharaoh file."""
        return " ".join(f"{s}-{t}" for s, t in self.links)


def align(
    run: Run,
    pairs: Sequence[Pair],
    place: AttentionPlace,
    *,
    both: tuple[Run, AttentionPlace] | None = None,
    symmetrize: str = "grow-diag-final-and",
    extract: str = "argmax",
    threshold: float = 0.1,
    erasure: float = 0.0,
) -> Iterator[Alignment]:
    """The alignment of each pair, in order; of a pair with an empty side, one without links.

    Args:
        run: a translator.
        pairs: sentences and their translations.
        place: where to read the attention; see `choose_head`.
        both: a run of the opposite direction and its place, to symmetrize with.
        symmetrize: one of `SYMMETRIZATIONS`, which combine links, or `agree`, which combines
            weights, from which links are then extracted.
        extract: how links are extracted from weights, one of `EXTRACTIONS`.
        threshold: the minimum weight of links that `cover` adds, and of all links of `above`.
        erasure: the weight of erasure losses relative to attention; if it is not 0, this takes one
            forward pass per source word.
    """
    if symmetrize not in (known := [*SYMMETRIZATIONS, AGREE]):
        raise ValueError(unknown("symmetrization", symmetrize, known))
    if extract not in EXTRACTIONS:
        raise ValueError(unknown("extraction", extract, EXTRACTIONS))
    take, join = EXTRACTIONS[extract], SYMMETRIZATIONS.get(symmetrize)
    for chunk in in_chunks(pairs, CHUNK_PAIRS):
        forward = word_weights(run, chunk, place, erasure)
        backward = forward
        if both is not None:
            backward = word_weights(both[0], reverse_pairs(chunk), both[1], erasure)
        for pair, (weights, truncated), (opposite, also) in zip(
            chunk, forward, backward, strict=True
        ):
            if both is None:
                links = take(weights, threshold)
            elif join is None:
                weights = agree(weights, opposite)
                links = take(weights, threshold)
            else:
                back_links = {(s, t) for t, s in take(opposite, threshold)}
                links = join(take(weights, threshold), back_links)
                weights = (weights + opposite.T) / 2
            yield Alignment(
                pair.source.split(),
                pair.target.split(),
                tuple(sorted(links)),
                weights,
                truncated or also,
            )


def word_weights(
    run: Run, pairs: Sequence[Pair], place: AttentionPlace, erasure: float
) -> list[tuple[Float[np.ndarray, "t s"], bool]]:
    """Weights of each pair, by attention and erasure, and whether the pair was truncated."""
    attention = pair_attention(run, pairs)
    if not erasure:
        return [(pair.at(place), pair.truncated) for pair in attention]
    lost = (normalize_losses(losses) for losses in erasure_losses(run, pairs))
    return [
        ((pair.at(place) + erasure * share) / (1 + erasure), pair.truncated)
        for pair, share in zip(attention, lost, strict=True)
    ]


def attention_places(run: Run) -> list[AttentionPlace]:
    """Every layer, head (and the mean of heads) and row where alignments can be read."""
    layers, heads = attention_sizes(run)
    chosen = [*range(heads), None] if heads > 1 else [0]
    return [
        AttentionPlace(layer, head, shift)
        for layer in range(layers)
        for head in chosen
        for shift in SHIFTS
    ]


def pair_attention(run: Run, pairs: Sequence[Pair]) -> list[PairAttention]:
    """The attention of every layer and head, under forced decoding of each target."""
    shape = (*attention_sizes(run), len(SHIFTS))
    sources, targets = encode_pairs(run, pairs)
    attention = [
        PairAttention(
            s.words,
            t.words,
            np.zeros((*shape, len(t.words), len(s.words))),
            s.truncated or t.truncated,
        )
        for s, t in zip(sources, targets, strict=True)
    ]
    for chosen, output in force_pairs(run.model, sources, targets, need_weights=True):
        before, _ = cast(tuple[int, int], run.model.frame)  # these tokens belong to no word
        of_text = torch.stack(source_attention(output.weights), 1)[..., before:]
        layers = of_text.cpu().double().numpy()
        for i, weights in zip(chosen.tolist(), layers, strict=True):
            attention[i].weights[:] = _by_words(sources[i], targets[i], weights)
    return attention


def _by_words(
    source: EncodedSide, target: EncodedSide, weights: Float[np.ndarray, "layers heads rows keys"]
) -> Float[np.ndarray, "layers heads shifts t s"]:
    rows, keys = len(target.ids), len(source.ids)
    shifted = np.stack([weights[:, :, shift : shift + rows, :keys] for shift in SHIFTS], 2)
    share = target.membership()
    share = share / np.maximum(share.sum(0), 1)
    merged: np.ndarray = share.T @ shifted @ source.membership()
    return merged
