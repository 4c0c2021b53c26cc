"""Examples stored by the first reading: the same as those read, or none at all."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import Summary
from regard.data.examples import AlignedPair, Example, Labelled, Line, Pair, Tagged
from regard.data.readers.sources import Source
from regard.data.stored_examples import StoredExamples
from regard.tasks.shared.splits import make_splits
from regard.tasks.translation.task import TranslationData, read

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=7)
WORDS = st.lists(TEXTS, max_size=3).map(tuple)
KINDS = [
    (Pair, st.tuples(TEXTS, TEXTS, TEXTS)),
    (Labelled, st.tuples(TEXTS, WORDS, TEXTS)),
    (Tagged, st.tuples(WORDS, WORDS, TEXTS)),
    (Line, st.tuples(TEXTS, st.none() | TEXTS, TEXTS)),
]


def store(examples: list[Example], folder: Path | None = None) -> StoredExamples:
    stored = StoredExamples(folder)
    assert list(stored.store(iter(examples))) == examples
    return stored


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=["pairs", "labelled", "tagged", "lines"])
def test_what_was_stored_is_what_was_read(kind: type, values: st.SearchStrategy[Any]) -> None:
    @given(st.lists(st.tuples(values, st.booleans()), max_size=5))
    def check(rows: list[Any]) -> None:
        examples = [kind(*row) for row, _ in rows]
        stored = store(examples)
        assert stored.whole
        assert [example for chunk in stored.chunks() for example in chunk] == examples
        chosen = np.array([keep for _, keep in rows], bool)
        some = [example for chunk in stored.chunks(chosen) for example in chunk]
        assert some == [e for e, keep in zip(examples, chosen, strict=True) if keep]
        for example in some:
            for field in fields(example):
                assert type(getattr(example, field.name)) in (str, tuple, type(None))

    check()


def test_several_chunks_keep_their_order() -> None:
    pairs = [Pair(str(i), str(-i)) for i in range(5000)]
    stored = store(pairs)  # type: ignore[arg-type]
    chunks = list(stored.chunks())
    assert len(chunks) == 3
    assert [pair for chunk in chunks for pair in chunk] == pairs
    odd = np.arange(5000) % 2 == 1
    assert [pair for chunk in stored.chunks(odd) for pair in chunk] == pairs[1::2]


@pytest.mark.parametrize(
    "examples",
    [
        [AlignedPair("a", "b", links=((0, 0),))],
        [Pair("a", "b"), AlignedPair("a", "b")],
        [Pair("\ud800", "b")],
        [Line("a", np.zeros(3))],
    ],
    ids=["links", "mixed", "surrogate", "vector"],
)
def test_what_arrow_cannot_hold_is_not_stored(examples: list[Example]) -> None:
    stored = StoredExamples()
    assert len(list(stored.store(iter(examples)))) == len(examples)
    assert not stored.whole


def test_nothing_is_stored_where_no_file_can_be_made(tmp_path: Path) -> None:
    assert not store([Pair("a", "b")], tmp_path / "missing").whole


def test_a_reading_that_was_not_finished_is_not_stored() -> None:
    stored = StoredExamples()
    next(stored.store(iter([Pair("a", "b"), Pair("c", "d")])))
    assert not stored.whole


@pytest.mark.parametrize("links", [False, True])
def test_files_are_read_once_and_give_the_same_splits(tmp_path: Path, links: bool) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"one {i % 83}\tun {i}\n" for i in range(100)))
    readings = []

    def reader(data: TranslationData, sources: list[Source], summary: Summary):  # type: ignore[no-untyped-def]
        readings.append(1)
        for pair in read(data, sources, summary):
            yield AlignedPair(pair.source, pair.target, pair.where) if links else pair

    data = TranslationData(data=[str(path)])
    splits = make_splits("english_french", data, reader, 0, folder=tmp_path)
    train, valid = list(splits.train()), list(splits.valid())
    assert [*splits.train()] == train
    assert [*splits.valid()] == valid
    assert len(readings) == (6 if links else 1)
    assert sorted(int(p.target.split()[1]) for p in train + valid) == list(range(100))
    assert not {p.source for p in train} & {p.source for p in valid}
    assert "100 read, 100 kept" in splits.summary()
    assert [p.name for p in tmp_path.iterdir()] == ["pairs.tsv"]
