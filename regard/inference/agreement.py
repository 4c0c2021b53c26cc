"""Where in a model to read alignments: by gold links, by the opposite direction, or by erasure."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from regard.data import Pair
from regard.data.corpus import Corpus
from regard.inference.alignments import Looked, look, places
from regard.inference.erasure import erasure
from regard.inference.extraction import argmax
from regard.inference.forcing import translator
from regard.inference.runs import Run
from regard.metrics import GoldLinks, alignment_error_rate, score
from regard.tasks.guidance import Place
from regard.tasks.parts import VALID

SAMPLE = 60
"""Pairs on which a place is chosen, where no gold links are given."""
LEAST = 0.5
"""Nats that the erasure of a source word must cost a target word to count as its cause."""


def choose(
    run: Run,
    pairs: Sequence[Pair],
    gold: Sequence[GoldLinks] | None = None,
    among: Sequence[Place] | None = None,
) -> Place:
    """The best place to read alignments from, judged on these pairs.

    With gold links, the place of the lowest AER. Without, the attention that was guided, if any;
    the one attention of a recurrent decoder, in the row that writes; or else the place whose links
    agree best with erasure.
    """
    known = list(places(run) if among is None else among)
    if gold is not None:
        looked = look(run, pairs)
        return min(known, key=lambda place: _error(looked, place, gold))
    guided = translator(run)[0].guided
    if guided in known:
        return guided
    single = [place for place in known if place.shift == 0]
    if len(known) == 1 or len(places(run)) == 2:
        return (single or known)[0]
    some = some_of(pairs)
    causes = erasure(run, some)
    looked = look(run, some)
    return max(known, key=lambda place: _caused(looked, causes, place))


def choose_both(
    run: Run,
    reverse: Run,
    pairs: Sequence[Pair],
    among: Sequence[Place] | None = None,
    among_reverse: Sequence[Place] | None = None,
) -> tuple[Place, Place]:
    """The places of two opposite runs whose links agree best: most links that both have.

    Attention that was guided is taken as it is.
    """
    some = some_of(pairs)
    known = _left(run, among), _left(reverse, among_reverse)
    ahead = look(run, some)
    back = look(reverse, [Pair(pair.target, pair.source) for pair in some])
    agreed = np.zeros((len(known[0]), len(known[1])))
    for one, other in zip(ahead, back, strict=True):
        if not one.source or not one.target:
            continue
        to_source = np.stack([one.at(place).argmax(1) for place in known[0]])  # [p, t]
        to_target = np.stack([other.at(place).argmax(1) for place in known[1]])  # [r, s]
        back_again = to_target[:, to_source]  # [r, p, t]
        agreed += (back_again == np.arange(len(one.target))).sum(-1).T
    best = np.unravel_index(int(agreed.argmax()), agreed.shape)
    return known[0][int(best[0])], known[1][int(best[1])]


def own_pairs(run: Run) -> list[Pair]:
    """Some pairs of the run's own validation data, if it still has them."""
    path = run.folder.data / VALID
    if not path.exists():
        return []
    corpus = Corpus(path)
    step = max(1, len(corpus) // SAMPLE)
    rows = corpus.rows(list(range(0, len(corpus), step))[:SAMPLE])
    return [Pair(*texts) for texts in zip(rows["source_text"], rows["target_text"], strict=True)]


def _left(run: Run, among: Sequence[Place] | None) -> list[Place]:
    known = list(places(run) if among is None else among)
    guided = translator(run)[0].guided
    return [guided] if guided in known and guided is not None else known


def _error(looked: Sequence[Looked], place: Place, gold: Sequence[GoldLinks]) -> float:
    return score(alignment_error_rate([argmax(one.at(place)) for one in looked], gold))


def _caused(
    looked: Sequence[Looked], causes: Sequence[Float[np.ndarray, "t s"]], place: Place
) -> float:
    """The share of target words, of those that depend on a source word, which looked at it most."""
    right = told = 0
    for one, cause in zip(looked, causes, strict=True):
        if cause.size:
            tells = cause.max(1) >= LEAST
            right += int((one.at(place).argmax(1) == cause.argmax(1))[tells].sum())
            told += int(tells.sum())
    return right / max(told, 1)


def some_of(pairs: Sequence[Pair]) -> list[Pair]:
    """Some pairs from all over the data, none of them empty."""
    filled = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
    step = max(1, len(filled) // SAMPLE)
    return filled[::step][:SAMPLE]
