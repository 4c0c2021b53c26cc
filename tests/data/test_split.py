from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.cli import main
from regard.data import (
    Labelled,
    Line,
    Pair,
    Summary,
    Tagged,
    read_labelled,
    read_lines,
    read_pairs,
    read_tagged,
)
from regard.data.describe import describe
from regard.data.split import split_by_hash, split_key, write_split
from regard.errors import RegardError


@given(st.lists(st.text("abc", max_size=4), min_size=1, max_size=40), st.integers(0, 9))
def test_shares_are_kept_and_equal_sources_stay_together(keys: list[str], seed: int) -> None:
    distinct = len(set(keys))
    if distinct < 3:
        with pytest.raises(RegardError, match="too few distinct examples"):
            split_by_hash(keys, valid=0.2, test=0.3, seed=seed)
        return
    split = split_by_hash(keys, valid=0.2, test=0.3, seed=seed)
    parts = {key: split.of(key) for key in keys}
    counts = [list(parts.values()).count(name) for name in ("train", "valid", "test")]
    assert counts[1] == max(round(0.2 * distinct), 1)
    assert counts[2] == max(round(0.3 * distinct), 1)
    again = split_by_hash(sorted(keys), valid=0.2, test=0.3, seed=seed)
    assert {key: again.of(key) for key in keys} == parts


def test_a_split_does_not_depend_on_order_and_is_capped() -> None:
    keys = [f"sentence {i}" for i in range(5000)]
    split = split_by_hash(keys, valid=0.5, most=70)
    assert sum(split.of(key) == "valid" for key in keys) == 70
    assert split_by_hash(keys[::-1], valid=0.5, most=70) == split
    other = split_by_hash(keys, valid=0.5, most=70, seed=1)
    assert [other.of(k) for k in keys] != [split.of(k) for k in keys]
    with pytest.raises(RegardError, match="expected at least 0 each, and a sum below 1"):
        split_by_hash(keys, valid=0.6, test=0.5)


def test_what_stays_together() -> None:
    frames = np.zeros((2, 3))
    assert split_key(Pair("a", "b")) == split_key(Pair("a", "c")) == "a"
    assert split_key(Labelled("x", ("y",))) == split_key(Line("x")) == "x"
    assert split_key(Tagged(("a", "b"), ("O", "O"))) == "a b"
    assert (
        split_key(Labelled(frames, ("y",), "f:1"))
        == split_key(Tagged(frames, ("y",), "f:1"))
        == "f:1"
    )


def test_a_description(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("the cat\tle chat\nthe cat\tle chat\nthe dog runs\tx\n\n")
    summary = Summary()
    found = describe(read_pairs(tmp_path / "a.tsv", summary=summary), summary)
    source, target = found.sides
    assert (found.examples, source.name, target.name) == (3, "source", "target")
    assert (source.words, source.vocabulary, source.singletons) == (7, 4, 2)
    assert source.most_common[0] == ("the", 3)
    assert (source.lengths[0], source.lengths[50], source.lengths[100]) == (2, 2, 3)
    assert str(found.summary) == "4 read, 1 empty, 3 kept, 1 duplicated"


def test_labels_are_counted() -> None:
    rows = [Labelled("a", ("x",)), Labelled("b", ("y", "x")), Labelled(np.zeros((5, 2)), ("x",))]
    found = describe(rows, Summary())
    assert found.labels == [("x", 3), ("y", 1)]
    assert found.sides[0].lengths[100] == 5
    assert describe([Tagged(("a",), ("O",))], Summary()).labels == [("O", 1)]
    assert describe([Line("a", "happy")], Summary()).labels == [("happy", 1)]
    assert describe([], Summary()).examples == 0


@pytest.mark.parametrize("form", ["tsv", "jsonl"])
def test_what_is_written_is_read_back(tmp_path: Path, form: str) -> None:
    kinds = {
        read_pairs: [Pair(f"é {i // 2}", f"b {i}") for i in range(40)],
        read_labelled: [Labelled(f"a {i}", (f"l{i % 3}",)) for i in range(40)],
        read_tagged: [Tagged((f"a{i}", "#"), ("B-X", "O")) for i in range(40)],
        read_lines: [Line(f"a {i}") for i in range(40)],
    }
    for number, (reader, examples) in enumerate(kinds.items()):
        split = split_by_hash(map(split_key, examples), valid=0.2, test=0.2)
        written = write_split(tmp_path / str(number), split.assign(examples), form)
        assert sum(written.values()) == 40
        assert {path.stem for path in written} == {"train", "valid", "test"}
        parts = {path.stem: [replace(x, where="") for x in reader(path)] for path in written}
        expected = {name: [x for x in examples if split.of(split_key(x)) == name] for name in parts}
        assert parts == expected
    conditioned = [Line(f"a {i}", "xy"[i % 2]) for i in range(9)]
    split = split_by_hash(map(split_key, conditioned))
    (path, _) = write_split(tmp_path / "lines", split.assign(conditioned), form)
    found = read_lines(path, text="text", condition="label")
    assert {x.condition for x in found} == {"x", "y"}


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("x")
    split = split_by_hash("abc")
    with pytest.raises(RegardError, match="already contains other files"):
        write_split(tmp_path / "out", [])
    several = [Labelled("a", ("x",)), Labelled("b", ("x", "y"), "f:2")]
    with pytest.raises(RegardError, match="f:2: TSV holds exactly one label per text, here are 2"):
        write_split(tmp_path / "new", split.assign(several))
    vectors = [Labelled(np.zeros((1, 2)), ("x",), "f:1")]
    with pytest.raises(RegardError, match="vectors cannot be split by this command"):
        write_split(tmp_path / "new", split.assign(vectors))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (path, *_) = write_split(tmp_path / "new", split.assign([Pair("a\tb", "c\nd")]))
    assert "a b\tc d" in path.read_text()


def test_running_text_is_split_by_position(tmp_path, capsys):
    lines = [f"line {i}" for i in range(40)]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    command = ["data", "split", str(tmp_path / "text.txt"), "--task", "language"]
    assert main([*command, "--out", str(tmp_path / "parts")]) == 0
    files = [tmp_path / "parts" / f"{part}.txt" for part in ("train", "valid", "test")]
    assert [file.read_text().splitlines() for file in files] == [
        lines[:32],
        lines[32:36],
        lines[36:],
    ]
    assert main([*command, "--valid", "0.6", "--test", "0.5", "--out", str(tmp_path / "no")]) == 2
    assert "expected at least 0 each, and a sum below 1" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
