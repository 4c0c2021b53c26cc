"""How often intervals cover the true value, on simulated corpora.

Shares of examples are checked exactly, by summing over all outcomes. Other metrics are simulated:
sentences differ in length and difficulty, and the true value is that of a very large corpus.
`ATTACK_ROUNDS=20` simulates 20 times as many corpora of more kinds, and prints the figures.
"""

import os

import numpy as np
import pytest
from scipy import special, stats

from regard.metrics import (
    GoldLinks,
    alignment_metrics,
    bleu,
    entity_f1,
    exact_binomial,
    interval,
    macro_f1,
    metric_value,
    perplexity,
    token_accuracy,
)
from regard.metrics.bootstrap import difference_interval
from regard.metrics.intervals import incomplete_beta, student_quantile
from regard.metrics.tally import Tally

ROUNDS = int(os.environ.get("ATTACK_ROUNDS", "1"))
CORPORA = 60 * ROUNDS
LARGE = 100_000 if ROUNDS == 1 else 1_000_000
SIZES = (10, 50, 300) if ROUNDS == 1 else (10, 20, 50, 100, 300, 1000)
SHARES = (0.5, 0.9, 0.98) if ROUNDS == 1 else (0.5, 0.7, 0.9, 0.95, 0.98)


@pytest.mark.parametrize("n", [5, 10, 30, 100])
def test_the_interval_of_a_share_covers_it_at_least_as_often_as_it_claims(n):
    ends = np.array([exact_binomial(k, n) for k in range(n + 1)])
    for p in np.linspace(0.5, 0.98, 97):
        covered = (ends[:, 0] <= p) & (p <= ends[:, 1])
        assert (stats.binom.pmf(np.arange(n + 1), n, p) * covered).sum() >= 0.95


@pytest.mark.parametrize(("right", "n"), [(0, 7), (7, 7), (3, 11), (998, 1000), (31, 100_003)])
def test_the_interval_of_a_share_is_that_of_scipy(right, n):
    theirs = stats.binomtest(right, n).proportion_ci(method="exact")
    assert exact_binomial(right, n) == pytest.approx((theirs.low, theirs.high), abs=1e-10)


def test_quantiles_are_those_of_scipy():
    for degrees in (1, 4, 9, 19, 299, 9999, 20_000):
        theirs = stats.t.ppf(0.975, degrees)
        assert student_quantile(0.975, degrees) == pytest.approx(theirs, rel=1e-4)
    for a, b, x in [(0.5, 3.0, 0.01), (7.0, 2.0, 0.999), (1e4, 13.0, 0.9985), (3.0, 3.0, 0.5)]:
        assert incomplete_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-9)


def difficulty(generator, p, size):
    """The probability of a right answer, which differs between sentences."""
    return generator.beta(12 * p, 12 * (1 - p), size)


def token_counts(generator, n, p):
    lengths = 3 + generator.poisson(12, n)
    return np.stack([generator.binomial(lengths, difficulty(generator, p, n)), lengths], -1)


def entity_counts(generator, n, p):
    gold, q = generator.poisson(1.5, n), difficulty(generator, p, n)
    correct = generator.binomial(gold, q)
    return np.stack([correct, correct + generator.poisson(1.5 * (1 - q)), gold], -1)


def link_counts(generator, n, p):
    sure, q = 3 + generator.poisson(8, n), difficulty(generator, p, n)
    right = generator.binomial(sure, q)
    possible = right + generator.binomial(generator.poisson(2, n), q)
    return np.stack([right, possible, possible + generator.binomial(sure, 1 - q), sure], -1)


def label_counts(generator, n, p):
    kinds = generator.choice(3, size=n, p=[0.5, 0.3, 0.2])
    wrong = generator.random(n) > p
    guesses = np.where(wrong, (kinds + generator.integers(1, 3, n)) % 3, kinds)
    gold, predicted = np.eye(3)[kinds], np.eye(3)[guesses]
    return np.stack([gold * predicted, predicted, gold], -1).reshape(n, 9)


