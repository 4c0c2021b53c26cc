"""Metrics of each class and confusion matrices, against scikit-learn and seqeval."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import classification_report as seqeval_report
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from regard.metrics import entity_report, label_report, label_set_report, tag_report

LABEL = st.sampled_from(["a", "b", "c", "d"])
PAIRS = st.lists(st.tuples(LABEL, LABEL), min_size=1, max_size=23)
TAG = st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y", "E-Y", "S-X"])
SENTENCES = st.lists(st.lists(st.tuples(TAG, TAG), min_size=1, max_size=11), min_size=1, max_size=5)


def rows(report):
    return [(one.precision, one.recall, one.f1, one.support) for one in report.classes]


def confusions(gold, predicted, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn warns of a single label
        return confusion_matrix(gold, predicted, labels=labels)


@given(PAIRS)
def test_labels_equal_scikit_learns(pairs):
    predicted, gold = [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
    report = label_report(predicted, gold)
    names = [one.name for one in report.classes]
    theirs = precision_recall_fscore_support(gold, predicted, labels=names, zero_division=0)
    assert np.allclose(np.array(rows(report)).T, np.array(theirs))
    assert names == sorted({*predicted, *gold})
    assert report.confusion.labels == tuple(names)
    assert np.array_equal(report.confusion.counts, confusions(gold, predicted, names))


@given(st.lists(st.tuples(st.sets(LABEL), st.sets(LABEL)), min_size=1, max_size=13))
def test_several_labels_equal_scikit_learns(pairs):
    report = label_set_report([ours for ours, _ in pairs], [theirs for _, theirs in pairs])
    names = [one.name for one in report.classes]
    sides = zip(*pairs, strict=True)
    ours, theirs = (np.array([[name in one for name in names] for one in side]) for side in sides)
    if len(names) > 1:  # scikit-learn reads one column as two classes
        expected = precision_recall_fscore_support(theirs, ours, average=None, zero_division=0)
        assert np.allclose(np.array(rows(report)).T, np.array(expected))
    assert report.confusion is None


@given(SENTENCES)
def test_entity_types_equal_seqevals(corpus):
    predicted = [[ours for ours, _ in sentence] for sentence in corpus]
    gold = [[theirs for _, theirs in sentence] for sentence in corpus]
    report = entity_report(predicted, gold)
    if not report.classes:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seqeval warns of undefined values
        theirs = seqeval_report(gold, predicted, output_dict=True)
    for one in report.classes:
        row = theirs[one.name]
        expected = [row["precision"], row["recall"], row["f1-score"], row["support"]]
        assert [one.precision, one.recall, one.f1, one.support] == pytest.approx(expected)
    ours, theirs = (
        [tag[2:] or "O" for sentence in side for tag in sentence] for side in (predicted, gold)
    )
    labels = list(report.confusion.labels)
    assert np.array_equal(report.confusion.counts, confusions(theirs, ours, labels))


def test_tags_are_counted_word_by_word_and_the_record_is_plain():
    report = tag_report([["N", "V"], ["N"]], [["N", "N"], ["N"]])
    assert rows(report) == [(1.0, pytest.approx(2 / 3), pytest.approx(0.8), 3), (0.0, 0.0, 0.0, 0)]
    record = json.loads(json.dumps(report.record()))
    assert record["confusion"] == {
        "labels": ["N", "V"],
        "counts": [[2, 1], [0, 0]],
        "unit": "words",
    }
    assert record["kind"] == "label"
    assert record["classes"]["V"]["support"] == 0
