"""Metrics by name: what each compares, its options, and rows of other packages."""

from importlib.metadata import EntryPoint

import numpy as np
import pytest
from sacrebleu import corpus_bleu, corpus_chrf
from sklearn.metrics import accuracy_score, f1_score

from regard import plugins
from regard.errors import RegardError
from regard.metrics import (
    METRICS,
    GoldLinks,
    Metric,
    Tally,
    metric_by_name,
    metric_names,
    metric_value,
)
from regard.metrics.tally import rows
from regard.plugins import PluginWarning

HERE = "tests.metrics.test_metric_table"

TEXTS = (
    ["The cat sat on the mat .", "A dog barked at me"],
    ["the cat sat on a mat .", "A dog barked"],
)
LABELS = ["a", "b", "b", "c", "a"], ["a", "b", "a", "c", "c"]
SETS = [("a", "b"), ("b",), ()], [("b", "a"), ("a", "b"), ("c",)]
TAGS = [["B-X", "I-X", "O"], ["B-Y", "O"]], [["B-X", "I-X", "O"], ["B-X", "B-Y"]]
SYMBOLS = [["1", "2", "3"], ["1"], ["2"]], [["1", "3"], ["1", "2"], ["2"]]
LINKS = (
    [{(0, 0), (1, 2)}, {(0, 1)}],
    [
        GoldLinks(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 2)})),
        GoldLinks(frozenset({(0, 0)}), frozenset({(0, 0)})),
    ],
)
KNOWN = {
    ("bleu", "texts"): corpus_bleu(TEXTS[0], [TEXTS[1]], force=True).score,
    ("chrf", "texts"): corpus_chrf(TEXTS[0], [TEXTS[1]]).score,
    ("exact_match", "texts"): 0.0,
    ("exact_match", "symbol sequences"): 1 / 3,
    ("symbol_accuracy", "symbol sequences"): 3 / 5,
    ("accuracy", "labels"): accuracy_score(LABELS[1], LABELS[0]),
    ("macro_f1", "labels"): f1_score(LABELS[1], LABELS[0], average="macro"),
    ("accuracy", "label sets"): 1 / 3,
    ("micro_f1", "label sets"): 2 * 3 / (3 + 5),
    ("macro_f1", "label sets"): (2 / 3 + 1 + 0) / 3,
    ("accuracy", "tag sequences"): 3 / 5,
    ("f1", "tag sequences"): 2 * 1 / (2 + 3),
    ("precision", "tag sequences"): 1 / 2,
    ("recall", "tag sequences"): 1 / 3,
    ("precision", "word alignments"): 2 / 3,
    ("recall", "word alignments"): 1 / 3,
    ("aer", "word alignments"): 1 - (1 + 2) / (3 + 3),
}
INPUTS = {
    "texts": TEXTS,
    "labels": LABELS,
    "label sets": SETS,
    "tag sequences": TAGS,
    "symbol sequences": SYMBOLS,
    "word alignments": LINKS,
}


def test_every_row_is_tested() -> None:
    assert set(KNOWN) == {(name, kind) for name in METRICS for kind in METRICS[name].compares}
    assert [name for name in METRICS if METRICS[name].lower_is_better] == ["aer"]


@pytest.mark.parametrize(("name", "kind"), KNOWN)
def test_values(name: str, kind: str) -> None:
    tally = metric_by_name(name, kind).tally(kind, *INPUTS[kind])
    assert metric_value(tally) == pytest.approx(KNOWN[name, kind], abs=1e-9)
    assert name in metric_names(kind)


@pytest.mark.parametrize("name", ["bleu", "chrf"])
def test_options_reach_the_metric(name: str) -> None:
    metric = METRICS[name]
    assert "lowercase" in metric.options("texts")
    lowered = metric.tally("texts", *TEXTS, lowercase=True)
    by_hand = [[text.lower() for text in texts] for texts in TEXTS]
    assert metric_value(lowered) == pytest.approx(metric_value(metric.tally("texts", *by_hand)))
    assert metric_value(lowered) > metric_value(metric.tally("texts", *TEXTS))


def same_length(predicted: list[str], gold: list[str], *, within: int = 0) -> Tally:
    near = [abs(len(p) - len(g)) <= within for p, g in zip(predicted, gold, strict=True)]
    return Tally("same length", rows([near, np.ones(len(near))]), lambda s: s[:, 0] / s[:, 1])


SAME_LENGTH = Metric({"texts": same_length})


def test_metrics_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = {"same_length": f"{HERE}:SAME_LENGTH", "broken": "no_such_package:METRIC"}
    points = [EntryPoint(name, value, METRICS.group) for name, value in declared.items()]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points)
    monkeypatch.setattr(METRICS, "_plugins", None)
    monkeypatch.setattr(METRICS, "_rows", dict(METRICS._rows))
    monkeypatch.setattr(METRICS, "_broken", set())
    with pytest.warns(PluginWarning, match="plug-in 'broken' .*regard.metrics.* is skipped"):
        names = metric_names("texts")
    assert names == ["bleu", "chrf", "exact_match", "same_length"]
    assert "same_length" not in metric_names("labels")
    for name in ("same_length", f"{HERE}:SAME_LENGTH"):
        metric = metric_by_name(name, "texts")
        assert metric.options("texts") == ("within",)
        assert metric_value(metric.tally("texts", ["ab", "c"], ["cd", "ef"])) == 0.5
        assert metric_value(metric.tally("texts", ["ab", "c"], ["cd", "ef"], within=1)) == 1.0
    with pytest.raises(RegardError, match="unknown metric 'broken'"):
        metric_by_name("broken", "texts")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bleau", "unknown metric 'bleau': did you mean 'bleu'"),
        ("bleu", "metric 'bleu' compares texts, not labels: choose from accuracy, macro_f1"),
        ("math:pi", "metric 'math:pi': expected a regard.metrics.Metric, got 3.14"),
        ("no_such_package:METRIC", "no_such_package:METRIC: cannot be imported"),
    ],
)
def test_wrong_names(name: str, words: str) -> None:
    with pytest.raises(RegardError, match=words):
        metric_by_name(name, "labels")


def test_wrong_use() -> None:
    with pytest.raises(ValueError, match="compares labels or label sets, not texts"):
        METRICS["macro_f1"].tally("texts", *TEXTS)
    with pytest.raises(ValueError, match="a Tally of 2 rows here; got float"):
        Metric({"texts": lambda predicted, gold: 1.0}).tally("texts", *TEXTS)
    short = Metric({"texts": lambda predicted, gold: same_length(predicted[:1], gold[:1])})
    with pytest.raises(ValueError, match="a Tally of 2 rows here; got 1 rows"):
        short.tally("texts", *TEXTS)
