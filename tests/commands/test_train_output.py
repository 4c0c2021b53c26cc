"""What `regard train` prints: what it was given, what came of it, and what to type next."""

import json
import os
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from regard.cli import main, make_parser
from regard.commands.terminal.training_summary import hint
from regard.training.seeds import summarize_seeds

WORDS = {"good": "pos", "fine": "pos", "bad": "neg", "awful": "neg"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "reviews.tsv"
    rows = [
        f"the {thing} was {word}\t{label}" for thing in range(12) for word, label in WORDS.items()
    ]
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n", "utf-8")
    return path


def train(data: Path, out: Path, *options: str) -> int:
    small = ["--width", "8", "--batch-tokens", "256", "--evaluate-every", "2"]
    return main(["train", "classify", "--data", str(data), "--out", str(out), *small, *options])


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "small"
    assert train(data, out, "--steps", "4", "--quiet") == 0
    return out


def column(text: str) -> dict[str, str]:
    """The facts of aligned lines by name."""
    return {line[:12].strip(): line[12:] for line in text.splitlines() if line[11:12] == " "}


def test_it_begins_with_aligned_facts_and_ends_with_a_summary(data, tmp_path, capsys):
    out = tmp_path / "a run"
    assert train(data, out, "--steps", "3") == 0
    said = capsys.readouterr()
    facts = column(said.err)
    assert facts["data"].startswith("48 read")
    assert facts["labels"] == "2 (neg: 24, pos: 24)"
    assert "parameters: encoder recurrent" in facts["model"]
    assert facts["plan"].startswith("3 updates, epochs of ")
    assert "step 2: loss " in said.err
    assert "(validation 0." in said.err
    assert "accuracy" in facts["best"]
    assert "validation loss 0." in facts["best"]
    assert facts["best"].endswith(", the best of 2 validations")  # an epoch's end, and the last
    assert facts["stopped"].startswith("all updates are done (3 updates, epoch ")
    assert facts["kept"].startswith("the ")
    assert "only to extend the run" in facts["size"]
    assert said.out == f"{out}\n"
    for line in said.err.splitlines():  # the next commands are ones that can be typed
        if shlex.quote(str(out)) in line[12:]:
            words = shlex.split(line[12:])
            typed = words[words.index("regard") + 1 :] if "regard" in words else words[1:]
            assert make_parser(typed).parse_args(typed).command in ("show", "predict", "serve")


@pytest.mark.parametrize(
    ("low", "labels", "words"),
    [
        (
            0.44,
            {"bad": 60, "good": 40},
            "not surely better than always answering 'bad' (60.0 % of the data): train longer, ",
        ),
        (0.61, {"bad": 60, "good": 40}, ""),
        (None, {"bad": 60, "good": 40}, ""),
        (0.44, None, ""),
    ],
)
def test_a_classifier_that_only_guesses_gets_a_hint(low, labels, words):
    best = {"main": "accuracy", "metrics": {"accuracy": {"value": 0.65, "low": low}}}
    found = hint(SimpleNamespace(best=best, data={"labels": labels}))
    assert found.startswith(words)
    assert bool(found) == bool(words)
    assert not hint(SimpleNamespace(best=best | {"main": "f1"}, data={"labels": labels}))


def test_a_short_run_that_still_improved_can_be_extended_as_the_hint_says(data, tmp_path, capsys):
    folder = tmp_path / "run"
    assert train(data, folder, "--steps", "2") == 0
    assert "hint" not in capsys.readouterr().err
    more = ("--epochs", "2", "--learning-rate", "1e-2", "--average", "1")
    assert train(data, tmp_path / "other", *more) == 0
    said = " ".join(capsys.readouterr().err.split())
    hint = re.search(r"regard (train --resume \S+ --epochs 6)", said)
    assert hint is not None
    assert main(hint[1].split()) == 0
    assert "6 updates, epoch 6" in capsys.readouterr().err


def test_quiet_prints_the_folder_only(data, tmp_path, capsys):
    assert train(data, tmp_path / "run", "--steps", "2", "--quiet") == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == (f"{tmp_path / 'run'}\n", "")


def test_a_finished_run_keeps_one_state(run):
    assert [path.name for path in (run / "state").iterdir()] == ["latest.safetensors"]


def test_resume_needs_no_other_options_and_takes_a_larger_budget(run, capsys):
    assert main(["train", "--resume", str(run)]) == 0
    assert "nothing to do: the run finished after 4 updates" in capsys.readouterr().err
    assert main(["train", "--resume", str(run), "--minutes", "0.0000001"]) == 2
    assert "already used up" in capsys.readouterr().err
    assert main(["train", "--resume", str(run), "--steps", "6"]) == 0
    assert "(6 updates, " in capsys.readouterr().err
    assert main(["train", "tag", "--resume", str(run)]) == 2
    assert "is not a tag run" in capsys.readouterr().err
    assert main(["train", "classify", "--resume", str(run), "--width", "9"]) == 2
    assert "its width is 8, not 9" in capsys.readouterr().err
    assert json.loads((run / "config.json").read_text())["training"]["steps"] == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--resume", "nowhere"], "nowhere: no such run folder"),
        (["--resume"], "--resume: expected a value"),
        (["--resume", "x", "--width", "3"], "unknown option '--width'"),
        (["--minutes", "3", "classify"], "--minutes: expected a task before"),
        (["classify", "--resume", "nowhere", "--out", "x"], "--resume: cannot be combined"),
        (["classify", "--resume", "nowhere"], "nowhere: no such run folder"),
        ([], "task missing: expected before the options, as in `regard train"),
    ],
)
def test_mistakes_of_resume(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words]) == 2
    assert message in capsys.readouterr().err


