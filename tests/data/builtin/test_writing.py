"""Built-in corpora as files: read back by our readers, whole or not at all, never over others."""

import json
import os
from pathlib import Path

import pytest

from regard.data import read_labelled, read_lines, read_pairs, read_tagged
from regard.data.builtin import TASKS, make, words, write
from regard.errors import RegardError


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("task", TASKS)
def test_written_is_what_is_made(task: str, tmp_path: Path) -> None:
    written = write(task, tmp_path / "corpus", 120, seed=7)
    corpus = make(task, 120, seed=7)
    for part, paths in written.files.items():
        made = getattr(corpus, part)
        assert written.counts[part] == len(made)
        names = [str(path) for path in paths]
        if task == "translation":
            read = [(pair.source, pair.target) for pair in read_pairs(names[:2])]
            assert read == [(pair.source, pair.target) for pair in made]
            for pair, line in zip(made, paths[2].read_text().splitlines(), strict=True):
                links = [tuple(map(int, link.split("-"))) for link in line.split()]
                assert links == list(pair.links)
                assert max(i for i, _ in links) == len(words(pair.source)) - 1
        elif task == "algorithm":
            read = [(pair.source, pair.target) for pair in read_pairs(names)]
            assert read == [(pair.source, pair.target) for pair in made]
        elif task == "classify":
            read = [(example.text, example.labels) for example in read_labelled(names)]
            assert read == [(example.text, example.labels) for example in made]
        elif task == "tag":
            read = [(example.words, example.tags) for example in read_tagged(names)]
            assert read == [(example.words, example.tags) for example in made]
        else:
            assert [line.text for line in read_lines(names[0])] == [line.text for line in made]
            read = [(line.text, line.condition) for line in read_lines(names[1], condition="topic")]
            assert read == [(line.text, line.condition) for line in made]


def test_the_same_bytes(tmp_path: Path) -> None:
    one = files(write("translation", tmp_path / "one", 100, seed=1).folder)
    other = files(write("translation", tmp_path / "other", 100, seed=1).folder)
    assert one == other
    assert json.loads(one["corpus.json"])["seed"] == 1


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    assert write("tag", tmp_path, 100).counts == {"train": 100, "valid": 10, "test": 10}


def test_again_changes_nothing(tmp_path: Path) -> None:
    first = write("classify", tmp_path / "reviews", 100)
    before = {path: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    assert write("classify", tmp_path / "reviews", 100) == first
    assert {path: path.stat().st_mtime_ns for path in first.folder.iterdir()} == before


def test_something_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write("tag", folder, 100)
    before = files(folder)
    with pytest.raises(RegardError, match="mine: holds something else, nothing was written"):
        write("tag", folder, 200)
    with pytest.raises(RegardError, match="holds something else"):
        write("classify", folder, 100)
    assert files(folder) == before
    (folder / "train.conll").write_text("edited O\n")
    with pytest.raises(RegardError, match="holds something else"):
        write("tag", folder, 100)
    assert (folder / "train.conll").read_text() == "edited O\n"


@pytest.mark.parametrize("content", ["", "{}", "[]", "not json", '{"bytes": 3}'])
def test_foreign_descriptions(content: str, tmp_path: Path) -> None:
    (tmp_path / "corpus.json").write_text(content)
    with pytest.raises(RegardError, match="holds something else"):
        write("tag", tmp_path, 100)
    assert files(tmp_path) == {"corpus.json": content.encode()}


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(RegardError, match="taken: holds something else"):
        write("tag", tmp_path / "taken", 100)
    with pytest.raises(RegardError, match="cannot write the corpus: Not a directory"):
        write("tag", tmp_path / "taken" / "below", 100)
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RegardError, match="cannot write the corpus: No space left on device"):
        write("language", tmp_path / "corpus", 100)
    assert list(tmp_path.iterdir()) == []


def test_wrong_requests(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="unknown task 'translate': did you mean 'translation'"):
        write("translate", tmp_path / "corpus", 100)
    with pytest.raises(RegardError, match="corpus of 5 examples: expected 100 or more"):
        write("translation", tmp_path / "corpus", 5)
    with pytest.raises(RegardError, match="expected 100 or more"):
        make("tag", 0)
    assert not (tmp_path / "corpus").exists()


def test_too_many() -> None:
    from regard.data.builtin.parts import distinct

    with pytest.raises(RegardError, match="no more than 2 examples of this kind, 3 were asked for"):
        list(distinct(iter("abab" * 50_000).__next__, str, 3, set()))
