import io
import os
import sys
import threading
from pathlib import Path

import pytest

from regard.data import read_pairs, resolve
from regard.data.readers.lines import lines
from regard.errors import RegardError


def test_globs_are_expanded_in_order_and_know_their_argument(tmp_path: Path) -> None:
    for name in ("b.de", "a.de", "a.en", "b.en"):
        (tmp_path / name).write_text(name)
    found = resolve([f"{tmp_path}/*.de", f"{tmp_path}/*.en"])
    assert [(Path(s.name).name, s.argument) for s in found] == [
        ("a.de", 0),
        ("b.de", 0),
        ("a.en", 1),
        ("b.en", 1),
    ]


def test_a_file_whose_name_looks_like_a_glob(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").write_text("x")
    assert len(resolve(tmp_path / "a[1].txt")) == 1


class Standard:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def test_standard_input_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Standard(b"ein haus\ta house\n"))
    found = resolve("-")
    once, again = list(read_pairs(found)), list(read_pairs(found))
    assert once == again
    assert (once[0].source, once[0].target, once[0].where) == ("ein haus", "a house", "-:1")
    assert found[0].fingerprint() is None


def test_standard_input_is_named_once() -> None:
    with pytest.raises(RegardError, match="named twice"):
        resolve(["-", "-"])


def test_a_pipe_can_be_read_again(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("one\ntwo\n"))
    writer.start()
    (found,) = resolve(pipe)
    assert list(lines(found)) == list(lines(found)) == [(1, "one"), (2, "two")]
    writer.join()


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "train.de").write_text("x")
    with pytest.raises(RegardError, match=r"trian.de: no such file: did you mean .*train.de\?"):
        resolve(tmp_path / "trian.de")
    with pytest.raises(RegardError, match=r"no such file, since there is no folder"):
        resolve(tmp_path / "nowhere" / "train.de")
    with pytest.raises(RegardError, match=r"no file matches"):
        resolve(f"{tmp_path}/*.fr")
    with pytest.raises(RegardError, match=r"is a folder: expected files in it, .*train.de"):
        resolve(tmp_path)
    with pytest.raises(RegardError, match="expected at least one file name"):
        resolve([])


def test_the_fingerprint_follows_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x")
    (found,) = resolve(path)
    before = found.fingerprint()
    assert before == found.fingerprint()
    path.write_text("xy")
    assert found.fingerprint() != before
