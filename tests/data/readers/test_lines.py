"""Lines from bytes: newlines, marks, limits; checked against Python's own universal newlines."""

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.readers import lines as module
from regard.data.readers.lines import BOM, decode, line_pieces, lines
from regard.data.readers.sources import Source
from regard.errors import RegardError


def source(tmp_path: Path, content: bytes, name: str = "a.txt") -> Source:
    path = tmp_path / name
    path.write_bytes(content)
    return Source(name, path)


def universal(content: bytes) -> list[bytes]:
    """The lines as io's universal newlines gives them."""
    text = io.TextIOWrapper(io.BytesIO(content), encoding="latin-1", newline=None)
    return [line.removesuffix("\n").encode("latin-1") for line in text]


@given(
    st.lists(st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b" "]), max_size=40),
    st.integers(1, 7),
    st.integers(2, 9),
)
def test_raw_lines_are_those_of_universal_newlines(
    parts: list[bytes], block: int, limit: int
) -> None:
    content = b"".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", block)
        found = list(module.raw_lines(io.BytesIO(content), limit))
        pieces = list(module._raw_pieces(io.BytesIO(content), limit))
    expected = [None if len(line) > limit else line for line in universal(content)]
    assert found == expected
    rejoined, line = [], b""
    for piece, ended in pieces:
        line += piece
        if ended:
            rejoined, line = [*rejoined, line], b""
    assert rejoined == universal(content)
    assert line == b""


def test_byte_order_mark_newlines_and_normal_form(tmp_path: Path) -> None:
    found = source(tmp_path, b"\xef\xbb\xbfe\xcc\x81t\xc3\xa9\r\nzwei\rdrei\n\nvier")
    assert list(lines(found)) == [(1, "été"), (2, "zwei"), (3, "drei"), (4, ""), (5, "vier")]


def test_line_separators_of_unicode_do_not_end_lines(tmp_path: Path) -> None:
    text = "a\u2028b\x85c\x0bd\x0ce"
    assert list(lines(source(tmp_path, text.encode() + b"\n"))) == [(1, text)]


def test_gzip_is_seen_by_its_first_bytes(tmp_path: Path) -> None:
    packed = gzip.compress(b"one\ntwo\n")
    for name in ("a.txt.gz", "a.txt"):
        assert list(lines(source(tmp_path, packed, name))) == [(1, "one"), (2, "two")]


def test_a_long_line_is_counted_but_not_held(tmp_path: Path) -> None:
    found = source(tmp_path, b"short\n" + b"x" * 10_000_000 + b"\nend\n")
    assert list(lines(found)) == [(1, "short"), (2, None), (3, "end")]
    pieces = list(line_pieces(found))
    assert max(len(text) for _, text, _ in pieces) <= module.LINE_LIMIT + 1
    assert sum(len(text) for number, text, _ in pieces if number == 2) == 10_000_000
    assert [number for number, _, more in pieces if not more] == [1, 2, 3]


def test_a_cut_falls_on_a_space_and_never_inside_a_character(tmp_path: Path) -> None:
    found = source(tmp_path, ("wort " * 10 + "é" * 30).encode())
    pieces = [text for _, text, _ in line_pieces(found, limit=16)]
    assert "".join(pieces) == "wort " * 10 + "é" * 30
    assert all(piece.strip() in ("wort wort wort", "wort") or "é" in piece for piece in pieces)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ok\ncaf\xe9\n", r"a.txt:2:4: byte 0xe9 is not UTF-8: .*iconv"),
        (b"a\nb\x00c\n", r"a.txt:2:2: NUL byte"),
        (b"\xff\xfea\x00b\x00", r"a.txt:1:1: UTF-16"),
        (gzip.compress(b"hello world", mtime=0)[:-6], r"a.txt: damaged gzip"),
        (b"\x1f\x8bnonsense", r"a.txt: damaged gzip"),
    ],
)
def test_bytes_that_are_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        list(lines(source(tmp_path, content)))


def test_the_byte_of_an_error_counts_the_mark_before_it():
    for wrong, what in ((b"\xff", "0xff"), (b"\0", "NUL")):
        with pytest.raises(RegardError, match=f"a:1:5: .*{what}"):
            decode(BOM + b"a" + wrong, "a", 1, first=True)