def ngram_counts(generator, n, p):
    """Words of a hypothesis are right one by one; references are a little longer."""
    lengths = np.clip(5 + generator.poisson(9, n), 5, 30)
    right = generator.random((n, 30)) < difficulty(generator, p, n)[:, None]
    right &= np.arange(30) < lengths[:, None]
    run, matches = right, []
    for order in range(4):
        matches.append(run.sum(1))
        run = run[:, :-1] & right[:, order + 1 :]
    totals = [lengths - order for order in range(4)]
    references = np.maximum(1, lengths + generator.integers(-1, 3, n))
    return np.stack([lengths, references, *matches, *totals], -1)


def loss_counts(generator, n, spread):
    lengths = 5 + generator.poisson(15, n)
    rates = 2.0 * np.exp(spread * generator.standard_normal(n))
    return np.stack([generator.gamma(lengths, rates), lengths], -1)


LINKS = [GoldLinks(frozenset({(0, 0)}), frozenset({(0, 0)}))]
CORPUS_METRICS = {
    "token accuracy": (token_accuracy([["a"]], [["a"]]), token_counts, SHARES),
    "entity F1": (entity_f1([["O"]], [["O"]]), entity_counts, SHARES),
    "AER": (alignment_metrics([{(0, 0)}], LINKS)["aer"], link_counts, SHARES),
    "macro F1": (macro_f1(["a", "b", "c"], ["a", "b", "c"]), label_counts, SHARES),
    "BLEU": (bleu(["a"], ["a"]), ngram_counts, (0.6, 0.8, 0.9)),
    "perplexity": (perplexity([1.0], [1]), loss_counts, (0.1, 0.2, 0.3, 0.4)),
}


def of_counts(tally, counts):
    return Tally(**{**vars(tally), "statistics": counts.astype(np.float64)})


@pytest.mark.parametrize("name", CORPUS_METRICS)
def test_intervals_of_corpus_metrics_cover_the_true_value(name):
    """Nowhere fewer than 93 %, where 95 % are claimed; more where few examples vary at all."""
    generator = np.random.default_rng(17)
    tally, counts, shares = CORPUS_METRICS[name]
    pooled, noise = [], 3 * np.sqrt(0.95 * 0.05 / CORPORA)
    for p in shares:
        truth = metric_value(of_counts(tally, counts(generator, LARGE, p)))
        for n in SIZES:
            ends = [interval(of_counts(tally, counts(generator, n, p))) for _ in range(CORPORA)]
            covered = [low <= truth <= high for low, high, missing in ends if not missing]
            if len(covered) < CORPORA / 2:
                continue  # mostly no interval: too few examples
            if ROUNDS > 1:
                print(f"{name:15} p = {p:<5} n = {n:<5} {100 * np.mean(covered):.1f} %")
            assert np.mean(covered) > 0.93 - noise, (p, n)
            if n >= 50:
                pooled += covered
    assert 0.93 <= np.mean(pooled) <= 0.97


@pytest.mark.parametrize("kind", ["share", "f1"])
@pytest.mark.parametrize("n", [10, 50, 300])
def test_intervals_of_differences_cover_the_true_difference(kind, n):
    generator = np.random.default_rng(5)
    covered = []
    for _ in range(2 * CORPORA):
        easy = generator.beta(3, 1, n)
        if kind == "share":
            first, second = generator.random((2, n)) < np.stack([easy, easy * 0.9])
            rows = [np.stack([hits, np.ones(n)], -1) for hits in (first, second)]
            tallies = [Tally("share", x.astype(float), _ratio, unit="share") for x in rows]
            truth = 0.75 - 0.675
        else:
            lengths = 5 + generator.poisson(5, n)
            right = [generator.binomial(lengths, q) for q in (easy, easy * 0.9)]
            rows = [np.stack([hits, lengths], -1) for hits in right]
            tallies = [Tally("f1", x.astype(float), _ratio, unit="f1") for x in rows]
            truth = 0.75 - 0.675
        low, high, missing = difference_interval(*tallies)
        assert not missing
        covered.append(low <= truth <= high)
    assert 0.93 - 0.04 / np.sqrt(ROUNDS) <= np.mean(covered) <= 0.99


def _ratio(sums):
    return sums[:, 0] / sums[:, 1]
