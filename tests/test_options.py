"""Options: one name and one type in Python, in a file and on the command line."""

import json
import math
from dataclasses import asdict, dataclass, fields

import pytest

from regard import RegardError
from regard.cli import main
from regard.options import as_toml, docstrings, make, read_config
from regard.tasks.registry import TASKS
from regard.training import TrainingConfig
from regard.training.run import make_configs

CONFIGS = [c for kind in TASKS.values() for c in (kind.data, kind.model)] + [TrainingConfig]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_every_field_says_what_it_is(config):
    told = docstrings(config)
    for field in fields(config):
        assert told[field.name].endswith((".", "…")), field.name


def test_the_tasks_of_the_command_line_are_all_tasks(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for name, spec in TASKS.items():
        assert f"{name} {spec.summary}" in text


@pytest.mark.parametrize("task", TASKS)
def test_no_name_means_two_things(task):
    kind = TASKS[task]
    names = [f.name for config in (kind.data, kind.model, TrainingConfig) for f in fields(config)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("task", TASKS)
def test_help_shows_every_option_with_its_default(task, capsys):
    with pytest.raises(SystemExit) as exit_code:
        main(["train", task, "--help"])
    assert exit_code.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    kind = TASKS[task]
    for config in (kind.data, kind.model, TrainingConfig):
        for field in fields(config):
            assert f"--{field.name.replace('_', '-')}" in text
    patience = kind.training_defaults.get("patience", TrainingConfig.patience)
    assert f"(default: {patience})" in text


@pytest.mark.parametrize("suffix", [".toml", ".json"])
@pytest.mark.parametrize("task", [task for task in TASKS if task not in ("algorithm", "align")])
def test_a_printed_config_read_back_is_the_same(task, suffix, tmp_path, capsys):
    arguments = ["--dropout", "0.25", "--steps", "7", "--no-lowercase", "--clip", "inf"]
    assert main(["train", task, *arguments, "--data", 'a "b"\\c\x7f', "ß", "--print-config"]) == 0
    printed = capsys.readouterr().out
    path = tmp_path / f"options{suffix}"
    path.write_text(printed, "utf-8")
    if suffix == ".json":
        import tomllib

        path.write_text(json.dumps(tomllib.loads(printed)), "utf-8")
    given = read_config(path)
    assert given["data"] == ['a "b"\\c\x7f', "ß"]
    assert given["lowercase"] is False
    assert given["clip"] == math.inf
    assert main(["train", task, "--config", str(path), "--print-config"]) == 0
    assert capsys.readouterr().out == printed
    data, model, training = make_configs(TASKS[task], given)
    assert (training.steps, training.epochs, model.dropout) == (7, None, 0.25)
    again = make_configs(TASKS[task], {**asdict(data), **asdict(model), **asdict(training)})
    assert again == (data, model, training)


def test_booleans_have_two_forms(capsys):
    for word, value in (("--tied", "true"), ("--no-tied", "false")):
        assert main(["train", "language", word, "--print-config"]) == 0
        assert f"tied = {value}\n" in capsys.readouterr().out


def test_the_command_line_goes_before_the_file(tmp_path, capsys):
    path = tmp_path / "options.toml"
    path.write_text("width = 16\n[training]\nbatch-tokens = 9\nsteps = 3\n")
    command = ["train", "tag", "--config", str(path), "--width", "32", "--print-config"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "width = 32\n" in printed
    assert "batch_tokens = 9\n" in printed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("widht = 3", "unknown option 'widht': did you mean 'width'?"),
        ('width = "3"', "--width: expected int, got '3' (str)"),
        ("width = true", "--width: expected int, got True (bool)"),
        ("width = 3.5", "--width: expected int, got 3.5 (float)"),
        ("lowercase = 1", "--lowercase: expected bool, got 1 (int)"),
        ("[model]\nwidth = [3]", "--width: expected int, got [3] (list)"),
        ("width = ", "options.toml: cannot be read as a config"),
    ],
)
def test_a_wrong_file_is_one_line(text, words, tmp_path, capsys):
    path = tmp_path / "options.toml"
    path.write_text(text)
    assert main(["train", "classify", "--config", str(path), "--print-config"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_json_file_that_is_a_list_is_one_line(tmp_path):
    path = tmp_path / "options.json"
    path.write_text("[1]")
    with pytest.raises(RegardError, match="expected options by name, got a list"):
        read_config(path)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["clasify"], "unknown task 'clasify': did you mean 'classify'?"),
        (["classify", "--widht", "3"], "unknown option '--widht': did you mean '--width'?"),
        (["classify", "--widt", "3"], "unknown option '--widt': did you mean '--width'?"),
        (["classify", "--width", "x"], "--width: expected a whole number, got 'x'"),
        (["classify", "--width", "0"], "--width: expected 1 or more and at most 65536, got 0"),
        (["classify", "--width"], "--width: expected a value"),
        (
            ["classify", "--cell", "gruu"],
            "--cell: expected elman, gru or lstm, got 'gruu': did you mean 'gru'?",
        ),
        (["classify", "--pooling", "meen"], "got 'meen': did you mean 'mean'?"),
        (["classify", "--encoder", "transformr"], "did you mean 'transformer'?"),
        (["translation", "--attention", "additiv"], "did you mean 'additive'?"),
        (["translation", "--heads", "3", "--model", "transformer"], "3 heads do not divide"),
        (["language", "--dropout", "2"], "dropout"),
        (["language", "--model", "lstm"], "recurrent_self or transformer, got 'lstm'"),
        (["tag", "--encoder", "self", "--normalize", "sparsmax"], "did you mean 'sparsemax'?"),
        (["translation", "--tokenizer", "bep"], "got 'bep': did you mean 'bpe'?"),
        (["language", "--model", "transformer", "--max-length", "9"], "more than window_tokens"),
        (["tag", "--valid", "x"], "--valid: requires data"),
    ],
)
def test_a_wrong_command_is_one_line_before_any_data_is_read(
    arguments, words, tmp_path, capsys, shapes_unchecked
):
    out = tmp_path / "run"
    assert main(["train", *arguments, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("regard: ")
    assert error.count("\n") == 1
    assert not out.exists()


def test_values_of_other_types_than_json_knows():
    @dataclass(frozen=True)
    class Some:
        """Some options."""

        files: list[str] | None = None
        """Files."""
        rate: float = 1.0
        """Rate."""

    from pathlib import Path

    assert make(Some, {"files": "one", "rate": 2}) == Some(["one"], 2.0)
    assert make(Some, {"files": [Path("a"), "b"]}) == Some(["a", "b"])
    assert make(Some, {"files": Path("a")}) == Some(["a"])
    assert make(Some, {"files": None}) == Some()
    assert as_toml({"some": asdict(Some(rate=1e-7))}) == "[some]\nrate = 1e-07\n"


def test_a_wrong_name_in_a_config_file_names_the_file(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    path.write_text("widht = 8\n")
    assert main(["train", "classify", "--config", str(path)]) == 2
    error = capsys.readouterr().err
    assert error == f"regard: {path}: unknown option 'widht': did you mean 'width'?\n"