def test_several_seeds_give_runs_and_their_mean(data, tmp_path, capsys):
    out = tmp_path / "seeds"
    assert train(data, out, "--steps", "2", "--seeds", "2", "--seed", "7") == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == ["seed-7", "seed-8", "mean"]
    assert printed[-1].endswith("two seeds are too few for an interval")
    summary = json.loads((out / "seeds.json").read_text())
    first, second = summary["values"].values()
    assert summary["mean"] == pytest.approx((first + second) / 2)
    assert summary["low"] is summary["high"] is None
    assert train(data, out, "--steps", "2", "--seeds", "2", "--seed", "7") == 0
    assert capsys.readouterr().out.splitlines() == printed


def test_the_interval_over_seeds_stays_within_the_unit(tmp_path):
    def summary(unit, *values):
        folders = [tmp_path / f"seed-{number}" for number in range(len(values))]
        for folder, value in zip(folders, values, strict=True):
            metric = {"name": "metric", "unit": unit, "value": value}
            line = {"step": 1, "main": "metric", "metrics": {"metric": metric}, "best": True}
            folder.mkdir(exist_ok=True)
            (folder / "metrics.jsonl").write_text(json.dumps(line) + "\n")
        return summarize_seeds(folders)

    # Student's quantile for two degrees of freedom is 4.3027
    points = summary("points", 20.0, 30.0, 40.0)
    assert points.high - points.mean == pytest.approx(4.3027 * 10 / 3**0.5, rel=1e-4)
    assert str(points) == "metric 30.0 [5.2, 54.8] over 3 seeds (95 % interval)"
    share = summary("share", 0.2, 0.9, 1.0)
    assert (share.low, share.high) == (0.0, 1.0)


def test_several_seeds_are_no_run_of_their_own(data, run, capsys):
    assert train(data, run, "--steps", "4", "--seeds", "2") == 2
    assert "is itself a run" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["text", "list", "pipe", "folder", "link", "dangling link"])
def test_several_seeds_replace_no_summary_of_somebody_else(kind, data, tmp_path, capsys):
    out, mine = tmp_path / "seeds", tmp_path / "mine.json"
    out.mkdir()
    path = out / "seeds.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif "link" in kind:
        path.symlink_to(mine)
    else:
        path.write_text("my seeds" if kind == "text" else "[1, 2]", "utf-8")
    if kind == "link":
        mine.write_text("my seeds", "utf-8")
    before = snapshot(tmp_path)
    assert train(data, out, "--steps", "2", "--seeds", "2") == 2
    assert capsys.readouterr().err == (
        f"regard: {path}: was not written by Regard: choose another --out\n"
    )
    assert snapshot(tmp_path) == before


def test_several_seeds_leave_other_files_as_they_are(data, tmp_path, capsys):
    out = tmp_path / "seeds"
    (out / "seed-2").mkdir(parents=True)
    for name in ("notes.txt", "report.html", "seed-2/notes.txt"):
        (out / name).write_text("my own words", "utf-8")
    before = snapshot(out)
    assert train(data, out, "--steps", "2", "--seeds", "2", "--seed", "1", "--quiet") == 2
    assert "seed-2: contains files that are not a run (notes.txt)" in capsys.readouterr().err
    after = snapshot(out)
    assert {path: after[path] for path in before} == before
    assert all(path.is_relative_to(out / "seed-1") for path in after.keys() - before.keys())


def snapshot(folder: Path) -> dict[Path, object]:
    """What is at every path in a folder: the target of a link, the content of a file, or a kind."""
    return {
        path: os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else path.stat().st_mode
        for path in folder.rglob("*")
    }
