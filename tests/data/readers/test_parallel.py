import gzip
import json
import random
import sys
import types
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from regard.data import Summary, read_pairs
from regard.data.readers.parallel import find_shift
from regard.errors import RegardError
from regard.tasks.shared.splits import make_splits
from regard.tasks.translation.task import read
from regard.tasks.translation.task_options import TranslationData

HOUSE = [("ein haus", "a house"), ("zwei häuser", "two houses")]


def texts(data: object, **options: str) -> list[tuple[str, str]]:
    return [(p.source, p.target) for p in read_pairs(data, **options)]  # type: ignore[arg-type]


def files(folder: Path, **content: str) -> list[str]:
    for name, text in content.items():
        (folder / name.replace("_", ".")).write_text(text, "utf-8")
    return [str(folder / name.replace("_", ".")) for name in content]


def write_table(path: Path, header: tuple[str, str] | None = ("source", "target")) -> Path:
    rows = [*([header] if header else []), *HOUSE]
    if path.name.startswith("a.jsonl"):
        text = "\n".join(json.dumps(dict(zip(header or (), row, strict=True))) for row in HOUSE)
    else:
        text = "\n".join(("," if "csv" in path.name else "\t").join(row) for row in rows)
    raw = text.encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.tsv.gz", "a.jsonl.gz", "a"])
def test_tables(tmp_path: Path, name: str) -> None:
    assert texts(write_table(tmp_path / name)) == HOUSE


def test_a_table_without_names_and_by_number(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.tsv", None)
    assert texts(path) == HOUSE
    assert texts(path, source="2") == [(b, a) for a, b in HOUSE]


def test_columns_by_name_turn_the_direction(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.tsv", ("de", "en"))
    assert texts(path) == HOUSE
    assert texts(path, source="en") == [(b, a) for a, b in HOUSE]
    assert texts(path, source="EN", target="de") == [(b, a) for a, b in HOUSE]


def test_a_first_line_that_may_name_columns_is_noted(tmp_path: Path) -> None:
    path = write_table(tmp_path / "a.csv", ("text", "label"))
    summary = Summary()
    assert len(list(read_pairs(path, summary=summary))) == 3
    (note,) = summary.notes
    assert note.startswith(f"{path}:1 counts as an example, though it may name columns")
    assert note.endswith("--source 'text' --target 'label'")
    summary = Summary()
    assert len(list(read_pairs(path, "text", "label", summary))) == 2
    assert not summary.notes
    splits = make_splits("", TranslationData(data=[str(path)]), read, 0)
    assert len([*splits.train(), *splits.valid()]) == 3
    assert splits.report({}).notes == (note,)


@pytest.mark.parametrize("packed", [False, True])
def test_parquet(tmp_path: Path, packed: bool) -> None:
    table = pa.table({"id": [1, 2], "en": [b for _, b in HOUSE], "de": [a for a, _ in HOUSE]})
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path)
    if packed:
        raw, path = path.read_bytes(), tmp_path / "b.parquet.gz"
        path.write_bytes(gzip.compress(raw))
    assert texts(path, source="de", target="en") == HOUSE


def test_nested_columns_as_translation_sets_have_them(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"translation": {"de": a, "en": b}}) for a, b in HOUSE))
    assert texts(path) == HOUSE


def test_quoted_fields_hold_commas_quotes_and_newlines(tmp_path: Path) -> None:
    (path,) = files(tmp_path, a_csv='source,target\n"a, ""b""\nc",d\n\ne,f\n')
    assert texts(path) == [('a, "b"\nc', "d"), ("e", "f")]
    found = list(read_pairs(path))
    assert [p.where.rpartition(":")[2] for p in found] == ["2", "5"]


