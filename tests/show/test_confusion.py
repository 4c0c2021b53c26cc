"""Classes and confusion matrices in the terminal and as pictures."""

import sys
import xml.etree.ElementTree as ElementTree

import pytest

from regard.errors import RegardError
from regard.show.class_tables import class_table, confusion_text, frequent_confusions
from regard.show.confusion import confusion_svg
from regard.show.picture_files import picture_bytes, picture_format, write_picture

LABELS = ["LOC", "O", "a<b&c"]
COUNTS = [[5, 2, 0], [1, 1234, 0], [0, 3, 7]]


def texts(svg):
    return ["".join(part.itertext()) for part in ElementTree.fromstring(svg).iter() if part.text]


def test_the_matrix_in_the_terminal_has_gold_rows_and_blank_zeros():
    lines = confusion_text(LABELS, COUNTS, 80).splitlines()
    assert lines[0] == "gold ↓  predicted →"
    assert lines[1].split() == LABELS
    assert [line.split() for line in lines[2:]] == [
        ["LOC", "5", "2", "·"],
        ["O", "1", "1234", "·"],
        ["a<b&c", "·", "3", "7"],
    ]


def test_a_matrix_that_is_too_wide_becomes_its_most_frequent_confusions():
    listed = frequent_confusions(LABELS, COUNTS)
    assert confusion_text(LABELS, COUNTS, 20) == frequent_confusions(LABELS, COUNTS, 20)
    assert [line.split() for line in listed.splitlines()[1:]] == [
        ["3", "a<b&c", "→", "O"],
        ["2", "LOC", "→", "O"],
        ["1", "O", "→", "LOC"],
    ]
    assert "none" in frequent_confusions(["a", "b"], [[1, 0], [0, 1]])


def test_the_picture_names_its_axes_and_leaves_zeros_blank():
    written = texts(confusion_svg(LABELS, COUNTS, unit="words", title="dev"))
    assert {"gold", "predicted", "dev", *LABELS} <= set(written)
    assert "1,252 words; shading: share of the gold class" in written
    assert {"5", "1234", "7"} <= set(written)
    assert "0" not in written


def test_many_classes_are_one_image_with_thinned_labels():
    names = [f"class-{i:03}" for i in range(200)]
    svg = confusion_svg(names, [[int(i == j) for j in range(200)] for i in range(200)])
    assert "<image" in svg
    assert 40 < sum(text.startswith("class-") for text in texts(svg)) <= 160


@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_the_ending_chooses_the_format(tmp_path, ending, start):
    path = write_picture(tmp_path / "new" / f"c.{ending}", confusion_svg(LABELS, COUNTS))
    assert path.read_bytes().startswith(start)


def test_other_endings_and_a_missing_package_are_said(monkeypatch):
    with pytest.raises(RegardError, match=r"--picture c.gif: expected a file that ends in one of"):
        picture_format("c.gif", "--picture")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(RegardError, match=r"pip install 'regard\[pdf\]'"):
        picture_bytes("<svg/>", "pdf")


def test_names_of_any_width_stay_aligned():
    lines = class_table("entity type", [("猫", 0.5, 0.25, 1 / 3, 12), ("x" * 50, 1.0, 1.0, 1.0, 3)])
    assert "33.3" in lines
    assert "x" * 29 + "…" in lines
