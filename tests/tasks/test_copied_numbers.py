"""Numbers of translations that are copied from the source along attention."""

import numpy as np
import pytest

import regard
from regard.cli import main
from regard.errors import RegardError
from regard.tasks.translation.copied_numbers import copy_numbers, unmatched_numbers


def copied(source, target, weights):
    """With one token per word, so that numbers with blanks have several."""
    spans = []
    for text in (source, target):
        ends = np.cumsum([len(word) + 1 for word in text.split(" ")])
        spans.append(
            [(int(e) - len(w) - 1, int(e) - 1) for e, w in zip(ends, text.split(" "), strict=True)]
        )
    return copy_numbers(source, target, np.array(weights), *spans)


def test_each_wrong_number_becomes_the_one_that_it_attends_to():
    weights = [[1, 0, 0, 0], [0, 0.1, 0, 0.9], [0, 0, 1, 0], [0, 0.5, 0, 0.4]]
    assert copied("the 12 and 345", "les 77 et 8", weights) == "les 345 et 12"
    assert copied("the 12 and 345", "les 345 et 8", weights) == "les 345 et 12"
    assert copied("the 12 and 345", "les 345 et 12", weights) == "les 345 et 12"
    # Both attend to 345 most; the number that does so more takes it.
    weights[3] = [0, 0.2, 0, 0.8]
    assert copied("the 12 and 345", "les 77 et 8", weights) == "les 345 et 12"


def test_other_ways_to_write_a_number_are_left_alone():
    for source, target in (("10,000 m", "10 000 m"), ("1.5 of 2", "2 von 1,5"), ("two", "2")):
        assert copied(source, target, np.ones((3, 3))) == target
    assert copied("at 5:30 here", "à 17 heures", np.ones((3, 3))) == "à 17 heures"
    assert unmatched_numbers("7 7", "7 8") == ([(2, 3)], [(2, 3)])


def train(folder, *options):
    """A model that has learned to write 7 whatever the number, as some do of rare ones."""
    for name, lines in (("x", ["the room 12", "the floor 3"]), ("y", ["la pièce 7", "le sol 7"])):
        (folder / f"data.{name}").write_text("\n".join(lines * 30) + "\n", "utf-8")
    data = [str(folder / "data.x"), str(folder / "data.y")]
    sizes = ["--valid", *data, "--width", "16", "--steps", "60", "--evaluate-every", "60"]
    sizes += [
        "--average",
        "1",
        "--learning-rate",
        "0.02",
        "--tokenizer",
        "word",
        "--out",
        str(folder / "run"),
    ]
    assert main(["train", "translation", "--data", *data, *sizes, *options]) == 0
    return regard.load(folder / "run")


@pytest.mark.parametrize("model", [[], ["--model", "transformer", "--heads", "2", "--layers", "1"]])
def test_translations_have_the_numbers_of_the_source(model, tmp_path, capsys):
    run = train(tmp_path, *model)
    texts = ["the room 12", "the floor 3", "the room 12"]
    plain, right = ["la pièce 7", "le sol 7"], ["la pièce 12", "le sol 3"]
    assert run(texts, beam=2) == [*plain, plain[0]]
    assert run(texts, beam=2, copy_numbers=True) == [*right, right[0]]
    gold = tmp_path / "gold.tsv"
    rows = zip(texts, right, strict=False)
    gold.write_text("x\ty\n" + "".join(f"{x}\t{y}\n" for x, y in rows), "utf-8")
    command = ["evaluate", str(run.folder.path), "--data", str(gold)]
    command += ["--source", "x", "--target", "y", "--copy-numbers"]
    capsys.readouterr()
    assert main(command) == 0
    assert "100.0" in capsys.readouterr().out


def test_a_model_without_attention_cannot_tell_which_number(tmp_path):
    run = train(tmp_path, "--attention", "none")
    assert run("the room 7", copy_numbers=True) == "la pièce 7"
    with pytest.raises(RegardError, match=r"copy_numbers.*no attention to the source"):
        run("the room 12", copy_numbers=True)