def test_two_text_files_two_globs_and_many_files(tmp_path: Path) -> None:
    x = files(tmp_path, x_de="eins\nzwei\n", x_en="one\ntwo\n")
    y = files(tmp_path, y_de="drei\n", y_en="three\n")
    both = [("eins", "one"), ("zwei", "two"), ("drei", "three")]
    assert texts(x) == both[:2]
    assert texts([f"{tmp_path}/*.de", f"{tmp_path}/*.en"]) == both
    assert texts([x[0], y[0], x[1], y[1]]) == both
    assert texts(x, source="en") == [(b, a) for a, b in both[:2]]
    assert texts(x, target="1") == [(b, a) for a, b in both[:2]]
    with pytest.raises(RegardError, match="--source fr: neither"):
        texts(x, source="fr")
    with pytest.raises(RegardError, match="same file"):
        texts(x, source="en", target="en")


def test_nothing_is_lost_uncounted(tmp_path: Path) -> None:
    paths = files(tmp_path, a_de="x\n\nz\nx\n" + "y" * 1_100_000 + "\n", a_en="1\n2\n \n1\n5\n")
    summary = Summary()
    assert len(list(read_pairs(paths, summary=summary))) == 2
    total = summary.total
    assert (total.read, total.empty, total.long, total.kept, total.duplicated) == (5, 2, 1, 2, 1)


def test_the_place_of_the_shift_is_found() -> None:
    draw = random.Random(3)
    a = np.array([draw.randint(20, 200) for _ in range(300)])
    b = np.array([max(1, round(x * draw.uniform(0.85, 1.15))) for x in a])
    for lost, at in ((1, 120), (3, 40), (5, 295), (1, 0)):
        fewer = np.delete(b, range(at, at + lost))
        assert abs(find_shift(a, fewer) - at) <= 3
        assert abs(find_shift(fewer, a) - at) <= 3


