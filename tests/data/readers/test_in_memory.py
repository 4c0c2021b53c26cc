"""Examples in memory: every form gives the examples that a file of the same content gives."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from regard.data import (
    Labelled,
    Pair,
    Summary,
    hold_examples,
    read_labelled,
    read_lines,
    read_pairs,
    read_tagged,
    resolve,
)
from regard.errors import RegardError

TEXTS, LABELS = ["good film", "dull plot", "so so"], ["pos", "neg", "pos"]
PAIRS = list(zip(TEXTS, LABELS, strict=True))
RECORDS = [{"id": i, "review": text, "label": label} for i, (text, label) in enumerate(PAIRS)]
FEATURES = Features({"text": Value("string"), "label": ClassLabel(names=["neg", "pos"])})


def read(data, reader=read_labelled, **options):
    return list(reader(resolve(hold_examples(data)), **options))


@pytest.mark.parametrize(
    "data",
    [
        PAIRS,
        [list(pair) for pair in PAIRS],
        (TEXTS, LABELS),
        (np.array(TEXTS), pd.Series(LABELS, index=[7, 8, 9])),
        (pair for pair in PAIRS),
        zip(TEXTS, LABELS, strict=True),
        RECORDS,
        {"text": TEXTS, "label": LABELS},
        pd.DataFrame(RECORDS),
        pd.DataFrame({"text": TEXTS, "label": pd.Categorical(LABELS)}),
        pa.table({"text": TEXTS, "label": LABELS}),
        Dataset.from_dict({"text": TEXTS, "label": [1, 0, 1]}, features=FEATURES),
        [Labelled(text, (label,)) for text, label in PAIRS],
    ],
)
def test_every_form_of_labelled_texts_gives_the_same_examples(data):
    examples = read(data)
    assert [(e.text, e.labels) for e in examples] == [(t, (label,)) for t, label in PAIRS]
    assert [e.where for e in examples] == ["data[0]", "data[1]", "data[2]"]


def test_pairs_of_texts_tagged_words_and_lines_are_read_too(tmp_path):
    assert read([("a b", "c"), Pair("d", "e")], read_pairs)[0].target == "c"
    frame = pd.DataFrame({"en": ["cat"], "fr": ["chat"], "id": [1]})
    assert [(p.source, p.target) for p in read(frame, read_pairs)] == [("cat", "chat")]
    assert read(frame, read_pairs, source="fr", target="en")[0].source == "chat"
    expected = [(("EU", "rejects"), ("B-ORG", "O"))]
    words, tags = ["EU", "rejects"], ["B-ORG", "O"]
    as_pairs = [[("EU", "B-ORG"), ("rejects", "O")]]
    for data in ([(words, tags)], ([words], [tags]), as_pairs, {"tokens": [words], "tags": [tags]}):
        assert [(e.words, e.tags) for e in read(data, read_tagged)] == expected
    assert [line.text for line in read(["one line", "two"], read_lines)] == ["one line", "two"]
    assert [line.text for line in read(iter(["one", "two"]), read_lines)] == ["one", "two"]
    conditioned = read([("one", "x"), ("two", "y")], read_lines, text="1", condition="2")
    assert [line.condition for line in conditioned] == ["x", "y"]


def test_values_of_numpy_and_missing_ones_are_taken_as_they_are_meant():
    rows = read(pd.DataFrame({"text": ["a", None, "b"], "label": np.array([1, 0, 1])}))
    assert [(e.text, e.labels) for e in rows] == [("a", ("1",)), ("b", ("1",))]
    several = read([("a", {"y", "x"}), ("b", [])])
    assert [e.labels for e in several] == [("x", "y"), ()]
    vectors = read((np.ones((2, 3, 5)), ["x", "y"]))
    assert [e.text.shape for e in vectors] == [(3, 5), (3, 5)]
    frames = read([(np.ones((2, 5)), ["A", "B"])], read_tagged)
    assert frames[0].words.shape == (2, 5)
    assert frames[0].tags == ("A", "B")


def test_file_names_stay_file_names(tmp_path):
    spaced = tmp_path / "my texts.txt"
    spaced.write_text("a\n")
    lists = [["train.de", "train.en"], [str(spaced), "b c"], ["a b"], ["data/*.txt", "more data"]]
    for names in ["x.txt", tmp_path, *lists, [tmp_path, "x"], resolve(spaced), None, []]:
        assert hold_examples(names) is names


def test_the_description_changes_with_the_examples_and_can_be_read_again():
    held, again = hold_examples(PAIRS), hold_examples((TEXTS, LABELS))
    assert held == again
    assert held.digest == again.digest
    assert held.startswith("in memory: 3 examples, digest ")
    assert hold_examples([*PAIRS[:-1], ("so so", "neg")]) != held
    arrays = [hold_examples([(np.full((2, 3), value), "x")]) for value in (0.0, 1.0)]
    assert arrays[0] != arrays[1]
    assert [list(held.rows()) for _ in range(2)] == [PAIRS, PAIRS]
    with pytest.raises(RegardError, match="these examples were in memory: pass them to"):
        resolve(str(held))


def test_columns_are_reported_and_only_named_ones_count_as_guessed():
    summary = Summary()
    list(read_labelled(resolve(hold_examples(PAIRS)), summary=summary))
    assert summary.columns() == ("text = column 1, label = column 2",)
    assert not summary.guessed()
    summary = Summary()
    list(read_labelled(resolve(hold_examples(pd.DataFrame(RECORDS))), summary=summary))
    assert summary.columns() == ('text = "review", label = "label"',)
    assert summary.guessed() == "data"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "data: an int: expected file names, a list of examples such as"),
        ([5, 6], r"data\[0\]: an int: expected tuples such as \(text, label\), or records"),
        ([("a", "x"), {"text": "b"}], r"data\[1\]: a dict: expected tuples such as"),
        ([{"text": "b"}, ("a", "x")], r"data\[1\]: a tuple: expected records by column name"),
        (["one text", "another"], r"data\[0\]: 1 value: expected \(text, label\)"),
        ([("a", "x"), ("b",)], r"data\[1\]: 1 value: expected \(text, label\)"),
        ([("a", "x", "y")] * 2, r"data\[0\]: 3 columns without names"),
        ((["a", "b"], ["x"]), "data: its columns have different lengths: 2, 1"),
        ({"text": "a", "label": "x"}, "data: one record: expected a list of records"),
        (iter(()), "data: no examples: expected at least one"),
        ([("a", "x"), (["b"], "y")], r"data\[1\]: the text column holds a list: expected text"),
        ([("a", "x"), ("b", None)], r"data\[1\]: no label: expected one in the label column"),
        ([(np.ones((1, 2, 3, 4)), "x")], r"data\[0\]: an array of shape \[1, 2, 3, 4\]: expected"),
        (
            DatasetDict({"train": Dataset.from_dict({"text": ["a"]})}),
            r"data: several splits \(train\): expected one, as in data=dataset\['train'\]",
        ),
    ],
)
def test_wrong_shapes_end_in_one_line_that_says_what_was_expected(data, message):
    with pytest.raises(RegardError, match=message):
        read(data)
