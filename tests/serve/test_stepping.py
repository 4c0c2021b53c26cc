"""Attention taken apart over HTTP: the numbers by hand, and a model's own weights again."""

import math

import numpy as np
import pytest
from asking import TASKS

TEXTS = {
    "translation": "the film was great 3",
    "language": "the film was",
    "classify": "the film was very bad",
    "tag": "the film is not great",
}


def by_hand(found):
    """Weights and output from the query and keys that were told, in plain loops."""
    products = []
    for key in found["keys"]:
        pairs = list(zip(found["query"], key, strict=True))
        if found["outer"] is None:
            products.append(sum(q * k for q, k in pairs))
        else:
            hidden = [math.tanh(q + k) for q, k in pairs]
            products.append(sum(w * h for w, h in zip(found["outer"], hidden, strict=True)))
    scores = [p * (found["scale"] or 1.0) for p in products]
    powers = [
        math.exp(s) if open_ else 0.0 for s, open_ in zip(scores, found["allowed"], strict=True)
    ]
    weights = [p / sum(powers) for p in powers]
    wide = len(found["output"])
    output = [
        sum(w * v[i] for w, v in zip(weights, found["values"], strict=True)) for i in range(wide)
    ]
    return scores, weights, output


def test_the_sentence_needs_no_model_and_agrees_with_a_sum_by_hand(ask):
    found = ask("GET", "/v1/steps").json
    assert found["words"] == ["The", "early", "bird", "catches", "the", "worm"]
    assert [s["score"] for s in found["steps"]] == [
        score for score in ("scaled_dot", "bilinear", "additive") for _ in range(6)
    ]
    for one in found["steps"]:
        scores, weights, output = by_hand(one)
        np.testing.assert_allclose(one["scores"], scores, atol=1e-5)
        np.testing.assert_allclose(one["weights"], weights, atol=1e-5)
        np.testing.assert_allclose(one["output"], output, atol=1e-5)
    bird = found["steps"][2]
    assert bird["products"] == [0.0, 3.0, 1.125, 2.5, 0.0, 0.5]
    assert bird["scale"] == 0.5


@pytest.mark.parametrize("task", TASKS)
def test_every_row_of_a_model_is_that_of_its_trace(ask, task):
    text = TEXTS[task]
    trace = ask("POST", f"/v1/models/my-{task}/explain", {"text": text}).json
    looks = [look for look in trace["looks"] if not look["name"].endswith("experts")]
    assert looks or task == "tag"
    for look in looks[:4]:
        place = {name: look[name] for name in ("layer", "head") if name in look}
        for row, weights in enumerate(look["weights"][:3]):
            body = {"text": text, "look": look["name"], "row": row, **place}
            got = ask("POST", f"/v1/models/my-{task}/steps", body)
            assert got.status == 200, got.raw
            found = got.json
            np.testing.assert_allclose(
                found["weights"], weights[: len(found["weights"])], atol=1e-4
            )
            output = np.array(found["weights"]) @ np.array(found["values"])
            np.testing.assert_allclose(found["output"], output, atol=1e-4)
            if task != "language" or row:  # the first word may look nowhere
                np.testing.assert_allclose(found["scores"], by_hand(found)[0], atol=1e-4)


def test_a_row_that_is_not_there_is_a_problem(ask):
    body = {"text": "the film", "look": "source", "row": 4000}
    got = ask("POST", "/v1/models/my-translation/steps", body)
    assert got.status == 422
    assert "cannot be taken apart" in got.json["detail"]
    got = ask("POST", "/v1/models/my-translation/steps", {**body, "look": "nothing", "row": 0})
    assert got.status == 422
    assert "source" in got.json["detail"]


@pytest.mark.parametrize("score", ["scaled_dot", "bilinear", "additive"])
def test_any_text_has_made_up_vectors_and_right_sums(ask, score):
    words = ["</script>", "👩🏽‍🚀", "worm", "\u202egnirts", "x" * 900, "worm"]
    body = {"text": "  ".join(words), "row": 2, "score": score}
    found = ask("POST", "/v1/steps", body).json
    assert found["words"] == words
    (one,) = found["steps"]
    assert (one["asking"], one["asked"], one["score"]) == ("worm", words, score)
    _, weights, output = by_hand(one)
    np.testing.assert_allclose(one["weights"], weights, atol=1e-5)
    np.testing.assert_allclose(one["output"], output, atol=1e-5)
    assert one["weights"][2] == one["weights"][5]
    assert ask("POST", "/v1/steps", body).json == found


def test_the_lectures_sentence_keeps_its_own_vectors(ask):
    all_rows = ask("GET", "/v1/steps").json
    body = {"text": "The early bird catches the worm", "row": 2}
    assert ask("POST", "/v1/steps", body).json["steps"] == [all_rows["steps"][2]]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"text": "two words", "row": 2}, "row 2 of a text with 2 words"),
        ({"text": " \n ", "row": 0}, "row 0 of a text with 0 words"),
        ({"text": "", "row": 0}, "at least 1"),
        ({"text": "x" * 1001, "row": 0}, "at most 1000"),
        ({"text": "x", "row": 0, "score": "magic"}, "expected one of scaled_dot"),
    ],
)
def test_texts_that_cannot_be_taken_apart_are_problems(ask, body, words):
    got = ask("POST", "/v1/steps", body)
    assert got.status == 422
    assert words in got.json["detail"]
