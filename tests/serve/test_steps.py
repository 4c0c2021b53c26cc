"""Attention step by step over HTTP: compared with sums by hand and with the weights of traces."""

import hashlib
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
    assert looks
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
            check_projected(steps)
            if task != "language" or row:  # the first word may be fully masked
                np.testing.assert_allclose(steps["scores"], by_hand(steps)[0], atol=1e-4)


def check_projected(steps):
    """Query, keys and values are x W + b of what the response says they were made of."""
    made = steps["projected"]
    assert (made is None) == (steps["score"] == "dot")
    if made is None:
        return
    sides = [("query", [made["query_input"]], [steps["query"]])]
    sides += [("key", made["key_inputs"], steps["keys"])]
    sides += [("value", made["key_inputs"], steps["values"])]
    for name, inputs, outputs in sides:
        projected = np.array(inputs)
        if made[name] is not None:
            projected = projected @ np.array(made[name]["weight"])
            projected = projected + np.array(made[name]["bias"] or 0.0)
        if name != "value" and made["rotated"]:  # a rotation keeps lengths
            projected, outputs = (np.linalg.norm(part, axis=-1) for part in (projected, outputs))
        np.testing.assert_allclose(outputs, projected, atol=2e-4)


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


def small_sentence():
    """Words, their vectors by the letters, and queries and keys by hand."""
    words = ["Many", "worms", "fear", "the", "early", "bird"]
    digests = [hashlib.sha256(word.encode()).digest()[:4] for word in words]
    vectors = np.array([[byte % 5 / 2 for byte in row] for row in digests])
    to_query = np.array([[0, 0, 1, 0], [0, 0, 1, 0], [0, 2, 0.5, 1], [0, 0, 0, 0.5]])
    return words, vectors, vectors @ to_query, vectors


def softmax(scores, allowed):
    powers = np.where(allowed, np.exp(scores), 0.0)
    return powers / powers.sum(-1, keepdims=True)


def test_matrices_of_any_text_agree_with_sums_by_hand(ask):
    words, vectors, query, key = small_sentence()
    places = np.arange(6)
    distance = np.abs(places[:, None] - places)
    body = {"text": " ".join(words)}
    plain = ask("POST", "/v1/attention", body).json
    assert (plain["words"], np.array(plain["allowed"]).all()) == (words, True)
    np.testing.assert_allclose(plain["vectors"], vectors)
    np.testing.assert_allclose(plain["scores"], query @ key.T / 2, atol=1e-5)
    chosen = {"score": "mlp", "temperature": 2, "mask": "causal window", "size": 3}
    reply = ask("POST", "/v1/attention", body | chosen | {"position": "linear bias"}).json
    scores = query @ np.tanh(key).T - distance / 4
    allowed = (places[:, None] >= places) & (distance < 3)
    np.testing.assert_allclose(reply["scores"], scores, atol=1e-5)
    assert reply["allowed"] == allowed.tolist()
    np.testing.assert_allclose(reply["weights"], softmax(scores / 2, allowed), atol=1e-5)
    reply = ask("POST", "/v1/attention", body | {"score": "location", "normalize": "hard"}).json
    np.testing.assert_allclose(reply["scores"], query[:, places % 4], atol=1e-5)
    assert (
        np.array(reply["weights"]).argmax(-1).tolist() == query[:, places % 4].argmax(-1).tolist()
    )
    reply = ask("POST", "/v1/attention", body | {"position": "rotary", "score": "dot"}).json
    angles = places[:, None] / np.array([1.0, 100.0])
    turned = [(q[:, ::2] + 1j * q[:, 1::2]) * np.exp(1j * angles) for q in (query, key)]
    np.testing.assert_allclose(reply["scores"], (turned[0] @ turned[1].conj().T).real, atol=1e-4)


def test_every_choice_can_be_computed_and_rows_are_those_of_the_steps(ask):
    choices = ask("GET", "/v1/attention").json
    assert {"cosine", "additive"} <= set(choices["scores"])
    body = {"text": "worms fear birds early", "temperature": 0.5}
    for name, values in (
        ("score", choices["scores"]),
        ("normalize", choices["normalizers"]),
        ("mask", choices["masks"]),
        ("position", choices["positions"]),
    ):
        for value in values:
            matrices = ask("POST", "/v1/attention", body | {name: value}).json
            (row,) = ask("POST", "/v1/steps", body | {name: value, "row": 2}).json["steps"]
            np.testing.assert_allclose(row["weights"], matrices["weights"][2], atol=1e-5)
            np.testing.assert_allclose(row["biased"], matrices["scores"][2], atol=1e-5)
            assert row["allowed"] == matrices["allowed"][2]


def test_the_projections_of_the_example_give_its_query_and_keys(ask):
    response = ask("POST", "/v1/steps", {"text": "The early bird catches the worm", "row": 2}).json
    vectors, (one,) = np.array(response["vectors"]), response["steps"]
    projected = {name: vectors @ np.array(m) for name, m in response["projections"].items()}
    np.testing.assert_allclose(projected["query"][2], one["query"], atol=1e-6)
    np.testing.assert_allclose(projected["key"], one["keys"], atol=1e-6)
    np.testing.assert_allclose(projected["value"], one["values"], atol=1e-6)


def test_a_matrix_has_at_most_sixty_words(ask):
    reply = ask("POST", "/v1/attention", {"text": "x " * 61})
    assert reply.status == 422
    assert "61 words; expected 1 to 60" in reply.json["detail"]


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
