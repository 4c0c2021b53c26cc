"""Run folders: in use, foreign, of other options, on a full disk."""

import errno
import gc
import json
import os

import pytest

from regard import RegardError
from regard.cli import main
from regard.inference import load
from regard.training import RunFolder
from regard.training.run import train_run
from regard.training.run_folder import FORMAT
from tests.training.tiny import OPTIONS, assert_same, everything, write_data


@pytest.fixture
def classify(tmp_path):
    return {"data": write_data(tmp_path, "classify"), **OPTIONS["classify"]}


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_in_use_is_an_error(classify, tmp_path, capsys):
    out = tmp_path / "run"
    train_run("classify", classify, out, stop=lambda: True)
    config = RunFolder(out).config()
    before = contents(out)
    with (
        RunFolder(out).begin(config),
        pytest.raises(RegardError, match="another process is training here"),
    ):
        train_run("classify", classify, out)
    assert contents(out) == before


def test_a_folder_that_holds_something_else_is_left_alone(classify, tmp_path):
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter.txt").write_text("years of work")
    with pytest.raises(RegardError, match="thesis: contains files that are not a run"):
        train_run("classify", classify, out)
    assert contents(out) == {out / "chapter.txt": b"years of work"}
    with pytest.raises(RegardError, match=r"chapter.txt: is not a folder: choose another --out"):
        train_run("classify", classify, out / "chapter.txt")


def snapshot(folder):
    """Every entry below a folder: links with their targets, files with their contents."""
    return {
        path: os.readlink(path) if path.is_symlink() else path.is_file() and path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def _lock_file(out):
    (out / "lock").write_text("years of work")


def _lock_link(out):
    (out.parent / "precious").write_text("years of work")
    (out / "lock").symlink_to(out.parent / "precious")


def _lock_pipe(out):
    os.mkfifo(out / "lock")


def _foreign_config(out):
    (out / "config.json").write_text('{"name": "my web page"}')
    (out / "lock").write_text("npm")


def _foreign_partial_file(out):
    (out / "config.json.part").write_text("years of work")


@pytest.mark.parametrize(
    ("arrange", "words"),
    [
        (_lock_file, "contains files that are not a run .lock."),
        (_lock_link, "lock: is a link, a pipe or a device"),
        (_lock_pipe, "lock: is a link, a pipe or a device"),
        (_foreign_config, "not the config of a run"),
        (_foreign_partial_file, "contains files that are not a run"),
        (lambda out: None, "no such file"),
    ],
)
def test_a_run_that_cannot_start_changes_nothing_in_an_existing_folder(arrange, words, tmp_path):
    out = tmp_path / "mine"
    out.mkdir()
    arrange(out)
    before = snapshot(tmp_path)
    with pytest.raises(RegardError, match=words):
        train_run("classify", {"data": str(tmp_path / "none.tsv")}, out)
    assert snapshot(tmp_path) == before


def test_a_run_that_cannot_start_removes_the_folders_that_it_made(tmp_path):
    (tmp_path / "runs").mkdir()
    with pytest.raises(RegardError, match="no such file"):
        train_run("classify", {"data": str(tmp_path / "none.tsv")}, tmp_path / "runs/new/a/b")
    assert list(tmp_path.rglob("*")) == [tmp_path / "runs"]


@pytest.mark.parametrize("name", ["lock", "metrics.jsonl", "checkpoints", "state", "evaluations"])
def test_nothing_is_written_through_links_of_a_run_from_somebody_else(classify, name, tmp_path):
    out, outside = tmp_path / "run", tmp_path / "outside"
    out.mkdir()
    config = {"task": "classify", "format": FORMAT}
    (out / "config.json").write_text(json.dumps(config))
    outside.mkdir()
    for file in ("precious", "step-1.safetensors.7.part"):
        (outside / file).write_text("years of work")
    is_folder = name in ("checkpoints", "state", "evaluations")
    (out / name).symlink_to(outside if is_folder else outside / "precious")
    before = snapshot(tmp_path)
    with pytest.raises(RegardError, match=f"{name}: is a link, a pipe or a device"):
        train_run("classify", classify, out)
    assert snapshot(tmp_path) == before


def test_a_lock_that_is_not_empty_keeps_its_content(classify, tmp_path):
    out = tmp_path / "run"
    train_run("classify", classify, out, stop=lambda: True)
    (out / "lock").write_text("kept")
    (out / "notes.part").write_text("kept")
    train_run("classify", classify, out)
    assert (out / "lock").read_text() == (out / "notes.part").read_text() == "kept"


def test_other_options_are_named_with_both_values(classify, tmp_path):
    out = tmp_path / "run"
    train_run("classify", classify, out, stop=lambda: True)
    before = contents(out)
    with pytest.raises(RegardError, match=r"its width is 8, not 9; its dropout is 0.3, not 0.1"):
        train_run("classify", classify | {"width": 9, "dropout": 0.1}, out)
    with pytest.raises(RegardError, match="its task is classify, not language"):
        train_run("language", {}, out)
    assert contents(out) == before


def test_bad_data_leaves_no_folder_behind(classify, tmp_path):
    (tmp_path / "one.tsv").write_text("text\tlabel\nfine\t1\nwell\t1\nnice\t1\n")
    out = tmp_path / "run"
    for data in ("one.tsv", "none.tsv"):
        with pytest.raises(RegardError):
            train_run("classify", classify | {"data": str(tmp_path / data)}, out)
        assert not out.exists()
    train_run("classify", classify, out)
    assert (out / "model.safetensors").exists()


@pytest.mark.parametrize("passing", [0, 1, 4, 9])
def test_a_full_disk_is_one_error_and_nothing_is_lost(classify, passing, tmp_path, monkeypatch):
    out, whole = tmp_path / "run", tmp_path / "whole"
    train_run("classify", classify, whole)
    train_run("classify", classify, out, stop=lambda: True)
    before, left = contents(out / "state"), iter(range(passing))
    sync = os.fsync

    def full(handle):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RegardError, match=r"cannot be written .No space left on device"):
            train_run("classify", classify, out)
    assert not list(out.rglob("*.part"))
    if passing == 0:
        assert contents(out / "state") == before
    train_run("classify", classify, out)
    assert_same(everything(out), everything(whole))