def test_unequal_line_counts(tmp_path: Path) -> None:
    draw = random.Random(5)
    left = ["x" * draw.randint(5, 90) for _ in range(200)]
    right = left[:80] + left[90:]
    paths = files(tmp_path, a_de="\n".join(left), a_en="\n".join(right))
    found = r"a.de has 200 lines but .*a.en has 190: they seem to be shifted from .*a.de:8\d on"
    with pytest.raises(RegardError, match=found):
        texts(paths)
    paths = files(tmp_path, b_de="\n".join(left), b_en="\n".join(left[:190]))
    with pytest.raises(RegardError, match=r"the last 10 lines of .*b.de have no translation"):
        texts(paths)
    with pytest.raises(RegardError, match=r"200 lines but .*c.en has 0"):
        texts(files(tmp_path, c_de="\n".join(left), c_en=""))


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.tsv", "", {}, "a.tsv: the file is empty: expected source<TAB>target"),
        ("a.tsv", "\n \n", {}, r"no usable line \(2 read, 2 empty"),
        ("a.tsv", "a b\n", {}, r"a.tsv:1: no column 2 for the target: .* 1 column \(col.*tabs\)"),
        ("a.tsv", "a\tb\nc\n", {}, r"a.tsv:2: 1 column: expected 2, as in the first line"),
        ("a.tsv", "a\tb\nc\td\te\n", {}, r"a.tsv:2: 3 columns: expected 2"),
        ("a.tsv", "de\ten\nx\ty\n", {"source": "den"}, r"unknown column 'den': did you mean"),
        ("a.tsv", "a\tb\n", {"source": "1", "target": "1"}, r"choose the same column"),
        ("a.csv", 'a,b\n"c,d\ne,f\n', {}, r"a.csv:2: not CSV .*quote not closed"),
        (
            "a.jsonl",
            '{"source": "x"}\n',
            {},
            r"a.jsonl:1: which column is the target\? There is only source$",
        ),
        (
            "a.jsonl",
            '{"source": "x", "target": "y"}\n{"source": "x", "tarjet": "y"}\n',
            {},
            r"a.jsonl:2: unknown column 'target': did you mean 'tarjet'",
        ),
        ("a.jsonl", '{"source": ["x"], "target": "y"}\n', {}, "the source column holds a list"),
        ("a.jsonl", "{nonsense\n", {}, r"a.jsonl:1: not JSON"),
        ("a.jsonl", "[1, 2]\n", {}, r"a.jsonl:1: an array: expected one JSON object"),
        ("a.jsonl", "[" * 100_000, {}, r"a.jsonl:1: not JSON"),
        ("a.jsonl", '{"source": "\\ud800", "target": "y"}\n', {}, "lone surrogate"),
        ("a.jsonl", '{"source": "\\u0000", "target": "y"}\n', {}, "NUL character"),
        ("a.parquet", "PAR1nonsensePAR1", {}, "a.parquet: not a Parquet file"),
        ("a.conll", "Rome B-LOC\n", {}, r"tagged words \(CoNLL\): expected pairs"),
        ("a.npy", "", {}, "an array of vectors: expected pairs"),
        ("a.de", "ein haus\n", {}, r"one side of the pairs: expected two files"),
        ("a.xlsx", "PK", {}, r".xlsx files cannot be read"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, name: str, content: str, options: dict[str, str], message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(RegardError, match=message) as caught:
        texts(tmp_path / name, **options)
    assert "\n" not in str(caught.value)


def test_text_and_tables_do_not_mix(tmp_path: Path) -> None:
    paths = files(tmp_path, a_de="x\n", a_tsv="a\tb\n")
    with pytest.raises(RegardError, match="not both"):
        texts(paths)
    with pytest.raises(RegardError, match="3 text files"):
        texts(files(tmp_path, x_de="x", x_en="y", x_fr="z"))


class Classes:
    names = ("neg", "pos")


def test_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(RegardError, match="pip install datasets"):
        texts("hf:wmt/wmt14")

    class Stream(list):  # type: ignore[type-arg]
        features = types.MappingProxyType({"label": Classes()})

    asked = []

    def load_dataset(*args: object, **options: object) -> Stream:
        asked.append((args, options))
        if args[0] == "broken":
            raise ConnectionError("no network")
        return Stream([{"translation": {"de": a, "en": b}, "label": 1} for a, b in HOUSE])

    fake = types.SimpleNamespace(load_dataset=load_dataset)
    monkeypatch.setitem(sys.modules, "datasets", fake)
    assert texts("hf:wmt/wmt14,de-en:validation", source="en") == [(b, a) for a, b in HOUSE]
    assert asked == [(("wmt/wmt14", "de-en"), {"split": "validation", "streaming": True})]
    with pytest.raises(RegardError, match=r"hf:broken: .*no network.*expected hf:name"):
        texts("hf:broken")
    from regard.data import read_labelled

    found = list(read_labelled("hf:imdb", text="de"))
    assert [x.labels for x in found] == [("pos",), ("pos",)]


def test_what_numbers_rows_is_no_language(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,de,en\n1,Ein Haus,A house\n")
    (tmp_path / "b.jsonl").write_text('{"id": 1, "translation": {"de": "Ein", "en": "A"}}\n')
    (tmp_path / "c.tsv").write_text("id\ten\nrumah\thouse\n")
    assert [(p.source, p.target) for p in read_pairs(tmp_path / "a.csv")] == [
        ("Ein Haus", "A house")
    ]
    assert [(p.source, p.target) for p in read_pairs(tmp_path / "b.jsonl")] == [("Ein", "A")]
    assert [(p.source, p.target) for p in read_pairs(tmp_path / "c.tsv")] == [("rumah", "house")]


def test_three_languages_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("de,en,fr\nEin,A,Un\n")
    with pytest.raises(RegardError, match=r"a.csv:1: which column is the source\?"):
        list(read_pairs(tmp_path / "a.csv"))
    with pytest.raises(RegardError, match="which column is the target"):
        list(read_pairs(tmp_path / "a.csv", source="de"))
    (pair,) = read_pairs(tmp_path / "a.csv", source="de", target="fr")
    assert (pair.source, pair.target) == ("Ein", "Un")


def test_two_texts_with_tabs_are_two_texts(tmp_path: Path) -> None:
    (tmp_path / "t.en").write_text("a\tb\nc\td\n")
    (tmp_path / "t.fr").write_text("A\tB\nC\tD\n")
    found = list(read_pairs([tmp_path / "t.en", tmp_path / "t.fr"]))
    assert [(pair.source, pair.target) for pair in found] == [("a\tb", "A\tB"), ("c\td", "C\tD")]
