"""Perplexity: how many equally likely choices a language model chooses between."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from regard.metrics.tally import Tally, ratio, rows, same_count


def perplexity(negative_log_likelihoods: ArrayLike, counts: ArrayLike, per: str = "token") -> Tally:
    """exp(Σᵢ −log p(sentence i) / Σᵢ countᵢ), from natural logarithms summed over each sentence.

    The unit is what `counts` counts: tokens, words or bytes of the same text. Models with
    different tokenisers are comparable per word or per byte only, never per token.

    >>> from regard.metrics import metric_value
    >>> round(metric_value(perplexity([6.93147, 6.93147], [5, 5])), 3)
    4.0
    """
    nlls, units = np.asarray(negative_log_likelihoods), np.asarray(counts)
    same_count(negative_log_likelihoods=nlls, counts=units)
    return Tally(
        f"perplexity per {per}",
        rows([nlls, units]),
        _exponential_of_mean,
        log_scale=True,
        min_examples=20,
    )


def _exponential_of_mean(sums: Float[np.ndarray, "r 2"]) -> Float[np.ndarray, " r"]:
    with np.errstate(over="ignore"):
        perplexities: np.ndarray = np.exp(ratio(sums[:, 0], sums[:, 1]))
    return perplexities
