"""Folders with the output of many files: damaged or crafted, and what is beside them stays."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.inference.bulk.line_work import LineWork
from regard.inference.bulk.many_files import Engine, process_files
from tests.attack.attacked_runs import trained
from tests.attack.contained import contained
from tests.attack.one_worker import KilledError, one_worker_here
from tests.attack.tally import count

Craft = Callable[[Path], object]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("inputs")
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("".join(f"the film {name} {n}\n" for n in range(30)))
    return str(folder / "*.txt")


def process(inputs: str, out: Path, shards: int | None = None) -> object:
    """All files in this process; killed after so many shards."""

    with one_worker_here(shards):
        work = LineWork("predictions", str(trained("classify")), ("text",), device="cpu")
        return process_files(work, inputs, out, Engine(jobs=1, shard_lines=10))


@pytest.fixture(scope="module")
def folders(inputs, tmp_path_factory) -> dict[str, Path]:
    """A finished folder, and one of a command that was killed."""
    root = tmp_path_factory.mktemp("outputs")
    process(inputs, root / "finished")
    with pytest.raises(KilledError):
        process(inputs, root / "killed", shards=2)
    return {name: root / name for name in ("finished", "killed")}


def outputs(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.txt")}


def part(folder: Path) -> Path:
    return min(folder.glob(".regard/parts/*/*.part"))


def record(folder: Path) -> Path:
    return folder / ".regard/files/a.txt.json"


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def edit(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def summary(folder: Path, **values: object) -> None:
    known = json.loads(record(folder).read_text())["summary"]
    edit(record(folder), summary=known | values)


DAMAGED: dict[str, tuple[str, Craft]] = {
    "a part with another bit": ("killed", lambda f: flip(part(f), -3)),
    "a part with another count": (
        "killed",
        lambda f: part(f).write_bytes(part(f).read_bytes().replace(b'"lines": 10', b'"lines": 90')),
    ),
    "a part without its end": (
        "killed",
        lambda f: part(f).write_bytes(part(f).read_bytes()[:-9]),
    ),
    "a part with more": ("killed", lambda f: part(f).write_bytes(part(f).read_bytes() + b"x\n")),
    **{
        f"a part of {text[:9]!r}": ("killed", lambda f, text=text: part(f).write_bytes(text))
        for text in (b"", b"[1]\n", b"3\n", b"{}\n", b"\xff\n", b"[" * 200_000)
    },
    **{
        f"a record of {text[:9]!r}": ("finished", lambda f, text=text: record(f).write_text(text))
        for text in ("", "[1]", "3", "{}", "[" * 200_000)
    },
    "a summary that is a number": ("finished", lambda f: edit(record(f), summary=3)),
    "lines that are a text": ("finished", lambda f: summary(f, lines="x")),
    "endless lines": ("finished", lambda f: summary(f, lines=float("inf"))),
    "errors that are a number": ("finished", lambda f: summary(f, errors=3, failed=1)),
    "output with another bit": ("finished", lambda f: flip(f / "a.txt", -3)),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_results_are_made_again(name, folders, inputs, tmp_path):
    kind, damage = DAMAGED[name]
    shutil.copytree(folders[kind], tmp_path / "out")
    damage(tmp_path / "out")
    outcome = contained(lambda: process(inputs, tmp_path / "out"))
    count("damaged output folders", outcome.kind, outcome.cpu_seconds, outcome.megabytes)
    assert outcome.harmless(), outcome
    assert outcome.kind == "value", outcome
    assert outcome.value[0]["lines"] == 60
    assert outputs(tmp_path / "out") == outputs(folders["finished"])


def instead(name: str, make: Craft) -> Craft:
    """Something else in the place of a file or folder."""

    def craft(out: Path) -> None:
        path = out / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        make(path)

    return craft


def to_precious(path: Path) -> None:
    path.symlink_to(path.parents[1 if path.name == ".regard" else 2] / "precious")


HOSTILE: dict[str, Craft] = {
    **{
        f"{kind} as {name}": instead(name, make)
        for name in (".regard", ".regard/lock", ".regard/job.json", ".regard/parts")
        for kind, make in (("a link", to_precious), ("a pipe", os.mkfifo))
    },
    "a link as records": instead(".regard/files", to_precious),
    "a part that is a pipe": lambda f: instead(part(f).relative_to(f).as_posix(), os.mkfifo)(f),
    "a list as job": instead(".regard/job.json", lambda p: p.write_text("[]")),
    "null as job": instead(".regard/job.json", lambda p: p.write_text("null")),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_folders_are_an_error_of_one_line(name, folders, inputs, tmp_path):
    precious = tmp_path / "precious"
    (precious / "a.txt").mkdir(parents=True)
    (precious / "a.txt/precious").write_text("years of work")
    before = sorted(precious.rglob("*"))
    shutil.copytree(folders["killed"], tmp_path / "out")
    HOSTILE[name](tmp_path / "out")
    outcome = contained(lambda: process(inputs, tmp_path / "out"))
    count("crafted output folders", outcome.kind, outcome.cpu_seconds, outcome.megabytes)
    assert outcome.kind == "error", outcome
    assert sorted(precious.rglob("*")) == before
    assert (precious / "a.txt/precious").read_text() == "years of work"


def test_an_output_that_became_a_link_is_replaced(folders, inputs, tmp_path):
    (tmp_path / "precious").write_text("years of work")
    shutil.copytree(folders["finished"], tmp_path / "out")
    instead("a.txt", lambda path: path.symlink_to(tmp_path / "precious"))(tmp_path / "out")
    process(inputs, tmp_path / "out")
    assert (tmp_path / "precious").read_text() == "years of work"
    assert not (tmp_path / "out/a.txt").is_symlink()
    assert outputs(tmp_path / "out") == outputs(folders["finished"])


def test_an_output_that_is_none_is_an_error(folders, inputs, tmp_path):
    for make in (os.mkfifo, os.mkdir):
        shutil.copytree(folders["finished"], tmp_path / make.__name__)
        instead("a.txt", make)(tmp_path / make.__name__)
        with pytest.raises(RegardError, match="not a regular file"):
            process(inputs, tmp_path / make.__name__)
