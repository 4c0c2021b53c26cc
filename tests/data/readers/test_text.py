from pathlib import Path

import numpy as np
import pytest

from regard.data import Summary, read_lines
from regard.errors import RegardError


def test_plain_text_and_what_became_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(" one \n\ntwo\ttabs\nthree " + "word " * 300_000 + "\n")
    summary = Summary()
    found = list(read_lines(tmp_path / "a.txt", summary=summary))
    assert [x.text for x in found[:2]] == ["one", "two\ttabs"]
    assert " ".join(x.text for x in found[2:]) == ("three " + "word " * 300_000).strip()
    total = summary.total
    assert (total.read, total.empty, total.kept, total.split) == (5, 1, 4, 1)
    assert "1 split at the line limit" in str(summary)


def test_a_column_of_labels_is_a_condition(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("text\tmood\nla la\thappy\nboo\tsad\n")
    found = [(x.text, x.condition) for x in read_lines(tmp_path / "a.tsv", condition="mood")]
    assert found == [("la la", "happy"), ("boo", "sad")]
    assert [x.condition for x in read_lines(tmp_path / "a.tsv")] == [None, None]
    (tmp_path / "a.txt").write_text("la la\n")
    with pytest.raises(RegardError, match="plain text has no column 'mood'"):
        list(read_lines(tmp_path / "a.txt", condition="mood"))


def test_vectors_as_conditions(tmp_path: Path) -> None:
    vectors = np.arange(15, dtype=np.float32).reshape(3, 5)
    np.save(tmp_path / "v.npy", vectors)
    (tmp_path / "a.txt").write_text("one\n\nthree\n")
    found = list(read_lines(tmp_path / "a.txt", condition=str(tmp_path / "v.npy")))
    assert [x.text for x in found] == ["one", "three"]
    np.testing.assert_array_equal(np.stack([np.asarray(x.condition) for x in found]), vectors[::2])
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    with pytest.raises(RegardError, match="more vectors than lines"):
        list(read_lines(tmp_path / "a.txt", condition=str(tmp_path / "v.npy")))
    (tmp_path / "a.txt").write_text("one\ntwo\n3\n4\n")
    with pytest.raises(RegardError, match=r"no vector for .*a.txt:4"):
        list(read_lines(tmp_path / "a.txt", condition=str(tmp_path / "v.npy")))


def test_the_wrong_kind_of_file(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text("Rome B-LOC\n")
    with pytest.raises(RegardError, match="expected running text"):
        list(read_lines(tmp_path / "a.conll"))
