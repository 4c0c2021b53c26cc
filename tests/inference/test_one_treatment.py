"""A text means the same to every command, whatever blanks stand around it."""

import math

import pytest

import regard

LINES = [" once there was a cat . ", "", "\tthe cat saw a dog .  ", "the dog ran ."]


@pytest.mark.parametrize("name", ["translation", "sentiment", "entities"])
def test_blanks_around_a_text_change_nothing(name: str) -> None:
    run = regard.load(f"example:{name}")
    bare = ["The boy is happy.", "a very good film", "caf\u00e9"]
    padded = [f" {bare[0]} ", f"\t{bare[1]}\n", " cafe\u0301 "]
    assert run(padded) == run(bare)
    trace, expected = run.trace(padded[0]), run.trace(bare[0])
    assert trace.to_json() == expected.to_json()


def test_blanks_at_the_end_of_a_prompt_are_kept() -> None:
    run = regard.load("example:language")
    assert run("  once there ") == run("once there ")


def test_scores_of_running_text_are_those_of_evaluate(tmp_path) -> None:
    run = regard.load("example:language")
    (tmp_path / "text.txt").write_text("\n".join(LINES * 7))
    evaluation = run.evaluate(str(tmp_path / "text.txt"))
    filled = [line for line in LINES * 7 if line]
    scores = run.log_probabilities(filled, running=True)
    words = sum(len(line.split()) + 1 for line in filled)
    total = sum(score.log_probability for score in scores)
    found = evaluation.metrics["perplexity_per_word"].value
    assert math.exp(-total / words) == pytest.approx(found, rel=1e-5)
    assert all(
        score.log_probability == pytest.approx(sum(score.token_log_probabilities))
        for score in scores
    )


def test_scores_do_not_depend_on_blanks() -> None:
    run = regard.load("example:language")
    padded, bare = run.log_probabilities(LINES), run.log_probabilities([x.strip() for x in LINES])
    assert [x.log_probability for x in padded] == [x.log_probability for x in bare]
