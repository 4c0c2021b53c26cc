"""Accuracy, exact match and F1 of labels against scikit-learn and sums by hand."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from regard.metrics import (
    accuracy,
    exact_match,
    macro_f1,
    metric_value,
    multilabel_macro_f1,
    multilabel_micro_f1,
    perplexity,
    token_accuracy,
)

LABEL = st.sampled_from(["north", "east", "south", "west", "nowhere"])
LABELS = st.sets(LABEL)


@given(st.lists(st.tuples(LABEL, LABEL), min_size=1, max_size=23))
def test_one_label_a_sentence(pairs):
    predicted, gold = (list(side) for side in zip(*pairs, strict=True))
    assert metric_value(accuracy(predicted, gold)) == pytest.approx(accuracy_score(gold, predicted))
    theirs = f1_score(gold, predicted, average="macro", zero_division=0)
    assert metric_value(macro_f1(predicted, gold)) == pytest.approx(theirs)


@given(st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=23))
def test_several_labels_a_sentence(pairs):
    predicted, gold = (list(side) for side in zip(*pairs, strict=True))
    occurring = sorted(set().union(*predicted, *gold))
    assume(len(occurring) > 1)  # scikit-learn takes a single column for a yes-or-no label
    binary = MultiLabelBinarizer(classes=occurring).fit([occurring])
    y_true, y_pred = binary.transform(gold), binary.transform(predicted)
    micro = f1_score(y_true, y_pred, average="micro", zero_division=0)
    macro = f1_score(y_true, y_pred, average="macro", zero_division=0)
    assert metric_value(multilabel_micro_f1(predicted, gold)) == pytest.approx(micro)
    assert metric_value(multilabel_macro_f1(predicted, gold)) == pytest.approx(macro)


def test_no_label_at_all():
    assert metric_value(multilabel_macro_f1([[], []], [[], []])) == 0
    assert metric_value(multilabel_micro_f1([[], []], [[], []])) == 0


def test_a_label_that_is_not_listed():
    with pytest.raises(ValueError, match=r"label 'c' is not among the labels \['a', 'b'\]"):
        macro_f1(["a", "c"], ["a", "b"], labels=["a", "b"])


def test_exact_match_of_texts_and_tokens():
    assert metric_value(exact_match(["a b", "c"], ["a b", "d"])) == 0.5
    assert metric_value(exact_match([[1, 2], (3,), []], [(1, 2), [3], [1]])) == pytest.approx(2 / 3)
    assert metric_value(exact_match([np.array([1, 2])], [[1, 2]])) == 1


def test_token_accuracy_counts_tokens():
    predicted = [["B", "I", "O"], ["O"], []]
    gold = [["B", "O", "O"], ["O"], []]
    assert metric_value(token_accuracy(predicted, gold)) == 0.75
    with pytest.raises(ValueError, match="sentence 1 has 2 predicted tags but 1 gold ones"):
        token_accuracy([["O"], ["O", "O"]], [["O"], ["O"]])


def test_counts_must_agree():
    with pytest.raises(ValueError, match="predicted 1, gold 2"):
        accuracy([1], [1, 2])
    with pytest.raises(ValueError, match="predicted 0, gold 1"):
        multilabel_micro_f1([], [{1}])


def test_perplexity_per_token_word_and_byte():
    probabilities = [[0.5, 0.25, 0.125], [0.1]]
    nlls = [-sum(np.log(p)) for p in probabilities]
    product = 0.5 * 0.25 * 0.125 * 0.1
    per_token = perplexity(nlls, [3, 1])
    assert per_token.name == "perplexity per token"
    assert metric_value(per_token) == pytest.approx(product ** (-1 / 4))
    assert metric_value(perplexity(nlls, [2, 1], per="word")) == pytest.approx(product ** (-1 / 3))
    assert metric_value(perplexity(nlls, [11, 5], per="byte")) == pytest.approx(
        product ** (-1 / 16)
    )
    assert metric_value(perplexity([1e6], [1])) == np.inf
    assert np.isnan(metric_value(perplexity([0.0], [0])))


def test_perplexity_of_a_uniform_model_is_the_vocabulary_size():
    lengths = [3, 5, 7]
    assert metric_value(perplexity([n * np.log(29) for n in lengths], lengths)) == pytest.approx(29)
