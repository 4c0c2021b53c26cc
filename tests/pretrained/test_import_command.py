"""What `regard import` says and leaves, and the cards of runs."""

from pathlib import Path

import pytest

import regard
from regard.cli import main
from regard.training.stored_runs.model_card import OWN_WORDS
from tests.pretrained.checkpoints import TEXTS, write_checkpoint

LABELS = {0: "bad", 1: "good"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_checkpoint(tmp_path / "hf", "bert", id2label=LABELS)
    return tmp_path


def test_it_says_what_was_imported_and_what_to_do_next(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(folder / "run")
    assert main(["import", str(folder / "hf"), "--out", out]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{out}\n"
    assert "pretrained  hf (bert, 3 layers, 4 heads, width 24)" in captured.err
    assert "labels      bad, good" in captured.err
    assert f"predict {out}" in captured.err
    assert main(["import", str(folder / "hf"), "--out", f"{out}2", "--quiet"]) == 0
    assert not capsys.readouterr().err
    card = (folder / "run" / "README.md").read_text()
    assert "A model imported into [Regard]" in card
    assert "| pretrained | hf (bert, 3 layers" in card
    assert "built-in" not in card
    assert main(["info", out]) == 0
    assert "built-in" not in capsys.readouterr().out


def test_a_file_of_weights_may_have_another_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = folder / "hf" / "model.safetensors"
    expected = regard.load(folder / "hf").predict_proba(TEXTS)
    weights.rename(weights.with_name("model.fp16.safetensors"))
    assert (regard.load(folder / "hf").predict_proba(TEXTS) == expected).all()
    (folder / "hf" / "other.safetensors").write_bytes(b"")
    assert main(["import", str(folder / "hf"), "--out", str(folder / "run")]) == 2
    assert "several files of weights (model.fp16.safetensors, other" in capsys.readouterr().err
    assert not (folder / "run").exists()


def test_a_trained_run_has_a_card_unless_its_user_wrote_one(folder: Path) -> None:
    data = folder / "texts.tsv"
    data.write_text("".join(f"{text}\t{label}\n" for text in TEXTS for label in LABELS.values()))
    options = {"pretrained": str(folder / "hf"), "out": folder / "run"}
    run = regard.train("classify", [str(data)], steps=1, **options)
    card = run.folder.path / "README.md"
    written = card.read_text()
    assert written.endswith(f"{OWN_WORDS}\n")
    assert "A model trained with [Regard]" in written
    assert "| pretrained | hf (bert" in written
    assert "| training | 1 updates" in written
    regard.train("classify", [str(data)], steps=2, **options)
    assert "| training | 2 updates" in card.read_text()
    card.write_text("My own words.\n")
    regard.train("classify", [str(data)], steps=3, **options)
    assert card.read_text() == "My own words.\n"
    assert main(["pack", str(run.folder.path), "--to", str(folder / "packed")]) == 0
    assert (folder / "packed" / "README.md").read_text() == "My own words.\n"
