"""Intervals and paired comparison against theory, scipy and a plain loop."""

import numpy as np
import pytest
from scipy import stats

from regard.metrics import (
    Tally,
    accuracy,
    bleu,
    compare,
    entity_f1,
    interval,
    macro_f1,
    measure,
    metric_value,
    perplexity,
    token_accuracy,
)
from regard.metrics.bootstrap import resample_counts

HITS = np.random.default_rng(3).random(401) < 0.7


def hit_rate(hits):
    return accuracy([bool(hit) for hit in hits], [True] * len(hits))


def test_the_interval_of_perplexity_is_near_the_bootstrap_of_scipy():
    nlls = np.random.default_rng(5).gamma(3.0, 2.0, size=211)
    counts = np.random.default_rng(6).integers(1, 17, size=211)

    def by_hand(nll, count, axis):
        return np.exp(nll.sum(axis) / count.sum(axis))

    theirs = stats.bootstrap(
        (nlls, counts), by_hand, paired=True, method="BCa", n_resamples=3000, rng=1
    ).confidence_interval
    low, high, missing = interval(perplexity(nlls, counts))
    assert not missing
    assert np.allclose((low, high), (theirs.low, theirs.high), rtol=0.02)


def test_resamples_equal_a_plain_loop():
    tally = perplexity([1.0, 5.0, 2.0, 9.0, 3.0], [2, 3, 5, 7, 11])
    counts = np.concatenate(list(resample_counts(tally, 13, seed=2)))
    assert counts.shape == (13, 5)
    assert (counts.sum(1) == 5).all()
    for row in counts.astype(int):
        drawn = [i for i, times in enumerate(row) for _ in range(times)]
        assert tally.formula(row[None] @ tally.statistics)[0] == pytest.approx(
            metric_value(tally[drawn])
        )


def test_large_corpora_are_read_in_parts(monkeypatch):
    tally = hit_rate(HITS[:53])
    tokens = perplexity(np.arange(1.0, 54.0), np.arange(53, 0, -1))
    whole = interval(tokens)
    monkeypatch.setattr("regard.metrics.bootstrap.MAX_CELLS", 100)
    monkeypatch.setattr("regard.metrics.intervals.MAX_CELLS", 20)
    assert [len(part) for part in resample_counts(tally, 17, seed=0)] == [1] * 17
    assert interval(tokens) == whole


def test_few_examples_have_no_interval_and_a_reason():
    only = measure(hit_rate([True]))  # a share of examples always has one
    assert (only.value, only.high, only.n) == (1.0, 1.0, 1)
    assert only.low == pytest.approx(0.025)
    none = measure(hit_rate([]))
    assert none.n == 0
    assert np.isnan([none.value, none.low, none.high]).all()
    assert none.record()["value"] is None
    few = measure(token_accuracy([["a"], ["a", "b"]], [["a"], ["b", "b"]]))
    assert few.missing == "2 examples: an interval needs 10"
    assert str(few) == "token accuracy 66.7 % (n = 2)"
    rare = measure(macro_f1(["a"] * 20 + ["b"], ["a"] * 20 + ["b"]))
    assert rare.missing == "label 'b' has 1 examples: an interval needs 5"
    same = measure(token_accuracy([["a", "b"]] * 30, [["a", "a"]] * 30))
    assert same.missing == "all examples give the same value"
    fragile = measure(perplexity([1.0] + [0.0] * 29, [1] + [0] * 29))
    assert fragile.missing == "one example decides whether its value is defined"


def test_thirty_of_thirty_is_not_certain():
    assert measure(hit_rate([True] * 30)).text() == "100.0 % [88.4, 100.0]"
    tags = [["B-X", "O"]] * 30
    assert measure(entity_f1(tags, tags)).text() == "100.0 [88.4, 100.0]"
    texts = ["the cat sat on the mat"] * 30
    assert measure(bleu(texts, texts)).text() == "100.0 [88.4, 100.0]"
    wrong = [["O", "B-X"]] * 30
    assert measure(entity_f1(tags, wrong)).text() == "0.0 [0.0, 11.6]"


def test_undefined_comparison_stays_undefined():
    none = perplexity([], [])
    assert np.isnan(compare(none, none).p_value)


def test_a_better_system_is_significantly_better():
    references = [f"the {a} {b} sat on the {c}" for a in "abcd" for b in "efgh" for c in "ijkl"]
    good = bleu([line.replace("k", "l") for line in references], references)
    bad = bleu([line.replace("a", "x").replace("e", "y") for line in references], references)
    compared = compare(good, bad)
    assert compared.difference == pytest.approx(metric_value(good) - metric_value(bad))
    assert 0 < compared.low < compared.difference < compared.high
    assert compared.p_value == pytest.approx(1 / 1001)
    turned = compare(bad, good)
    assert (turned.low, turned.high) == (-compared.high, -compared.low)


def test_equal_systems_do_not_differ():
    tally = hit_rate(HITS)
    assert compare(tally, tally).p_value == 1
    assert compare(tally, tally).difference == 0
    assert compare(tally, tally).low < 0 < compare(tally, tally).high


def test_p_value_agrees_with_the_t_test():
    generator = np.random.default_rng(11)
    ours = generator.random(997) < 0.74
    theirs = generator.random(997) < 0.70
    p_value = compare(hit_rate(ours), hit_rate(theirs), resamples=4000).p_value
    expected = stats.ttest_rel(ours.astype(float), theirs.astype(float)).pvalue
    assert 0.001 < expected < 0.5
    assert p_value == pytest.approx(expected, abs=0.02)


def test_wrong_use():
    tally = hit_rate(HITS)
    with pytest.raises(ValueError, match="accuracy of 401 sentences and accuracy of 7"):
        compare(tally, tally[:7])
    with pytest.raises(ValueError, match=r"between 0 and 1, got 95\.0"):
        interval(tally, confidence=95.0)
    with pytest.raises(ValueError, match="at least one resample, got 0"):
        compare(tally, tally, resamples=0)


def test_text_of_results():
    assert str(measure(hit_rate([True, True]))) == "accuracy 100.0 % [15.8, 100.0] (n = 2)"
    tally = Tally("x", np.zeros((2, 1)), lambda sums: sums[:, 0])
    assert str(compare(tally, tally)) == "x difference +0, p = 1 (n = 2)"
