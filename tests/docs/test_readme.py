"""Every command and every line of Python in the README runs, on files like those that it names."""

import doctest
import gzip
import shutil
from pathlib import Path

import pytest

import regard
from tests.docs.code_blocks import ROOT, run_page, run_regard

README = ROOT / "README.md"
NOT_RUN = (
    "pip install",
    "make ",
    "regard serve",  # runs until it is stopped; tests/serve has its tests
    "regard train classify --attention distance",  # of a package that tests/extension makes
)
FILES = {
    "translation": "train.en:train.de train.fr:train.en valid.en:val.de valid.fr:val.en "
    "test.en:test.de test.fr:test.en test.alignments:test.gold test.en:in.txt "
    "train.en:pairs.en train.fr:pairs.fr",
    "classify": "train.tsv:reviews.tsv test.tsv:test.tsv",
    "language": "train.txt:text.txt",
    "tag": "train.conll:ner.conll",
}
"""For each task, which generated file stands for which name in the README."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small data under the names of the README, and two runs that it takes for granted."""
    monkeypatch.chdir(tmp_path)
    for task, names in FILES.items():
        made = f"data make {task} --size 100 --out made/{task}"
        code, _, errors = run_regard(made.split(), b"")
        assert code == 0, errors
        for pair in names.split():
            generated, name = pair.split(":")
            shutil.copyfile(f"made/{task}/{generated}", name)
    Path("corpus").mkdir()
    Path("corpus/a.gz").write_bytes(gzip.compress(b"ein Haus\n"))
    for example, run in (("language", "lm"), ("sentiment", "reviews")):
        shutil.copytree(ROOT / "regard/examples" / example, f"runs/{run}")
    return tmp_path


def test_its_commands_run(folder: Path) -> None:
    pytest.importorskip("onnx")
    lines = (folder / "reviews.tsv").read_text("utf-8").splitlines()[1:]
    pairs = [tuple(line.split("\t")) for line in lines]
    quick = {"train": ["--steps", "2"]}
    run_page(README, {"regard": regard, "pairs": pairs}, added=quick, skipped=NOT_RUN)
    assert (folder / "page.html").is_file()


def test_its_examples_print_what_it_says() -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(README), module_relative=False, optionflags=flags)
    assert found.attempted > 10
    assert found.failed == 0
