import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import corpus as module
from regard.data import resolve
from regard.data.corpus import Corpus, fingerprint, reuse_or_write, write_rows
from regard.errors import RegardError


def some_rows(count: int) -> list[dict[str, object]]:
    draw = np.random.default_rng(count)
    return [
        {
            "source": draw.integers(0, 100, draw.integers(0, 7)).tolist(),
            "frames": draw.normal(size=(int(draw.integers(0, 5)), 3)).astype(np.float32),
            "label": i,
            "weight": i / 2,
            "text": f"é {i}",
        }
        for i in range(count)
    ]


@pytest.mark.parametrize(("count", "chunk"), [(1, 5), (5, 5), (23, 5), (23, 1)])
def test_rows_come_back_in_any_order(tmp_path: Path, count: int, chunk: int) -> None:
    rows = some_rows(count)
    corpus = write_rows(tmp_path / "a.arrow", iter(rows), chunk=chunk)
    assert len(corpus) == count
    assert corpus.columns == ("source", "frames", "label", "weight", "text")
    order = np.random.default_rng(1).permutation(count)
    found = corpus.rows(order)
    for at, i in enumerate(order):
        assert found["source"][at].tolist() == rows[i]["source"]
        np.testing.assert_array_equal(found["frames"][at], rows[i]["frames"])
        for name in ("label", "weight", "text"):
            assert found[name][at] == rows[i][name]
    lengths = corpus.lengths("source")
    assert lengths.dtype == np.int32
    assert lengths.tolist() == [len(row["source"]) for row in rows]  # type: ignore[arg-type]
    assert list(corpus.column("label")) == list(range(count))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=12), st.data())
def test_a_stream_is_sliced_like_one_array(sizes: list[int], data: st.DataObject) -> None:
    whole = np.arange(sum(sizes), dtype=np.int32)
    stream = module.Stream(np.split(whole, np.cumsum(sizes)[:-1]))
    assert len(stream) == len(whole)
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(0, len(whole) + 3))
    assert stream[start:stop].tolist() == whole[start:stop].tolist()


def test_the_stream_of_a_column(tmp_path: Path) -> None:
    rows = some_rows(23)
    stream = write_rows(tmp_path / "a.arrow", rows, chunk=4).stream("source")
    whole = [i for row in rows for i in row["source"]]  # type: ignore[attr-defined]
    assert stream[0 : len(stream)].tolist() == whole


def test_a_corpus_is_reused_only_if_it_is_the_right_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    sources = resolve(tmp_path / "a.txt")
    path, made = tmp_path / "a.arrow", []

    def rows() -> list[dict[str, object]]:
        made.append(1)
        return some_rows(3)

    key = fingerprint(sources, "tokenizer", {"b": 1, "a": 2})
    assert key == fingerprint(sources, "tokenizer", {"a": 2, "b": 1})
    first = reuse_or_write(path, rows, key, lambda: {"read": 3})
    assert reuse_or_write(path, rows, key).metadata == first.metadata == {"read": 3}
    assert len(made) == 1
    assert reuse_or_write(path, rows, fingerprint(sources, "another")).fingerprint != key
    (tmp_path / "a.txt").write_text("longer")
    assert fingerprint(sources, "tokenizer", {"b": 1, "a": 2}) != key
    reuse_or_write(path, rows, None)
    reuse_or_write(path, rows, None)
    path.write_bytes(path.read_bytes()[:-100])
    assert len(reuse_or_write(path, rows, key)) == 3
    assert len(made) == 5


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    write_rows(path, some_rows(3))
    before = path.read_bytes()

    def failing() -> object:
        yield from some_rows(2)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        write_rows(path, failing())  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="no examples to write"):
        write_rows(path, [])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.arrow"]


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RegardError, match=r"a.arrow: cannot be written \(No space left"):
        write_rows(tmp_path / "a.arrow", some_rows(2))
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(RegardError, match="cannot be written"):
        write_rows(tmp_path / "file" / "a.arrow", some_rows(2))


def test_a_foreign_file(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    for content in (b"", b"nonsense", json.dumps({}).encode()):
        path.write_bytes(content)
        with pytest.raises(RegardError, match=r"a.arrow: not a tokenized corpus of Regard"):
            Corpus(path)


def test_memory_stays_with_the_machine(tmp_path: Path) -> None:
    rows = ({"ids": np.full(1000, i)} for i in range(20_000))

    def owned() -> int:
        status = Path("/proc/self/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0])

    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    before = owned()
    corpus = write_rows(tmp_path / "a.arrow", rows, chunk=256)
    total = sum(int(corpus.rows([i])["ids"][0].sum()) for i in range(len(corpus)))
    assert total == 1000 * sum(range(20_000))
    assert (tmp_path / "a.arrow").stat().st_size > 80e6
    assert owned() - before < 40_000
