import json
from pathlib import Path

import numpy as np
import pytest

from regard.data import Labels, Summary, read_labelled
from regard.errors import RegardError


def read(path: object, **options: str) -> list[tuple[object, tuple[str, ...]]]:
    return [(x.text, x.labels) for x in read_labelled(path, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "good film\tpos\nbad film\tneg\n"),
        ("a.tsv", "label\tsentence\npos\tgood film\nneg\tbad film\n"),
        ("a.csv", "id,review,sentiment\n1,good film,pos\n2,bad film,neg\n"),
        ("a.csv", "review;sentiment\ngood film;pos\nbad film;neg\n"),
        ("a.txt", "__label__pos good film\n__label__neg bad film\n"),
        ("a.ft", "__label__pos good film\nbad __label__neg film\n"),
        ("a.jsonl", '{"text": "good film", "label": "pos"}\n{"text": "bad film", "label": "neg"}'),
    ],
)
def test_formats(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert read(tmp_path / name) == [("good film", ("pos",)), ("bad film", ("neg",))]


def test_columns_by_number_and_name(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("1\tgood\tx\n0\tbad\ty\n")
    assert read(path, text="2", label="1") == [("good", ("1",)), ("bad", ("0",))]
    path.write_text("a\tb\tc\ngood\tx\t1\n")
    assert read(path, text="a", label="c") == [("good", ("1",))]


@pytest.mark.parametrize(
    "header", ["id,Review Text,sentiment,Übrig", "id,Review Text,sentiment,", ",टिप्पणी,label,"]
)
@pytest.mark.parametrize("chosen", [{}, {"text": "2", "label": "3"}])
def test_other_names_of_a_header_may_be_anything(
    tmp_path: Path, header: str, chosen: dict[str, str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n1,good film,pos,\n2,bad film,neg,\n", "utf-8")
    assert read(path, **chosen) == [("good film", ("pos",)), ("bad film", ("neg",))]


def test_unknown_names_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,Отзыв,Тональность,\n1,good,pos,\n2,bad,neg,\n", "utf-8")
    with pytest.raises(RegardError, match=r"known \(id, Отзыв, Тональность, \(empty\)\): choose"):
        read(path)
    summary = Summary()
    assert len(list(read_labelled(path, "2", "3", summary=summary))) == 3
    (note,) = summary.notes
    assert note.startswith(f"{path}:1 counts as an example, though no other has its label")
    assert note.endswith("name the column with --label 'Тональность'")


def test_a_first_line_with_a_label_of_another_file_gets_no_note(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("fine\tc\ngood\ta\nbad\tb\n")
    (tmp_path / "b.tsv").write_text("good\ta\nso\tc\n")
    summary = Summary()
    assert len(list(read_labelled(str(tmp_path / "*.tsv"), summary=summary))) == 5
    assert not summary.notes


def test_several_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("news\tsport, politics\n")
    assert read(path) == [("news", ("sport, politics",))]
    assert read(path, separator=",") == [("news", ("sport", "politics"))]
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "news", "labels": ["a", 2]}\n{"text": "none", "labels": []}\n')
    assert read(path) == [("news", ("a", "2")), ("none", ())]
    path = tmp_path / "a.txt"
    path.write_text("__label__a __label__b news today\n")
    assert read(path) == [("news today", ("a", "b"))]


def test_vectors_in_one_array(tmp_path: Path) -> None:
    draw = np.random.default_rng(0).normal(size=(3, 5, 7)).astype(np.float32)
    np.save(tmp_path / "x.npy", draw)
    (tmp_path / "labels.txt").write_text("a\nb\na\n")
    found = list(read_labelled([tmp_path / "x.npy", tmp_path / "labels.txt"]))
    assert [x.labels[0] for x in found] == ["a", "b", "a"]
    np.testing.assert_array_equal(np.stack([np.asarray(x.text) for x in found]), draw)
    np.save(tmp_path / "y.npy", draw[:, 0])
    found = list(read_labelled([tmp_path / "y.npy", tmp_path / "labels.txt"]))
    assert np.asarray(found[1].text).shape == (1, 7)


def test_vectors_named_by_a_column(tmp_path: Path) -> None:
    for i, steps in enumerate((2, 3)):
        np.save(tmp_path / f"{i}.npy", np.full((steps, 5), i))
    (tmp_path / "a.tsv").write_text("0.npy\tx\n1.npy\ty\n")
    found = list(read_labelled(tmp_path / "a.tsv"))
    assert [np.asarray(x.text).shape for x in found] == [(2, 5), (3, 5)]
    (tmp_path / "a.tsv").write_text("0.npy\tx\n2.npy\ty\n")
    with pytest.raises(RegardError, match=r"a.tsv:2: .*2.npy: no such file"):
        list(read_labelled(tmp_path / "a.tsv"))
    np.save(tmp_path / "2.npy", np.zeros((2, 3)))
    with pytest.raises(RegardError, match=r"vectors of 3 numbers: expected 5"):
        list(read_labelled(tmp_path / "a.tsv"))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 2, 3)), r"labels.txt: 3 lines, but .*x.npy has more sequences"),
        (np.zeros((2, 2, 3)), r"labels.txt:3: no sequence for this line in .*x.npy"),
        (np.zeros(3), r"shape \[3\]: expected \[n, t, d\]"),
        (np.full((3, 2, 3), np.nan), r"x.npy\[0\]: contains NaN"),
        (np.array(["a", "b", "c"]), r"expected numbers"),
        (np.array([{}, {}, {}]), r"not a .npy array"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path: Path, array: np.ndarray, message: str) -> None:
    np.save(tmp_path / "x.npy", array)
    (tmp_path / "labels.txt").write_text("a\nb\na\n")
    with pytest.raises(RegardError, match=message):
        list(read_labelled([tmp_path / "x.npy", tmp_path / "labels.txt"]))
    with pytest.raises(RegardError, match="expected one file of labels per array"):
        list(read_labelled(tmp_path / "x.npy"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "good\tpos\nbad\t\n", r"a.tsv:2: no label"),
        ("a.txt", "__label__pos good\nbad film\n", r"a.txt:2: no label: expected __label__name"),
        ("a.txt", "good film\n", r"a.txt: plain text: expected texts with labels"),
        ("a.conll", "Rome B-LOC\n", r"CoNLL.*expected texts with labels"),
        (
            "a.jsonl",
            '{"a": "x", "b": "y", "c": "z"}',
            r"which column is the text\? Choose one with --text: a, b",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(RegardError, match=message):
        read(tmp_path / name)


def test_one_line_is_too_few_to_train_on(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("good\tpos\n")
    summary = Summary()
    list(read_labelled(tmp_path / "a.tsv", summary=summary))
    with pytest.raises(RegardError, match=r"a.tsv: only one example: expected at least 2"):
        summary.require()
    summary.require(least=1)
    assert json.loads(json.dumps(summary.as_dict()))["total"]["kept"] == 1


def test_labels_keep_their_order_and_refuse_new_ones(tmp_path: Path) -> None:
    labels = Labels.of(["b", "10", "2", "O", "a", "b", "nan"])
    assert labels.names == ("O", "2", "10", "a", "b", "nan")
    labels.save(tmp_path / "labels.json")
    again = Labels.load(tmp_path / "labels.json")
    assert again == labels
    assert [again.number(name) for name in again] == list(range(6))
    message = (
        r"test.tsv:7: unknown label 'c'; known: O, 2, 10.* \(the labels of the training data\)"
    )
    with pytest.raises(RegardError, match=message):
        again.number("c", "test.tsv:7")
    for content in ("{}", '["a", "a"]', "nonsense", "[1]"):
        (tmp_path / "labels.json").write_text(content)
        with pytest.raises(RegardError, match=r"labels.json"):
            Labels.load(tmp_path / "labels.json")


def test_an_array_without_a_vector_counts_as_empty(tmp_path: Path) -> None:
    for i, steps in enumerate((2, 0, 3)):
        np.save(tmp_path / f"{i}.npy", np.ones((steps, 5)))
    (tmp_path / "a.tsv").write_text("text\tlabel\n0.npy\tx\n1.npy\ty\n2.npy\tx\n")
    summary = Summary()
    found = list(read_labelled(tmp_path / "a.tsv", summary=summary))
    assert [len(example.text) for example in found] == [2, 3]
    assert (summary.total.read, summary.total.empty, summary.total.kept) == (3, 1, 2)


def test_a_long_cell_of_a_csv_is_read(tmp_path: Path) -> None:
    long = "x " * 100_000
    (tmp_path / "a.csv").write_text(f'text,label\n"{long}",a\n{long},b\n')
    assert [len(x.text) for x in read_labelled(tmp_path / "a.csv")] == [len(long) - 1] * 2


def test_a_missing_value_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": NaN, "label": "a"}\n{"text": "b", "label": NaN}\n')
    with pytest.raises(RegardError, match=r"a.jsonl:2: no label"):
        list(read_labelled(tmp_path / "a.jsonl", summary=(summary := Summary())))
    assert summary.total.empty == 1
