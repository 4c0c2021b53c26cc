"""Intervals and tests over seeds and sentences, against scipy, by hand and in simulations."""

import numpy as np
import pytest
from scipy import stats

from regard.compare.comparison_result import system_values
from regard.compare.significance import SystemValues, estimate, holm, paired_difference


def system(values, resampled=None):
    values = np.asarray(values, dtype=float)
    return SystemValues(values, values[:, None] if resampled is None else resampled)


def test_without_noise_of_sentences_it_is_the_test_of_welch():
    first, second = [0.81, 0.84, 0.79, 0.86], [0.74, 0.80, 0.71, 0.77]
    ours = paired_difference(system(first), system(second))
    theirs = stats.ttest_ind(first, second, equal_var=False)
    degrees = int(theirs.df)  # ours takes whole degrees of freedom, the more careful ones
    assert ours.p_value == pytest.approx(2 * stats.t.sf(abs(theirs.statistic), degrees), rel=1e-6)
    error = (ours.high - ours.low) / 2 / stats.t.ppf(0.975, degrees)
    assert error == pytest.approx(abs(ours.value / theirs.statistic))


def test_the_interval_of_one_seed_is_that_of_the_sentences():
    rng = np.random.default_rng(0)
    resampled = rng.normal(0.7, 0.02, size=(1, 4000))
    found = estimate(system([0.7], resampled))
    assert found.low == pytest.approx(0.7 - 1.96 * 0.02, abs=0.001)
    assert np.isnan(found.seed_error)
    assert found.sentence_error == pytest.approx(0.02, rel=0.05)


def test_sentences_are_paired():
    """Noise that both systems share is no noise of their difference."""
    shared = np.random.default_rng(1).normal(0.5, 0.1, size=(1, 1000))
    found = paired_difference(system([0.52], shared + 0.02), system([0.5], shared))
    assert found.p_value < 1e-6
    alone = paired_difference(system([0.52], shared + 0.02), system([0.5], shared[:, ::-1]))
    assert alone.p_value > 0.5


def test_equal_systems_do_not_differ():
    found = paired_difference(system([0.9, 0.9]), system([0.9, 0.9]))
    assert (found.p_value, found.detectable) == (1.0, 0.0)


def test_holm_is_the_procedure_by_its_definition():
    rng = np.random.default_rng(2)
    for _ in range(50):
        p = rng.uniform(0, 0.2, size=rng.integers(1, 7))
        adjusted = holm(list(p))
        for level in (0.01, 0.05, 0.1):
            rejected = np.zeros(len(p), dtype=bool)
            for rank, i in enumerate(np.argsort(p)):  # step down until one is not rejected
                if p[i] > level / (len(p) - rank):
                    break
                rejected[i] = True
            assert [a <= level for a in adjusted] == rejected.tolist()
    assert holm([0.02, float("nan")])[0] == 0.02


def trained(rng, difficulty, counts, *, seeds, seed_noise, shift=0.0):
    """A simulated classifier: which sentences it gets right with each seed."""
    size = len(difficulty)
    skill = difficulty + shift + rng.normal(0, 0.5, size=(seeds, size))
    right = (skill + rng.normal(0, seed_noise, size=(seeds, 1)) > 0).astype(float)
    return SystemValues(right.mean(1), right @ counts.T / size)


def simulate(trials, *, seed_noise, shift=0.0, seeds=4, size=150, rng_seed=0):
    rng = np.random.default_rng(rng_seed)
    for _ in range(trials):
        difficulty = rng.normal(0.8, 1, size)
        counts = rng.multinomial(size, np.full(size, 1 / size), size=100).astype(float)
        systems = [
            trained(rng, difficulty, counts, seeds=seeds, seed_noise=seed_noise, shift=s)
            for s in (shift, 0.0)
        ]
        yield paired_difference(*systems)


def records(right, counts):
    """What workers write of a classifier, from which sentences it gets right with each seed."""
    examples = len(counts[0])
    for row in right:
        low, high = stats.binomtest(int(row.sum()), examples).proportion_ci()
        measured = {"value": row.mean(), "low": low, "high": high, "unit": "share"}
        resampled = list(row @ counts.T / examples)
        yield {"metric": measured, "resampled": resampled, "examples": examples}


@pytest.mark.parametrize(("size", "rate"), [(10, 0.5), (20, 0.9)])
def test_few_sentences_prove_little(size, rate):
    """One seed: two equal systems differ, and intervals miss, in about one case of twenty."""
    rng, trials = np.random.default_rng(4), 300
    found = missed = 0
    for _ in range(trials):
        skill = rng.normal(stats.norm.ppf(rate) * np.sqrt(2), 1, size)
        counts = rng.multinomial(size, np.full(size, 1 / size), size=100).astype(float)
        right = skill + rng.normal(0, 1, size=(2, 1, size)) > 0
        first, second = (system_values(list(records(one * 1.0, counts))) for one in right)
        found += paired_difference(first, second).p_value < 0.05
        interval = estimate(first)
        missed += not interval.low <= rate <= interval.high
    assert found <= 0.08 * trials
    assert missed <= 0.08 * trials


def test_a_system_without_an_error_is_not_perfect_for_sure():
    counts = np.random.default_rng(5).multinomial(6, np.full(6, 1 / 6), size=500).astype(float)
    perfect, third = np.ones((1, 6)), np.array([[1, 1, 0, 0, 0, 0.0]])
    first, second = (system_values(list(records(right, counts))) for right in (perfect, third))
    exact = stats.binomtest(6, 6).proportion_ci()
    assert (estimate(first).low, estimate(first).high) == pytest.approx((exact.low, 1))
    assert paired_difference(first, second).p_value > 0.02  # an exact McNemar test says 0.125
    equal = paired_difference(first, first)
    assert (equal.value, equal.p_value) == (0, pytest.approx(1))
    assert equal.high > 0.2
    same = system_values(list(records(third, counts)))
    alike = paired_difference(same, same)  # no sentence of six, but perhaps the seventh
    assert alike.low < -0.2 < 0.2 < alike.high
    assert alike.detectable > 0.3
    two = [*records(np.ones((2, 6)), counts)]
    assert estimate(system_values(two)).high == 1


@pytest.mark.parametrize("seed_noise", [0.0, 0.15])
def test_the_same_system_differs_from_itself_in_at_most_five_percent(seed_noise):
    found = sum(one.p_value < 0.05 for one in simulate(400, seed_noise=seed_noise))
    assert found <= 20


@pytest.mark.parametrize(("seeds", "size"), [(2, 150), (3, 400), (5, 40)])
def test_few_seeds_and_many_sentences_do_not_make_it_bold(seeds, size):
    """The rate is about 5 % here; of 400 trials, 30 are found with a probability of 1 %."""
    trials = simulate(400, seed_noise=0.15, seeds=seeds, size=size)
    assert sum(one.p_value < 0.05 for one in trials) < 30


@pytest.mark.parametrize(("seeds", "size"), [(4, 150), (3, 100), (5, 40)])
def test_a_difference_of_the_size_that_is_claimed_is_found_four_times_out_of_five(seeds, size):
    systems = {"seed_noise": 0.1, "seeds": seeds, "size": size}
    claimed = np.mean([one.detectable for one in simulate(100, **systems)])
    shift = 0.0
    while np.mean([one.value for one in simulate(60, shift=shift, **systems)]) < claimed:
        shift += 0.05
    found = [one.p_value < 0.05 for one in simulate(200, shift=shift, rng_seed=3, **systems)]
    assert np.mean(found) >= 0.8
