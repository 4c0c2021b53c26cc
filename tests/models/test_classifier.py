"""The classifier: logistic regression on a sum, poolings by hand, experts and names of weights."""

import pytest
import torch

from regard.errors import RegardError
from regard.models import Classifier, ClassifierConfig
from tests.models.catalogue import (
    BATCH,
    HEADS,
    LABELS,
    SOURCE,
    WIDTH,
    classifier,
    inputs,
)


def test_the_sum_of_words_is_logistic_regression_on_their_counts() -> None:
    model, batch = classifier(pooling="sum", encoder="none").double(), inputs()
    output = model(batch["source"], batch["lengths"])
    polarity = WIDTH**0.5 * model.inputs.words.weight @ model.decision.weight.T
    for row, length in enumerate(batch["lengths"].tolist()):
        words = batch["source"][row, :length].tolist()
        expected = model.decision.bias + sum(polarity[word] for word in words)
        torch.testing.assert_close(output.logits[row], expected)


def test_fixed_queries_are_its_equation() -> None:
    """One softmax over the words for each θ, θᵀx; the readings joined end to end."""
    model, batch = classifier(pooling="fixed", encoder="none", queries=3).double(), inputs()
    output = model(batch["source"], batch["lengths"], need_weights=True)
    for row, length in enumerate(batch["lengths"].tolist()):
        x = WIDTH**0.5 * model.inputs.words.weight[batch["source"][row, :length]]
        weights = (model.pooling.queries @ x.T).softmax(-1)
        torch.testing.assert_close(output.weights["pooling"][row, :, 0, :length], weights)
        expected = model.decision.weight @ (weights @ x).flatten() + model.decision.bias
        torch.testing.assert_close(output.logits[row], expected)


@pytest.mark.parametrize(
    ("config", "shapes"),
    [
        ({"encoder": "self"}, {"encoder.0.self": (HEADS, SOURCE, SOURCE)}),
        ({"pooling": "self"}, {"pooling.self": (HEADS, SOURCE, SOURCE)}),
        ({"pooling": "fixed", "queries": 3}, {"pooling": (3, 1, SOURCE)}),
        ({"experts": 3}, {"experts": (1, 1, 3)}),
        (
            {"encoder": "transformer", "experts": 3, "layers": 2},
            {
                "experts": (1, 1, 3),
                "encoder.0.self": (HEADS, SOURCE, SOURCE),
                "encoder.1.self": (HEADS, SOURCE, SOURCE),
                "encoder.0.experts": (1, SOURCE, 3),
                "encoder.1.experts": (1, SOURCE, 3),
            },
        ),
    ],
    ids=str,
)
def test_weights_are_called_and_shaped(config: dict, shapes: dict) -> None:
    batch = inputs()
    output = classifier(**config)(batch["source"], batch["lengths"], need_weights=True)
    expected = {"pooling": (1, 1, SOURCE)} | shapes
    found = {name: tuple(look.shape) for name, look in output.weights.items()}
    assert found == {name: (BATCH, *shape) for name, shape in expected.items()}
    assert (output.balance is not None) == ("experts" in config)


def test_parameters_counted_by_hand() -> None:
    w, f = WIDTH, 40
    model = classifier(encoder="transformer", layers=3, pooling="mean")
    block = 4 * (w * w + w) + (w * f + f) + (f * w + w) + 2 * 2 * w
    expected = 23 * w + 3 * block + 2 * w + (w * LABELS + LABELS)
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_mistakes_are_named(shapes_unchecked) -> None:
    with pytest.raises(RegardError, match="did you mean 'weighted'"):
        classifier(pooling="weigthed")
    with pytest.raises(RegardError, match="did you mean 'recurrent'"):
        classifier(encoder="recurent")
    with pytest.raises(RegardError, match="queries: expected 1 or more and at most 65536, got 0"):
        Classifier(ClassifierConfig(pooling="fixed", queries=0), 5, 2)