def test_a_file_that_may_not_grow_is_an_error_from_the_system_itself(classify, tmp_path):
    """The limit of the size of files stands for a full disk: safetensors meets it in Rust."""
    import resource

    out = tmp_path / "run"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    train_run("classify", classify, out, stop=lambda: True)
    before = contents(out / "state")
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
    try:
        with pytest.raises(RegardError, match="cannot be written"):
            train_run("classify", classify, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert contents(out / "state") == before
    assert not list(out.rglob("*.part"))


def test_the_command_line_says_it_in_one_line(classify, tmp_path, capsys):
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter.txt").write_text("years of work")
    assert main(["train", "classify", "--data", *classify["data"], "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("regard: ")
    assert error.count("\n") == 1


def rewritten(out, change):
    path = out / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda config: config.pop("format"), "an earlier version of Regard in run format 1;"),
        (
            lambda config: config.update(format=2),
            "an earlier version of Regard in run format 2; this",
        ),
        (
            lambda config: config.update(format=99),
            "another version of Regard in run format 99; this",
        ),
        (
            lambda config: config.update(format="x"),
            "another version of Regard in run format x; this",
        ),
    ],
)
def test_a_run_of_another_format_is_refused_by_every_command(
    classify, change, words, tmp_path, capsys
):
    out = tmp_path / "run"
    train_run("classify", classify | {"steps": 1}, out)
    assert RunFolder(out).config()["format"] == 4
    rewritten(out, change)
    before = contents(out)
    with pytest.raises(RegardError, match=words):
        train_run("classify", classify | {"steps": 1}, out)
    with pytest.raises(RegardError, match=words):
        load(out)
    for command in ("predict", "evaluate", "serve", "explain"):
        text = ["--text", "the film"] if command == "explain" else []
        assert main([command, str(out), *text]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"regard: {out / 'config.json'}: written by ")
        assert words in error
        assert error.count("\n") == 1
    assert contents(out) == before


def test_a_config_without_an_option_that_came_later_is_read_with_its_default(classify, tmp_path):
    out, whole = tmp_path / "run", tmp_path / "whole"
    train_run("classify", classify, whole)
    train_run("classify", classify, out, stop=lambda: True)

    def remove_options(config):
        for part, name in (("model", "experts"), ("training", "bf16"), ("data", "max_tokens")):
            del config[part][name]

    rewritten(out, remove_options)
    _, position = train_run("classify", classify, out)
    assert position.finished
    assert_same(everything(out), everything(whole))
    assert load(out)(["the film"]) == load(whole)(["the film"])
    with pytest.raises(RegardError, match="its bf16 is the default, not True"):
        train_run("classify", classify | {"bf16": True}, out)


def test_the_config_of_a_run_serves_as_a_config_file(classify, tmp_path, capsys):
    train_run("classify", classify | {"steps": 1}, tmp_path / "run")
    config = str(tmp_path / "run" / "config.json")
    assert main(["train", "classify", "--config", config, "--out", str(tmp_path / "again")]) == 0
    assert_same(everything(tmp_path / "again"), everything(tmp_path / "run"))
    capsys.readouterr()
    assert main(["train", "tag", "--config", config]) == 2
    assert "is the config of another task" in capsys.readouterr().err


def test_garbage_is_collected_as_before_once_data_is_prepared(classify, tmp_path):
    before = gc.get_threshold()
    seen = []
    train_run(
        "classify",
        {**classify, "steps": 1},
        tmp_path / "run",
        log=lambda line: seen.append(gc.get_threshold()),
    )
    (tmp_path / "empty.tsv").write_text("")
    with pytest.raises(RegardError):
        train_run("classify", {"data": [str(tmp_path / "empty.tsv")]}, tmp_path / "other")
    assert {*seen, gc.get_threshold()} == {before}
