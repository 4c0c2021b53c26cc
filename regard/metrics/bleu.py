"""BLEU and chrF of translations, with sacreBLEU's tokenisation, counting and signature.

The n-gram counts of each sentence come from sacreBLEU; only the last step, from summed counts to
the metric's value, is written out here, over many resamples at once.
Post (2018), A Call for Clarity in Reporting BLEU Scores, https://aclanthology.org/W18-6319.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from regard.errors import unknown
from regard.metrics.tally import Statistics, Tally, ratio, same_count

ORDER = 4


def bleu(
    hypotheses: Sequence[str],
    *references: Sequence[str],
    lowercase: bool = False,
    tokenize: str = "13a",
) -> Tally:
    """Corpus BLEU from 0 to 100: BP · exp(¼ Σₙ log pₙ), n-grams of one to four words.

    Each of `references` has one sentence per hypothesis.
    Papineni et al. (2002), https://aclanthology.org/P02-1040.
    """
    from sacrebleu.metrics.bleu import BLEU  # takes as long to import as a prediction

    if tokenize not in BLEU.TOKENIZERS:
        raise ValueError(unknown("BLEU tokenisation", tokenize, sorted(BLEU.TOKENIZERS)))
    # `force` silences a warning on the log about text that ends in " .".
    metric = BLEU(lowercase=lowercase, tokenize=tokenize, force=True)
    statistics = _counts(metric, hypotheses, references, columns=2 + 2 * ORDER)
    return Tally(
        "BLEU", statistics, _bleu, str(metric.get_signature()), unit="points", min_examples=20
    )


def chrf(
    hypotheses: Sequence[str],
    *references: Sequence[str],
    lowercase: bool = False,
    word_order: int = 0,
) -> Tally:
    """Corpus chrF from 0 to 100: F₂ of character n-grams up to six; `word_order=2` is chrF++.

    Popović (2015), https://aclanthology.org/W15-3049, and (2017),
    https://aclanthology.org/W17-4770.
    """
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF(lowercase=lowercase, word_order=word_order)
    columns = 3 * (metric.char_order + word_order)
    statistics = _counts(metric, hypotheses, references, columns)
    name = f"chrF{metric.beta}" + "+" * word_order
    return Tally(
        name,
        statistics,
        _chrf(metric.beta),
        str(metric.get_signature()),
        unit="points",
        min_examples=20,
    )


def _counts(
    metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]], columns: int
) -> Statistics:
    if not references:
        raise ValueError("at least one list of references is needed")
    same_count(
        hypotheses=hypotheses,
        **{f"references {i}": lines for i, lines in enumerate(references, 1)},
    )
    counts = metric._extract_corpus_statistics(hypotheses, references)
    metric.num_refs = len(references)
    return np.asarray(counts, dtype=np.float64).reshape(len(hypotheses), columns)


def _bleu(sums: Float[np.ndarray, "r s"]) -> Float[np.ndarray, " r"]:
    """BLEU of [hypothesis words, reference words, matches of each order, n-grams of each order].

    An order without a match counts as half a match, the next such order as a quarter, and so on
    (the smoothing of mteval-v13a).
    """
    words, reference_words = sums[:, 0], sums[:, 1]
    matches, totals = sums[:, 2 : 2 + ORDER], sums[:, 2 + ORDER :]
    missed = matches == 0
    matches = np.where(missed, 0.5 ** np.cumsum(missed, axis=1), matches)
    defined = (sums[:, 2 : 2 + ORDER].sum(1) > 0) & (totals.min(1) > 0)
    precisions = ratio(matches, totals, empty=1.0)
    shortfall = 1 - ratio(reference_words, words, empty=1.0)
    brevity = np.exp(np.minimum(shortfall, 0))
    return np.where(defined, 100 * brevity * np.exp(np.log(precisions).mean(1)), 0.0)


def _chrf(beta: int) -> Callable[[Float[np.ndarray, "r s"]], Float[np.ndarray, " r"]]:
    """chrF of [hypothesis n-grams, reference n-grams, matches] of each order in turn."""

    def formula(sums: Float[np.ndarray, "r s"]) -> Float[np.ndarray, " r"]:
        hypothesis, reference, matches = np.moveaxis(sums.reshape(len(sums), -1, 3), 2, 0)
        counted = (hypothesis > 0) & (reference > 0)
        orders = counted.sum(1).astype(np.float64)
        precision = ratio((ratio(matches, hypothesis, 0.0) * counted).sum(1), orders, empty=0.0)
        recall = ratio((ratio(matches, reference, 0.0) * counted).sum(1), orders, empty=0.0)
        weighted = beta**2 * precision + recall
        return 100 * ratio((1 + beta**2) * precision * recall, weighted, empty=0.0)

    return formula
