"""Sums, parts and joins of tallies, and quality by length."""

import numpy as np
import pytest
import sacrebleu

from regard.metrics import (
    accuracy,
    bleu,
    by_length,
    even_edges,
    join_tallies,
    macro_f1,
    measure,
    metric_value,
)
from regard.metrics.buckets import Bucket
from regard.metrics.tally import ratio


def test_parts_and_joins():
    predicted, gold = list("abcabca"), list("abcbbba")
    whole = accuracy(predicted, gold)
    assert metric_value(whole) == pytest.approx(5 / 7)
    assert metric_value(whole[2:5]) == pytest.approx(2 / 3)
    assert metric_value(join_tallies([whole[:3], whole[3:]])) == metric_value(whole)
    batches = [macro_f1(predicted[i : i + 3], gold[i : i + 3], labels="abc") for i in (0, 3, 6)]
    assert metric_value(join_tallies(batches)) == pytest.approx(
        metric_value(macro_f1(predicted, gold))
    )


def test_joins_of_different_things_are_refused():
    with pytest.raises(ValueError, match=r"different metrics.*accuracy.*macro F1"):
        join_tallies([accuracy([1], [1]), macro_f1([1], [1])])
    with pytest.raises(ValueError, match="at least one tally"):
        join_tallies([])


def test_by_length_scores_each_part_alone():
    references = ["a b c d e f", "a b c d", "b c d e f g h", "c d e f g h i j k", "d e f g a b"]
    hypotheses = ["a b c d e g", "a b c d", "b c d e f h g", "c d e f g h i k j", "d e f g b a"]
    lengths = [len(line.split()) for line in references]
    found = by_length(bleu(hypotheses, references), lengths, edges=(4, 6, 8))
    assert list(found) == [Bucket(0, 4), Bucket(5, 6), Bucket(7, 8), Bucket(9, None)]
    for bucket, measured in found.items():
        inside = [
            i for i, n in enumerate(lengths) if bucket.shortest <= n <= (bucket.longest or 10**9)
        ]
        theirs = sacrebleu.corpus_bleu(
            [hypotheses[i] for i in inside], [[references[i] for i in inside]]
        )
        assert measured.value == pytest.approx(theirs.score)
        assert measured.n == len(inside)


def test_empty_buckets_are_left_out():
    tally = accuracy([1, 1, 0], [1, 0, 0])
    found = by_length(tally, [3, 45, 60])
    assert [str(bucket) for bucket in found] == ["0–10", "41–50", "over 50"]
    assert [measured.value for measured in found.values()] == [1.0, 0.0, 1.0]
    assert found[Bucket(0, 10)] == measure(tally[:1])
    assert by_length(tally[:0], []) == {}


def test_even_edges_share_out_the_sentences():
    lengths = np.random.default_rng(0).integers(1, 60, size=1009).tolist()
    edges = even_edges(lengths, buckets=4)
    sizes = [m.n for m in by_length(accuracy(lengths, lengths), lengths, edges).values()]
    assert len(sizes) == 4
    assert max(sizes) - min(sizes) < 60
    assert even_edges([5, 5, 5], buckets=3) == ()
    assert even_edges([]) == ()


def test_wrong_use():
    tally = accuracy([1, 1], [1, 0])
    with pytest.raises(ValueError, match="statistics 2, lengths 1"):
        by_length(tally, [3])
    with pytest.raises(ValueError, match=r"edges must increase, got \(5, 5\)"):
        by_length(tally, [3, 4], edges=(5, 5))
    with pytest.raises(ValueError, match="at least one bucket"):
        even_edges([1], buckets=0)


def test_ratio_of_nothing():
    assert np.isnan(ratio(np.zeros(1), np.zeros(1)))[0]
    assert ratio(np.ones(2), np.array([0.0, 4.0]), empty=0.0).tolist() == [0.0, 0.25]
