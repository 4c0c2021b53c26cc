"""Attention step by step over HTTP: compared with sums by hand and with the weights of traces."""

import math

import numpy as np
import pytest

from tests.serve.requests import TASKS

TEXTS = {
    "translation": "the film was great 3",
    "language": "the film was",
    "classify": "the film was very bad",
    "tag": "the film is not great",
}


def by_hand(steps):
    """Scores, weights and output from the query and keys of a response, in plain loops."""
    products = []
    for key in steps["keys"]:
        pairs = list(zip(steps["query"], key, strict=True))
        if steps["outer"] is None:
            products.append(sum(q * k for q, k in pairs))
        else:
            hidden = [math.tanh(q + k) for q, k in pairs]
            products.append(sum(w * h for w, h in zip(steps["outer"], hidden, strict=True)))
    scores = [p * (steps["scale"] or 1.0) for p in products]
    powers = [
        math.exp(s) if open_ else 0.0 for s, open_ in zip(scores, steps["allowed"], strict=True)
    ]
    weights = [p / sum(powers) for p in powers]
    wide = len(steps["output"])
    output = [
        sum(w * v[i] for w, v in zip(weights, steps["values"], strict=True)) for i in range(wide)
    ]
    return scores, weights, output


def test_the_example_needs_no_model_and_agrees_with_sums_by_hand(ask):
    response = ask("GET", "/v1/steps").json
    assert response["words"] == ["The", "early", "bird", "catches", "the", "worm"]
    assert [s["score"] for s in response["steps"]] == [
        score for score in ("scaled_dot", "bilinear", "additive") for _ in range(6)
    ]
    for one in response["steps"]:
        scores, weights, output = by_hand(one)
        np.testing.assert_allclose(one["scores"], scores, atol=1e-5)
        np.testing.assert_allclose(one["weights"], weights, atol=1e-5)
        np.testing.assert_allclose(one["output"], output, atol=1e-5)
    bird = response["steps"][2]
    assert bird["products"] == [0.0, 3.0, 1.125, 2.5, 0.0, 0.5]
    assert bird["scale"] == 0.5


@pytest.mark.parametrize("task", TASKS)
def test_rows_of_a_model_have_the_weights_of_its_trace(ask, task):
    text = TEXTS[task]
    trace = ask("POST", f"/v1/models/my-{task}/explain", {"text": text}).json
    looks = [look for look in trace["looks"] if not look["name"].endswith("experts")]
    assert looks or task == "tag"
    for look in looks[:4]:
        place = {name: look[name] for name in ("layer", "head") if name in look}
        for row, weights in enumerate(look["weights"][:3]):
            body = {"text": text, "look": look["name"], "row": row, **place}
            reply = ask("POST", f"/v1/models/my-{task}/steps", body)
            assert reply.status == 200, reply.raw
            steps = reply.json
            np.testing.assert_allclose(
                steps["weights"], weights[: len(steps["weights"])], atol=1e-4
            )
            output = np.array(steps["weights"]) @ np.array(steps["values"])
            np.testing.assert_allclose(steps["output"], output, atol=1e-4)
            if task != "language" or row:  # the first word may be fully masked
                np.testing.assert_allclose(steps["scores"], by_hand(steps)[0], atol=1e-4)


def test_a_row_that_does_not_exist_is_a_problem(ask):
    body = {"text": "the film", "look": "source", "row": 4000}
    reply = ask("POST", "/v1/models/my-translation/steps", body)
    assert reply.status == 422
    assert "steps of this row cannot be computed" in reply.json["detail"]
    reply = ask("POST", "/v1/models/my-translation/steps", {**body, "look": "nothing", "row": 0})
    assert reply.status == 422
    assert "source" in reply.json["detail"]


@pytest.mark.parametrize("score", ["scaled_dot", "bilinear", "additive"])
def test_any_text_has_pseudo_random_vectors_and_correct_sums(ask, score):
    words = ["</script>", "👩🏽‍🚀", "worm", "\u202egnirts", "x" * 900, "worm"]
    body = {"text": "  ".join(words), "row": 2, "score": score}
    response = ask("POST", "/v1/steps", body).json
    assert response["words"] == words
    (one,) = response["steps"]
    assert (one["query_token"], one["key_tokens"], one["score"]) == ("worm", words, score)
    _, weights, output = by_hand(one)
    np.testing.assert_allclose(one["weights"], weights, atol=1e-5)
    np.testing.assert_allclose(one["output"], output, atol=1e-5)
    assert one["weights"][2] == one["weights"][5]
    assert ask("POST", "/v1/steps", body).json == response


def test_the_example_sentence_keeps_its_own_vectors(ask):
    all_rows = ask("GET", "/v1/steps").json
    body = {"text": "The early bird catches the worm", "row": 2}
    assert ask("POST", "/v1/steps", body).json["steps"] == [all_rows["steps"][2]]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"text": "two words", "row": 2}, "row 2 of a text with 2 words"),
        ({"text": " \n ", "row": 0}, "row 0 of a text with 0 words"),
        ({"text": "", "row": 0}, "at least 1 are required"),
        ({"text": "x" * 1001, "row": 0}, "at most 1,000"),
        ({"text": "x", "row": 0, "score": "magic"}, "score must be one of: scaled_dot"),
    ],
)
def test_rows_and_texts_without_steps_are_problems(ask, body, words):
    reply = ask("POST", "/v1/steps", body)
    assert reply.status == 422
    assert words in reply.json["detail"]
