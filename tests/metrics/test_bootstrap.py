"""Intervals and paired comparison against theory, scipy and a plain loop."""

import numpy as np
import pytest
from scipy import stats

from regard.metrics import Tally, accuracy, bleu, compare, interval, measure, perplexity, score
from regard.metrics.bootstrap import draws

HITS = np.random.default_rng(3).random(401) < 0.7


def hit_rate(hits):
    return accuracy([bool(hit) for hit in hits], [True] * len(hits))


def test_interval_of_a_proportion_is_the_binomial_one():
    low, high = interval(hit_rate(HITS), resamples=20000)
    # The bootstrap distribution of a proportion is exactly binomial.
    expected = stats.binom(401, HITS.mean()).ppf([0.025, 0.975]) / 401
    assert np.allclose([low, high], expected, atol=1.5 / 401)


def test_interval_agrees_with_scipy():
    nlls = np.random.default_rng(5).gamma(3.0, 2.0, size=211)
    counts = np.random.default_rng(6).integers(1, 17, size=211)

    def by_hand(nll, count, axis):
        return np.exp(nll.sum(axis) / count.sum(axis))

    theirs = stats.bootstrap(
        (nlls, counts), by_hand, paired=True, method="percentile", n_resamples=9000, rng=1
    ).confidence_interval
    ours = interval(perplexity(nlls, counts), resamples=9000)
    assert np.allclose(ours, (theirs.low, theirs.high), rtol=0.02)


def test_resamples_equal_a_plain_loop():
    tally = perplexity([1.0, 5.0, 2.0, 9.0, 3.0], [2, 3, 5, 7, 11])
    counts = np.concatenate(list(draws(tally, 13, seed=2)))
    assert counts.shape == (13, 5)
    assert (counts.sum(1) == 5).all()
    for row in counts.astype(int):
        drawn = [i for i, times in enumerate(row) for _ in range(times)]
        assert tally.formula(row[None] @ tally.statistics)[0] == pytest.approx(score(tally[drawn]))


def test_large_corpora_are_drawn_in_parts(monkeypatch):
    tally = hit_rate(HITS[:53])
    whole = interval(tally, resamples=17)
    monkeypatch.setattr("regard.metrics.bootstrap.CELLS", 100)
    parts = list(draws(tally, 17, seed=0))
    assert [len(part) for part in parts] == [1] * 17
    assert interval(tally, resamples=17) == whole


def test_the_seed_decides():
    tally = perplexity(np.arange(1.0, 24.0), np.arange(23, 0, -1))
    assert interval(tally, seed=1) == interval(tally, seed=1)
    assert interval(tally, seed=1) != interval(tally, seed=2)


def test_one_sentence_and_none():
    only = measure(hit_rate([True]))
    assert (only.value, only.low, only.high, only.n) == (1.0, 1.0, 1.0, 1)
    none = measure(hit_rate([]))
    assert none.n == 0
    assert np.isnan([none.value, none.low, none.high]).all()


def test_undefined_resamples_are_left_out():
    low, high = interval(perplexity([1.0, 0.0], [1, 0]), resamples=200)
    assert low == high == pytest.approx(np.e)


def test_undefined_comparison_stays_undefined():
    none = perplexity([], [])
    assert np.isnan(compare(none, none).p_value)


def test_a_better_system_is_significantly_better():
    references = [f"the {a} {b} sat on the {c}" for a in "abcd" for b in "efgh" for c in "ijkl"]
    good = bleu([line.replace("k", "l") for line in references], references)
    bad = bleu([line.replace("a", "x").replace("e", "y") for line in references], references)
    compared = compare(good, bad)
    assert compared.difference == pytest.approx(score(good) - score(bad))
    assert 0 < compared.low < compared.difference < compared.high
    assert compared.p_value == pytest.approx(1 / 1001)
    turned = compare(bad, good)
    assert (turned.low, turned.high) == (-compared.high, -compared.low)


def test_equal_systems_do_not_differ():
    tally = hit_rate(HITS)
    assert compare(tally, tally).p_value == pytest.approx(1 / 1001)
    assert compare(tally, tally).difference == 0


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
        interval(tally, resamples=0)


def test_text_of_results():
    assert str(measure(hit_rate([True, True]))) == "accuracy 1 [1, 1] (n = 2)"
    tally = Tally("x", np.zeros((2, 1)), lambda sums: sums[:, 0])
    assert str(compare(tally, tally)) == "x difference +0 [+0, +0], p = 0.000999 (n = 2)"
