"""Entity F1 against seqeval, whose default mode reads tags as conlleval does."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import classification_report, f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities

from regard.metrics import entities, entity_f1, entity_metrics, entity_types, measure, metric_value

TAG = st.sampled_from(["O"] + [f"{mark}-{kind}" for mark in "BIES" for kind in ("PER", "B-LOC")])
SENTENCE = st.lists(st.tuples(TAG, TAG), max_size=11)


@given(st.lists(TAG, max_size=17))
def test_spans_equal_seqevals(tags):
    theirs = [(kind, start, last + 1) for kind, start, last in get_entities(tags)]
    assert entities(tags) == theirs


@given(st.lists(SENTENCE, min_size=1, max_size=7))
def test_scores_equal_seqevals(corpus):
    predicted = [[ours for ours, _ in sentence] for sentence in corpus]
    gold = [[theirs for _, theirs in sentence] for sentence in corpus]
    ours = {name: metric_value(tally) for name, tally in entity_metrics(predicted, gold).items()}
    with warnings.catch_warnings():
        # seqeval mentions undefined scores by warnings.
        warnings.simplefilter("ignore")
        assert ours["f1"] == pytest.approx(f1_score(gold, predicted))
        assert ours["precision"] == pytest.approx(precision_score(gold, predicted))
        assert ours["recall"] == pytest.approx(recall_score(gold, predicted))
        types = entity_types(gold)
        if types:
            report = classification_report(gold, predicted, output_dict=True)
            for kind in types:
                found = metric_value(entity_metrics(predicted, gold, type=kind)["f1"])
                assert found == pytest.approx(report[kind]["f1-score"])


def test_schemes_by_hand():
    assert entities(["B-X", "I-X", "E-X"]) == [("X", 0, 3)]
    assert entities(["I-X", "I-X", "B-X", "O"]) == [("X", 0, 2), ("X", 2, 3)]
    assert entities(["S-X", "S-X"]) == [("X", 0, 1), ("X", 1, 2)]
    assert entities([]) == []


def test_only_exact_spans_count():
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG"]]
    predicted = [["B-PER", "O", "O", "B-LOC"], ["O", "B-PER"]]
    tallies = entity_metrics(predicted, gold)
    assert metric_value(tallies["precision"]) == pytest.approx(1 / 3)
    assert metric_value(tallies["f1"]) == pytest.approx(1 / 3)
    assert entity_types(gold) == ["LOC", "ORG", "PER"]
    assert measure(entity_f1(predicted, gold)).n == 2
    assert entity_metrics(predicted, gold, type="LOC")["f1"].name == "entity F1 of LOC"


@pytest.mark.parametrize("tag", ["X-PER", "", "PER", "O-PER", "b-PER"])
def test_unknown_tags(tag):
    with pytest.raises(ValueError, match=r"word 1: unknown tag .*known: O, B-…"):
        entities(["O", tag])
    with pytest.raises(ValueError, match="sentence 0 has 1 predicted tags but 2 gold ones"):
        entity_f1([["O"]], [["O", "O"]])
