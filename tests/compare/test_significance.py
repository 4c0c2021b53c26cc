"""Intervals and tests over seeds and sentences, against scipy, by hand and in simulations."""

import numpy as np
import pytest
from scipy import stats

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


@pytest.mark.parametrize("seed_noise", [0.0, 0.15])
def test_the_same_system_differs_from_itself_in_at_most_five_percent(seed_noise):
    found = sum(one.p_value < 0.05 for one in simulate(400, seed_noise=seed_noise))
    assert found <= 20


def test_a_difference_of_the_size_that_is_claimed_is_found_four_times_out_of_five():
    claimed = np.mean([one.detectable for one in simulate(100, seed_noise=0.1)])
    shift = 0.0
    while np.mean([one.value for one in simulate(60, seed_noise=0.1, shift=shift)]) < claimed:
        shift += 0.05
    found = [one.p_value < 0.05 for one in simulate(200, seed_noise=0.1, shift=shift, rng_seed=3)]
    assert np.mean(found) >= 0.8
