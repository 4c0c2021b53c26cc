"""Word alignments out of a translator's attention, by forced decoding of given translations.

Attention between tokens becomes attention between words: the weights of the tokens of a source
word are summed, those of the tokens of a target word averaged. The row of the end of the sentence
is let go, and so are weights on tokens that are of no word.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from regard.data import Pair
from regard.data.corpus import in_chunks
from regard.errors import unknown
from regard.inference.erasure import erasure as erased
from regard.inference.erasure import shares
from regard.inference.extraction import EXTRACTIONS
from regard.inference.forcing import SideRead, forced, sides, translator
from regard.inference.runs import Run
from regard.inference.symmetrize import AGREE, SYMMETRIZATIONS, agree
from regard.models.decoders import TransformerDecoder
from regard.tasks.guidance import Place, source_looks

SHIFTS = (0, 1)
"""Rows in which a word may be looked for: that which writes it, and that which has read it."""
AT_ONCE = 500
"""Pairs whose weights are held at once."""


@dataclass(frozen=True)
class Looked:
    """All that a model's attention says of one pair, word by word."""

    source: list[str]
    target: list[str]
    weights: Float[np.ndarray, "layers heads shifts t s"]
    cut: bool = False
    """Whether a side was too long, so that words at its end have no weights."""

    def at(self, place: Place) -> Float[np.ndarray, "t s"]:
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
    """How much each target word looked at each source word; with two runs, the mean of both,
    or the weights that `agree` made the links of."""
    cut: bool = False

    def __str__(self) -> str:
        """The line of a Pharaoh file."""
        return " ".join(f"{s}-{t}" for s, t in self.links)


def align(
    run: Run,
    pairs: Sequence[Pair],
    place: Place,
    *,
    both: tuple[Run, Place] | None = None,
    symmetrize: str = "grow-diag-final-and",
    extract: str = "argmax",
    threshold: float = 0.1,
    erasure: float = 0.0,
) -> Iterator[Alignment]:
    """The alignment of each pair, in order; of a pair with an empty side, one without links.

    Args:
        run: a translator.
        pairs: sentences and their translations.
        place: where in the model to look; `regard.inference.agreement.choose` finds a good one.
        both: a run of the opposite direction and its place, to symmetrise with.
        symmetrize: how: one of `SYMMETRIZATIONS`, which join links, or `agree`, which joins weights
            and has links made of those.
        extract: how links are made of weights, one of `EXTRACTIONS`.
        threshold: the least weight of a link that `cover` adds, or that `above` takes.
        erasure: how much the losses that words suffer when a source word is erased count beside
            the attention; costs a pass a source word.
    """
    if symmetrize not in (ways := [*SYMMETRIZATIONS, AGREE]):
        raise ValueError(unknown("symmetrization", symmetrize, ways))
    if extract not in EXTRACTIONS:
        raise ValueError(unknown("extraction", extract, EXTRACTIONS))
    take, join = EXTRACTIONS[extract], SYMMETRIZATIONS.get(symmetrize)
    for some in in_chunks(pairs, AT_ONCE):
        ahead = soft(run, some, place, erasure)
        back = ahead
        if both is not None:
            back = soft(both[0], [_turned(pair) for pair in some], both[1], erasure)
        for pair, (weights, cut), (opposite, short) in zip(some, ahead, back, strict=True):
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
                cut or short,
            )


def soft(
    run: Run, pairs: Sequence[Pair], place: Place, erasure: float
) -> list[tuple[Float[np.ndarray, "t s"], bool]]:
    """Weights of each pair, attention and what erasure tells, and whether the pair was cut."""
    looked = look(run, pairs)
    if not erasure:
        return [(one.at(place), one.cut) for one in looked]
    lost = (shares(losses) for losses in erased(run, pairs))
    return [
        ((one.at(place) + erasure * share) / (1 + erasure), one.cut)
        for one, share in zip(looked, lost, strict=True)
    ]


def _turned(pair: Pair) -> Pair:
    return Pair(pair.target, pair.source, pair.where)


def sizes(run: Run) -> tuple[int, int]:
    """How many layers look at the source, each with how many heads."""
    task, model = translator(run)
    decoder = model.decoder
    if isinstance(decoder, TransformerDecoder):
        return len(decoder.stack.blocks), task.config.heads
    return 1, 1


def places(run: Run) -> list[Place]:
    """Every layer, head (and the mean of heads) and row in which words can be looked for."""
    layers, heads = sizes(run)
    chosen = [*range(heads), None] if heads > 1 else [0]
    return [
        Place(layer, head, shift) for layer in range(layers) for head in chosen for shift in SHIFTS
    ]


def look(run: Run, pairs: Sequence[Pair]) -> list[Looked]:
    """Force each target out of each source, and see where every layer and head looked."""
    _, model = translator(run)
    sources, targets = sides(run, pairs)
    shape = (*sizes(run), len(SHIFTS))
    found = [
        Looked(s.words, t.words, np.zeros((*shape, len(t.words), len(s.words))), s.cut or t.cut)
        for s, t in zip(sources, targets, strict=True)
    ]
    for chosen, output in forced(model, sources, targets, need_weights=True):
        looks = torch.stack(source_looks(output.weights), 1).double().numpy()
        for i, weights in zip(chosen.tolist(), looks, strict=True):
            found[i].weights[:] = _by_words(sources[i], targets[i], weights)
    return found


def _by_words(
    source: SideRead, target: SideRead, weights: Float[np.ndarray, "layers heads rows keys"]
) -> Float[np.ndarray, "layers heads shifts t s"]:
    rows, keys = len(target.ids), len(source.ids)
    shifted = np.stack([weights[:, :, shift : shift + rows, :keys] for shift in SHIFTS], 2)
    share = target.membership()
    share = share / np.maximum(share.sum(0), 1)
    merged: np.ndarray = share.T @ shifted @ source.membership()
    return merged
