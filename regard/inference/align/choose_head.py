"""Choosing the layer and head for alignments: by gold links, the opposite direction, or erasure."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from regard.data import Pair
from regard.data.corpus import Corpus
from regard.inference.align.alignments import PairAttention, attention_places, pair_attention
from regard.inference.align.erasure import erasure_losses
from regard.inference.align.extract_links import argmax
from regard.inference.run import Run
from regard.metrics import GoldLinks, alignment_error_rate, metric_value
from regard.tasks.shared.splits import VALID
from regard.tasks.shared.word_attention import AttentionPlace

SAMPLE_PAIRS = 60
"""Pairs on which a head is chosen, where no gold links are given."""
LEAST_LOSS = 0.5
"""Nats that the erasure of a source word must cost a target word to count as its cause."""


def choose_head(
    run: Run,
    pairs: Sequence[Pair],
    gold: Sequence[GoldLinks] | None = None,
    among: Sequence[AttentionPlace] | None = None,
) -> AttentionPlace:
    """The best layer, head and row for alignments, judged on these pairs.

    With gold links: the one with the lowest AER. Without: the attention that was guided, if any;
    the only attention of a recurrent decoder, in the row that predicts; or else the one whose
    links agree best with erasure.
    """
    candidates = list(attention_places(run) if among is None else among)
    if gold is not None:
        attention = pair_attention(run, pairs)
        return min(candidates, key=lambda place: _error_rate(attention, place, gold))
    guided = _guided_place(run)
    if guided in candidates and guided is not None:
        return guided
    predicting = [place for place in candidates if place.shift == 0]
    if len(candidates) == 1 or len(attention_places(run)) == 2:
        return (predicting or candidates)[0]
    sample = sample_pairs(pairs)
    losses = erasure_losses(run, sample)
    attention = pair_attention(run, sample)
    return max(candidates, key=lambda place: _agreement(attention, losses, place))


def choose_heads(
    run: Run,
    reverse: Run,
    pairs: Sequence[Pair],
    among: Sequence[AttentionPlace] | None = None,
    among_reverse: Sequence[AttentionPlace] | None = None,
) -> tuple[AttentionPlace, AttentionPlace]:
    """The places of two opposite runs whose links agree best: most links that both have.

    Attention that was guided is taken as it is.
    """
    sample = sample_pairs(pairs)
    candidates = _candidates(run, among), _candidates(reverse, among_reverse)
    forward = pair_attention(run, sample)
    backward = pair_attention(reverse, [Pair(pair.target, pair.source) for pair in sample])
    agreed = np.zeros((len(candidates[0]), len(candidates[1])))
    for one, other in zip(forward, backward, strict=True):
        if not one.source or not one.target:
            continue
        to_source = np.stack([one.at(place).argmax(1) for place in candidates[0]])  # [p, t]
        to_target = np.stack([other.at(place).argmax(1) for place in candidates[1]])  # [r, s]
        back_again = to_target[:, to_source]  # [r, p, t]
        agreed += (back_again == np.arange(len(one.target))).sum(-1).T
    best = np.unravel_index(int(agreed.argmax()), agreed.shape)
    return candidates[0][int(best[0])], candidates[1][int(best[1])]


def validation_pairs(run: Run) -> list[Pair]:
    """Some pairs of the run's own validation data, if it still has them."""
    path = run.folder.data / VALID
    if not path.exists():
        return []
    corpus = Corpus(path)
    step = max(1, len(corpus) // SAMPLE_PAIRS)
    rows = corpus.rows(list(range(0, len(corpus), step))[:SAMPLE_PAIRS])
    return [Pair(*texts) for texts in zip(rows["source_text"], rows["target_text"], strict=True)]


def _candidates(run: Run, among: Sequence[AttentionPlace] | None) -> list[AttentionPlace]:
    candidates = list(attention_places(run) if among is None else among)
    guided = _guided_place(run)
    return [guided] if guided in candidates and guided is not None else candidates


def _guided_place(run: Run) -> AttentionPlace | None:
    place: AttentionPlace | None = getattr(run.task, "guided", None)
    return place


def _error_rate(
    attention: Sequence[PairAttention], place: AttentionPlace, gold: Sequence[GoldLinks]
) -> float:
    return metric_value(alignment_error_rate([argmax(pair.at(place)) for pair in attention], gold))


def _agreement(
    attention: Sequence[PairAttention],
    losses: Sequence[Float[np.ndarray, "_ _"]],
    place: AttentionPlace,
) -> float:
    """How often a target word attends most to the source word whose erasure costs it most.

    Target words that lose little by any erasure do not count.
    """
    agreed = counted = 0
    for pair, loss in zip(attention, losses, strict=True):
        if loss.size:
            dependent = loss.max(1) >= LEAST_LOSS
            agreed += int((pair.at(place).argmax(1) == loss.argmax(1))[dependent].sum())
            counted += int(dependent.sum())
    return agreed / max(counted, 1)


def sample_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Some pairs from all over the data, none of them empty."""
    filled = [pair for pair in pairs if pair.source.strip() and pair.target.strip()]
    step = max(1, len(filled) // SAMPLE_PAIRS)
    return filled[::step][:SAMPLE_PAIRS]
