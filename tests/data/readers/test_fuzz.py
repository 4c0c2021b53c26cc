"""Whatever the bytes, a reader yields examples or raises one line; what it read adds up."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regard.data import Summary, read_labelled, read_lines, read_pairs, read_tagged
from regard.errors import RegardError

NAMES = ["a.tsv", "a.csv", "a.jsonl", "a.conll", "a.txt", "a", "a.parquet", "a.npy", "a.tsv.gz"]
PIECES = [
    b"\n", b"\r", b"\r\n", b"\t", b",", b'"', b"'", b" ", b"a", b"B-X", b"O", b"__label__", b"text",
    b"label", b"source", b"target", b'{"text": "x", "label": "y"}', b'{"source": "s"}', b"[", b"{}",
    b"#", b"-DOCSTART-", b"\xc3\xa9", b"\xe9", b"\x00", b"\xef\xbb\xbf", b"\x1f\x8b", b"\xff\xfe",
    b"PAR1", b"\x93NUMPY", b"\xe2\x80\xa8", b"\xc2\xa0", b"\\ud800", b"null", b"1e999", b"x.npy",
]  # fmt: skip


def content() -> st.SearchStrategy[bytes]:
    pieces = st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)
    return st.binary(max_size=60) | pieces | pieces.map(gzip.compress)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def consume(found: Iterator[object], summary: Summary) -> None:
    kept = 0
    try:
        for _ in found:
            kept += 1
    except RegardError as error:
        message = str(error)
        assert message
        assert "\n" not in message
    else:
        assert kept > 0
    total = summary.total
    assert total.read == total.empty + total.long + total.kept
    # An example may be counted and then refused, but no more than one, for the reading ends there.
    assert total.kept - kept in (0, 1)


@pytest.mark.parametrize("reader", [read_pairs, read_labelled, read_tagged, read_lines])
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(NAMES), raw=content(), other=content(), both=st.booleans())
def test_any_bytes(
    reader: object, folder: Path, name: str, raw: bytes, other: bytes, both: bool
) -> None:
    (folder / name).write_bytes(raw)
    (folder / "b.txt").write_bytes(other)
    data = [folder / name, folder / "b.txt"] if both else [folder / name]
    summary = Summary()
    consume(reader(data, summary=summary), summary)  # type: ignore[operator]


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.tuples(st.sampled_from("ab \u00e9"), st.sampled_from("xy ")), min_size=1))
def test_every_line_of_a_good_file_is_accounted_for(
    folder: Path, rows: list[tuple[str, str]]
) -> None:
    (folder / "g.de").write_text("\n".join(a for a, _ in rows) + "\n", "utf-8")
    (folder / "g.en").write_text("\n".join(b for _, b in rows) + "\n", "utf-8")
    summary = Summary()
    expected = [(a, b) for a, b in rows if a.strip() and b.strip()]
    reading = read_pairs([folder / "g.de", folder / "g.en"], summary=summary)
    if expected:
        assert [(p.source, p.target) for p in reading] == expected
    else:
        with pytest.raises(RegardError, match="no usable line"):
            list(reading)
    total = summary.total
    assert (total.read, total.kept) == (len(rows), len(expected))
    assert total.duplicated == len(expected) - len(set(expected))
