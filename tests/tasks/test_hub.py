"""`hf:` sources: data sets on disk, read by the `datasets` package itself, without a network."""

from pathlib import Path

import pytest

from regard.cli import main
from tests.tasks.tasks_data import write

datasets = pytest.importorskip("datasets", reason="the datasets package is not installed")
pytestmark = pytest.mark.filterwarnings("default")  # of the package's own

SMALL = ["--width", "8", "--steps", "2", "--average", "1"]


def test_a_folder_with_class_names_and_two_splits(tmp_path, capsys):
    (table,) = write(tmp_path, "classify")
    rows = [line.split("\t") for line in Path(table).read_text().splitlines()[1:]]
    kinds = datasets.ClassLabel(names=["neg", "pos"])
    features = datasets.Features({"text": datasets.Value("string"), "label": kinds})
    columns = {"text": [text for text, _ in rows], "label": [int(s == "pos") for _, s in rows]}
    made = datasets.Dataset.from_dict(columns, features=features)
    folder = tmp_path / "set"
    folder.mkdir()
    made.select(range(20)).to_parquet(folder / "train.parquet")
    made.select(range(20, 24)).to_parquet(folder / "test.parquet")
    out = str(tmp_path / "run")
    command = ["train", "classify", "--data", f"hf:{folder}", "--valid", f"hf:{folder}:test"]
    assert main([*command, *SMALL, "--out", out]) == 0
    assert "20 read, 20 kept; for validation 4 read, 4 kept" in capsys.readouterr().err
    assert (Path(out) / "data" / "labels.json").read_text().split('"')[1::2] == ["neg", "pos"]
    assert main(["evaluate", out, "--data", f"hf:{folder}:test"]) == 0
    assert capsys.readouterr().out.startswith("accuracy")


def test_nested_pairs_of_json_lines(tmp_path, capsys):
    folder = tmp_path / "pairs"
    folder.mkdir()
    lines = [f'{{"translation": {{"de": "ein haus {i}", "en": "a house {i}"}}}}' for i in range(9)]
    (folder / "train.jsonl").write_text("\n".join(lines) + "\n")
    command = ["train", "translation", "--data", f"hf:{folder}", "--source", "en", *SMALL]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    assert "9 read, 9 kept" in capsys.readouterr().err


def test_a_set_that_is_not_there(tmp_path, capsys):
    assert main(["train", "classify", "--data", f"hf:{tmp_path}/nothing", *SMALL]) == 2
    error = capsys.readouterr().err
    assert "cannot load the data set" in error
    assert error.count("\n") == 1


def test_a_set_that_is_not_there_is_one_line(tmp_path, capsys, monkeypatch):
    """The packages below tell of each retry in lines of their own."""
    import logging

    def lost(*arguments, **options):
        logging.getLogger("huggingface_hub.utils").warning("Retrying in 1s [Retry 1/5].")
        raise ConnectionError("cannot be reached")

    monkeypatch.setattr(datasets, "load_dataset", lost)
    shown = []
    handler = logging.Handler()
    handler.emit = shown.append
    logging.getLogger("huggingface_hub").addHandler(handler)
    try:
        command = ["train", "classify", "--data", "hf:nowhere", "--out", str(tmp_path / "run")]
        assert main(command) == 2
    finally:
        logging.getLogger("huggingface_hub").removeHandler(handler)
    assert not shown
    error = capsys.readouterr().err
    assert error.startswith("regard: hf:nowhere: cannot load the data set (cannot be reached)")
    assert error.count("\n") == 1
