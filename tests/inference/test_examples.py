"""The runs that come with the package: they load, answer rightly, and stay as they are."""

import json

import pytest

import regard
from regard.cli import main
from regard.examples import FOLDER, example_names, is_example
from regard.training.run_folder import RunFolder

ANSWERS = {
    "translation": ("The black cat sleeps under the table .", "Le chat noir dort sous la table ."),
    "transformer": ("Who buys the heavy bag ?", "Qui achète le sac lourd ?"),
    "sentiment": ("The soup was not good .", "negative"),
    "entities": (
        "The carpenter met Paris Yilmaz in Florence on Sunday .",
        "O O O B-PER I-PER O B-LOC O B-DATE O",
    ),
    "copy": ("9 8 7 6 5 4 3 2 1 0 1 2", "9 8 7 6 5 4 3 2 1 0 1 2"),
}
STORY = "In those days Stella worked as a hunter at the ruined tower ."


def test_every_example_answers_rightly_and_looks():
    assert set(example_names()) == {*ANSWERS, "language"}
    for name in example_names():
        run = regard.load(f"example:{name}")
        text, answer = ANSWERS.get(name, (STORY, ""))
        if answer:
            assert run([text]) == [answer]
        else:  # a language model prefers a sentence to its words in another order
            story, shuffled = run.log_probabilities([STORY, " ".join(sorted(STORY.split()))])
            assert story.log_probability > shuffled.log_probability + 20
        assert run.trace(text).looks


def test_examples_are_small_and_without_sentences():
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 6_000_000
    assert not [
        path
        for path in files
        if path.suffix in (".arrow", ".jsonl") and path.name != "metrics.jsonl"
    ]
    for name in example_names():
        lines = (FOLDER / name / "metrics.jsonl").read_text().splitlines()
        assert not any("samples" in json.loads(line) for line in lines)
        assert json.loads((FOLDER / name / "packed.json").read_text())["written"] > 0


def test_commands_know_examples_by_name(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["predict", "example:sentiment", "--text", "The soup was not good ."]) == 0
    assert capsys.readouterr().out.strip() == "negative"
    assert main(["show", "example:translation", "--text", "Who buys the heavy bag ?"]) == 0
    assert "achète" in capsys.readouterr().out
    assert main(["runs", "example:"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(example_names())
    assert main(["info", "example:copy"]) == 0
    assert "packed" in capsys.readouterr().out
    assert main(["predict", "example:sentimental", "--text", "x"]) == 2
    assert "did you mean 'sentiment'?" in capsys.readouterr().err


def test_nothing_is_written_into_the_package():
    folder = RunFolder(FOLDER / "copy")
    assert is_example(folder.path)
    with pytest.raises(regard.RegardError, match=r"regard pack example:copy --to FOLDER"):
        folder.refuse_links(folder.evaluations)
