"""Damaged files of a run: reported in one line, or without effect; never used in silence.

`ATTACK_ROUNDS` is the number of damages per file (default: 1; 25 is a nightly round).
"""

import os
import random
import shutil
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.training.run import train_run
from tests.attack.attacked_runs import answers, interrupted, options, trained
from tests.attack.contained import contained
from tests.attack.tally import count
from tests.training.tiny import everything

ROUNDS = int(os.environ.get("ATTACK_ROUNDS", "1"))
TASK = "classify"
NOT_NEEDED = {"lock"}
CHANGED_METRICS = "metrics.jsonl: is not what the run has written"


def files(run: Path) -> list[str]:
    names = [p.relative_to(run).as_posix() for p in sorted(run.rglob("*")) if p.is_file()]
    return [name for name in names if name not in NOT_NEEDED]


def flip(content: bytes, chance: random.Random) -> bytes:
    place, bit = chance.randrange(len(content)), chance.randrange(8)
    return content[:place] + bytes([content[place] ^ (1 << bit)]) + content[place + 1 :]


def truncate(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def zero(content: bytes, chance: random.Random) -> bytes:
    """A block of the disk that was lost."""
    place = chance.randrange(len(content))
    return content[:place] + bytes(len(content[place : place + 512])) + content[place + 512 :]


def extend(content: bytes, chance: random.Random) -> bytes:
    return content + chance.randbytes(chance.randrange(1, 600))


DAMAGES = (flip, flip, truncate, zero, extend)


def damaged_copies(run: Path, out: Path, seed: str):
    """Copies of a run with one file damaged each; the flipped bit is the most common damage."""
    for name in files(run):
        for turn in range(ROUNDS):
            chance = random.Random(f"{seed} {name} {turn}")
            damage = chance.choice(DAMAGES)
            shutil.copytree(run, out)
            content = (out / name).read_bytes()
            changed = damage(content, chance)
            (out / name).write_bytes(changed)
            if changed != content:
                yield f"{name}, {damage.__name__}, turn {turn}"
            shutil.rmtree(out)


def test_a_damaged_run_answers_as_before_or_not_at_all(tmp_path):
    run, failures = trained(TASK), []
    expected = answers(run)
    for case in damaged_copies(run, tmp_path / "run", "use"):
        outcome = contained(lambda: answers(tmp_path / "run"))
        count("damaged files, use", outcome.kind, outcome.cpu_seconds, outcome.megabytes)
        if not outcome.harmless() or (outcome.kind == "value" and outcome.value != expected):
            failures.append((case, outcome))
    assert not failures


def resume(run: Path):
    """Resume a run; all that it ends with, and the notes on the way."""
    notes = []
    train_run(TASK, options(TASK), run, report=lambda p: notes.append(p.note), log=notes.append)
    ended = everything(run)
    return {n: v.tolist() if hasattr(v, "tolist") else v for n, v in ended.items()}, notes


def test_a_damaged_run_resumes_to_the_same_bits_or_not_at_all(tmp_path):
    run, failures = interrupted(TASK), []
    shutil.copytree(run, tmp_path / "whole")
    expected, _ = resume(tmp_path / "whole")
    without_metrics = {name: value for name, value in expected.items() if name != "metrics"}
    for case in damaged_copies(run, tmp_path / "run", "resume"):
        outcome = contained(lambda: resume(tmp_path / "run"))
        count("damaged files, resume", outcome.kind, outcome.cpu_seconds, outcome.megabytes)
        same = outcome.kind == "error"
        if outcome.kind == "value":
            ended, notes = outcome.value
            same = ended == expected
            if any(CHANGED_METRICS in note for note in notes):
                del ended["metrics"]
                same = ended == without_metrics
        if not outcome.harmless() or not same:
            failures.append((case, outcome))
    assert not failures


@pytest.mark.parametrize("name", ["README.md", "notes.txt", "curves.svg"])
def test_other_files_may_be_added_and_edited(name, tmp_path):
    shutil.copytree(trained(TASK), tmp_path / "run")
    (tmp_path / "run" / name).write_text("my own words")
    assert answers(tmp_path / "run") == answers(trained(TASK))


def test_metrics_that_cannot_be_read_are_dropped_and_reported(tmp_path):
    run, lines = tmp_path / "run", []
    shutil.copytree(interrupted(TASK), run)
    whole = (run / "metrics.jsonl").read_bytes()
    (run / "metrics.jsonl").write_bytes(whole.replace(b'"loss"', b'"lo\xa0s"', 1))
    train_run(TASK, options(TASK), run, log=lines.append)
    assert any(CHANGED_METRICS in line for line in lines)
    assert (run / "metrics.jsonl").read_text("utf-8").count("\n") >= whole.count(b"\n")


def test_a_damaged_corpus_is_named_and_can_be_read_again(tmp_path):
    run = tmp_path / "run"
    shutil.copytree(interrupted(TASK), run)
    content = bytearray((run / "data" / "train.arrow").read_bytes())
    content[len(content) // 2] ^= 1
    (run / "data" / "train.arrow").write_bytes(content)
    with pytest.raises(RegardError, match=r"train.arrow: is damaged .* remove .*prepared.json"):
        train_run(TASK, options(TASK), run)
    (run / "data" / "prepared.json").unlink()
    shutil.copytree(interrupted(TASK), tmp_path / "whole")
    assert resume(run)[0] == resume(tmp_path / "whole")[0]


def test_a_damaged_corpus_is_read_again_if_no_update_was_made(tmp_path):
    run, lines = tmp_path / "run", []
    shutil.copytree(interrupted(TASK), run)
    for name in ("state", "checkpoints"):
        shutil.rmtree(run / name)
    (run / "model.safetensors").unlink()
    (run / "data" / "valid.arrow").write_bytes(b"")
    train_run(TASK, options(TASK), run, log=lines.append)
    assert any("no update was made yet, so the data is read again" in line for line in lines)
    assert answers(run) == answers(trained(TASK))
