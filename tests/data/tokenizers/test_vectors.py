import gzip
from pathlib import Path

import pytest

from regard.data.tokenizers.vectors import read_vectors
from regard.errors import RegardError

GLOVE = "the 0.5 -1 2\n. . . 1 1 1\nhouse 3 4 5e-1\nHaus\u0308er 0 0 1\n"


@pytest.mark.parametrize("name", ["glove.txt", "glove.txt.gz", "wiki.vec"])
def test_only_the_words_asked_for(tmp_path: Path, name: str) -> None:
    text = ("4 3\n" if name.endswith("vec") else "") + GLOVE
    raw = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    found = read_vectors(tmp_path / name, ["House", "the", "missing", ". . .", "Haus\u0308er"])
    assert found.matrix[:4].tolist() == [[3, 4, 0.5], [0.5, -1, 2], [0, 0, 0], [1, 1, 1]]
    assert found.known[:4].tolist() == [True, True, False, True]
    assert found.matrix.shape == (5, 3)
    assert read_vectors(tmp_path / name, ["the", "missing"]).coverage == 0.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("the 1 2 3\na 1 2\n", r"v.txt:2: 2 numbers after the word: expected 3"),
        ("the 1 2 3\na 1 x 3\n", r"v.txt:2: not a number"),
        ("the 1 2 3\na 1 nan 3\n", r"v.txt:2: not a finite number"),
        ("", r"v.txt: no vectors"),
        ("3 4\n", r"v.txt: no vectors"),
        ("alone\n", r"v.txt:1: 0 numbers"),
        ("a 1 2 " + "3" * 2_000_000, r"v.txt:1: line of more than 1 MiB"),
    ],
)
def test_malformed_lines(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "v.txt").write_text(content)
    with pytest.raises(RegardError, match=message):
        read_vectors(tmp_path / "v.txt", ["a"])
