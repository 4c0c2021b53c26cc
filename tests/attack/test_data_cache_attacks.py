"""A cache of prepared data that is damaged or crafted: the data is read again, and nothing else."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from regard.cli import main
from regard.training.matrix_products import _read
from regard.training.run import train_run
from regard.training.stored_runs import data_cache
from regard.verified_files import json_digest
from tests.attack.contained import contained
from tests.attack.tally import count
from tests.training.tiny import OPTIONS, write_data

Craft = Callable[[Path], object]
PRECIOUS = b"years of work"


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[str]:
    return write_data(tmp_path_factory.mktemp("data"), "classify")


def train(files: list[str], out: Path, cache: Path | bool) -> tuple[list[str], dict[str, bytes]]:
    """The lines that training prints, and the prepared data."""
    lines: list[str] = []
    options = OPTIONS["classify"] | {"steps": 1, "average": 1, "data": files}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_cache, "LEAST", 0)
        train_run("classify", options, out, log=lines.append, data_cache=cache)
    assert not any(path.is_symlink() for path in (out / "data").iterdir())
    return lines, {path.name: path.read_bytes() for path in (out / "data").iterdir()}


@pytest.fixture(scope="module")
def cache(files, tmp_path_factory, unchecked) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    train(files, folder / "run", folder / "cache")
    lines, _ = train(files, folder / "again", folder / "cache")
    assert any("prepared data reused" in line for line in lines)
    return folder / "cache"


@pytest.fixture(scope="module")
def expected(files, tmp_path_factory, unchecked) -> dict[str, bytes]:
    return train(files, tmp_path_factory.mktemp("plain") / "run", False)[1]


@pytest.fixture(scope="module")
def unchecked():
    """Shapes are checked elsewhere."""
    from jaxtyping import config

    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", before)


def entry(cache: Path) -> Path:
    (path,) = (cache / "data").iterdir()
    return path


def forged(change: Callable[[dict], object]) -> Craft:
    """Another entry, whose own digest is right."""

    def craft(cache: Path) -> None:
        path = entry(cache) / "entry.json"
        record = json.loads(path.read_text())
        del record["digest"]
        change(record)
        path.unlink()
        path.write_text(json.dumps({**record, "digest": json_digest(record)}))

    return craft


def file_named(name: str) -> Craft:
    digest = hashlib.sha256(PRECIOUS).hexdigest()
    return forged(lambda record: record["digests"].update({name: digest}))


def report(**values: object) -> Craft:
    return forged(lambda record: record["report"].update(values))


def instead(name: str, make: Craft) -> Craft:
    def craft(cache: Path) -> None:
        path = (entry(cache) if name.startswith("entry/") else cache) / name.removeprefix("entry/")
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        make(path)

    return craft


def replaced(old: bytes, new: bytes) -> Craft:
    def craft(cache: Path) -> None:
        path = entry(cache) / "entry.json"
        content = path.read_bytes()
        assert old in content
        path.unlink()
        path.write_bytes(content.replace(old, new, 1))

    return craft


def moved(cache: Path) -> None:
    """A file that became a link to the same content elsewhere."""
    path = entry(cache) / "tokenizer.json"
    path.rename(cache / "elsewhere.json")
    path.symlink_to(cache / "elsewhere.json")


def to_precious(path: Path) -> None:
    path.symlink_to(next(p for p in path.parents if p.name == "cache").parent / "precious")


CASES: dict[str, Craft] = {
    "a file elsewhere": file_named("../../precious/file"),
    "the same file twice": file_named("./tokenizer.json"),
    "a file of no name": file_named(""),
    "a name with a zero": file_named("a\0b"),
    "half a letter": file_named("\ud800"),
    "a list as entry": instead("entry/entry.json", lambda p: p.write_text("[]")),
    "a nested entry": instead("entry/entry.json", lambda p: p.write_text("[" * 200_000)),
    "a damaged report": replaced(b"30 read", b"31 read"),
    "sizes that are a text": report(sizes="abc"),
    "sizes of texts": report(sizes={"train": "x"}),
    "labels in a list": report(labels=[1]),
    "notes that are a number": report(notes=3),
    "something else read": report(read={"a": 1}),
    "more in a report": report(more=1),
    "a size that is a text": forged(lambda record: record.update(size="x")),
    "an endless size": forged(lambda record: record.update(size=float("inf"))),
    "a link in an entry": moved,
    "an endless limit": instead("settings.json", lambda p: p.write_text('{"limit": 1e999}')),
    **{
        f"{kind} as {name}": instead(name, make)
        for name in ("lock", "data", "settings.json", "entry/tokenizer.json", "entry/entry.json")
        for kind, make in (("a pipe", os.mkfifo), ("a link", to_precious))
    },
}


@pytest.mark.parametrize("name", CASES)
def test_a_crafted_cache_costs_nothing_but_time(name, files, cache, expected, tmp_path, capfd):
    shutil.copytree(cache, tmp_path / "cache")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious/file").write_bytes(PRECIOUS)
    CASES[name](tmp_path / "cache")
    folder = str(tmp_path / "cache")

    def use() -> object:
        prepared = train(files, tmp_path / "run", tmp_path / "cache")[1]
        codes = [main(["data", "cache", "--folder", folder, *w]) for w in ((), ("--limit", "0"))]
        return prepared == expected, codes, main(["data", "cache", "--folder", folder, "--clear"])

    outcome = contained(use)
    count("crafted caches", outcome.kind, outcome.cpu_seconds, outcome.megabytes)
    assert outcome.harmless(), outcome
    same, codes, cleared = outcome.value
    assert same
    assert {*codes, cleared} <= {0, 2}
    assert [path.name for path in (tmp_path / "precious").iterdir()] == ["file"]
    assert (tmp_path / "precious/file").read_bytes() == PRECIOUS


def test_limits_without_an_end_are_refused(tmp_path, capsys):
    for limit in ("inf", "nan", "1e300", "-1"):
        assert main(["data", "cache", "--folder", str(tmp_path), "--limit", limit]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("[" * 200_000),
        lambda path: path.write_text('{"a": [1], "b": "mkl2"}'),
        lambda path: path.write_bytes(b"\xff"),
        os.mkfifo,
        os.mkdir,
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.symlink_to(path.name),
    ],
)
def test_damaged_measurements_of_products_are_none(make, tmp_path):
    make(tmp_path / "matrix_products.json")
    outcome = contained(lambda: _read(tmp_path / "matrix_products.json"))
    assert (outcome.kind, outcome.value) == ("value", {}), outcome
