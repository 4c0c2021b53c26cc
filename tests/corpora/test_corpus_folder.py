"""Built-in corpora as files: read back by our readers, whole or not at all, never over others."""

import json
import os
from pathlib import Path

import pytest

from regard.corpora import CORPORA, make_corpus, write_corpus
from regard.corpora.english_french.sentences import words
from regard.data import read_labelled, read_lines, read_pairs, read_tagged
from regard.errors import RegardError


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", CORPORA)
def test_written_is_what_is_made(name: str, tmp_path: Path) -> None:
    written = write_corpus(name, tmp_path / "corpus", 120, seed=7)
    corpus = make_corpus(name, 120, seed=7)
    for split, paths in written.files.items():
        made = getattr(corpus, split)
        assert written.counts[split] == len(made)
        names = [str(path) for path in paths]
        if name == "english_french":
            read = [(pair.source, pair.target) for pair in read_pairs(names[:2])]
            assert read == [(pair.source, pair.target) for pair in made]
            for pair, line in zip(made, paths[2].read_text().splitlines(), strict=True):
                links = [tuple(map(int, link.split("-"))) for link in line.split()]
                assert links == list(pair.links)
                assert max(i for i, _ in links) == len(words(pair.source)) - 1
        elif name == "algorithms":
            read = [(pair.source, pair.target) for pair in read_pairs(names)]
            assert read == [(pair.source, pair.target) for pair in made]
        elif name == "sentiment":
            read = [(example.text, example.labels) for example in read_labelled(names)]
            assert read == [(example.text, example.labels) for example in made]
        elif name == "entities":
            read = [(example.words, example.tags) for example in read_tagged(names)]
            assert read == [(example.words, example.tags) for example in made]
        else:
            assert [line.text for line in read_lines(names[0])] == [line.text for line in made]
            read = [(line.text, line.condition) for line in read_lines(names[1], condition="topic")]
            assert read == [(line.text, line.condition) for line in made]


def test_the_same_bytes(tmp_path: Path) -> None:
    one = files(write_corpus("english_french", tmp_path / "one", 100, seed=1).folder)
    other = files(write_corpus("english_french", tmp_path / "other", 100, seed=1).folder)
    assert one == other
    assert json.loads(one["corpus.json"])["seed"] == 1


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    assert write_corpus("entities", tmp_path, 100).counts == {"train": 100, "valid": 10, "test": 10}


def test_again_changes_nothing(tmp_path: Path) -> None:
    first = write_corpus("sentiment", tmp_path / "reviews", 100)
    before = {path: path.stat().st_mtime_ns for path in first.folder.iterdir()}
    assert write_corpus("sentiment", tmp_path / "reviews", 100) == first
    assert {path: path.stat().st_mtime_ns for path in first.folder.iterdir()} == before


def test_something_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write_corpus("entities", folder, 100)
    before = files(folder)
    with pytest.raises(RegardError, match="mine: already contains other files"):
        write_corpus("entities", folder, 200)
    with pytest.raises(RegardError, match="already contains other files"):
        write_corpus("sentiment", folder, 100)
    assert files(folder) == before
    (folder / "train.conll").write_text("edited O\n")
    with pytest.raises(RegardError, match="already contains other files"):
        write_corpus("entities", folder, 100)
    assert (folder / "train.conll").read_text() == "edited O\n"


@pytest.mark.parametrize("content", ["", "{}", "[]", "not json", '{"bytes": 3}'])
def test_foreign_descriptions(content: str, tmp_path: Path) -> None:
    (tmp_path / "corpus.json").write_text(content)
    with pytest.raises(RegardError, match="already contains other files"):
        write_corpus("entities", tmp_path, 100)
    assert files(tmp_path) == {"corpus.json": content.encode()}


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(RegardError, match="taken: is not a folder"):
        write_corpus("entities", tmp_path / "taken", 100)
    with pytest.raises(RegardError, match=r"cannot be written .Not a directory"):
        write_corpus("entities", tmp_path / "taken" / "below", 100)
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RegardError, match=r"cannot be written .No space left on device"):
        write_corpus("stories", tmp_path / "corpus", 100)
    assert list(tmp_path.iterdir()) == []


def test_wrong_requests(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="unknown corpus 'english_frnch': did you mean"):
        write_corpus("english_frnch", tmp_path / "corpus", 100)
    with pytest.raises(RegardError, match="corpus of 5 examples: expected 100 or more"):
        write_corpus("english_french", tmp_path / "corpus", 5)
    with pytest.raises(RegardError, match="expected 100 or more"):
        make_corpus("entities", 0)
    with pytest.raises(RegardError, match="built-in corpus entities: no option 'kind'"):
        write_corpus("entities", tmp_path / "corpus", 100, kind="sort")
    with pytest.raises(RegardError, match="unknown option 'knd': did you mean 'kind'"):
        make_corpus("algorithms", 100, knd="sort")
    assert not (tmp_path / "corpus").exists()


def test_too_many() -> None:
    from regard.corpora.built_in_corpus import sample_distinct

    with pytest.raises(RegardError, match="only 2 different examples for a split of 3"):
        list(sample_distinct(iter("abab" * 50_000).__next__, str, 3, set()))
