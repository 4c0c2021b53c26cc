"""Tables of the terminal: nothing is wider than asked for, and nothing is lost."""

import pytest

from regard.show.text_width import display_width, fit_table, wrap

ROWS = [
    ("run", "task", "data", "best", "written", "猫"),
    ("runs/" + "a" * 30, "classify", "reviews.tsv", "accuracy 93.1 %", "2026-11-18", "1"),
    ("runs/b", "tag", "x", "F1 3", "2026-11-17", "é"),
]


@pytest.mark.parametrize("width", [34, 47, 60, 80, 101])
@pytest.mark.parametrize("right", [True, False])
def test_a_folded_table_fits_and_has_every_cell(width, right):
    lines = fit_table(ROWS, width, right=right)
    assert max(map(display_width, lines)) <= width
    blocks = "\n".join(lines).split("\n\n")
    for row, *parts in zip(ROWS, *(block.split("\n") for block in blocks), strict=True):
        text = " ".join(parts)
        assert all(cell in text for cell in row[1:])
        assert all(part.startswith(row[0][:15]) for part in parts)


def test_a_table_that_fits_is_one_block():
    wide = fit_table(ROWS, 10_000)
    assert len(wide) == len(ROWS)
    assert wide == fit_table(ROWS, max(map(display_width, wide)))
    assert len(fit_table(ROWS, max(map(display_width, wide)) - 1)) > len(ROWS)


def test_a_folded_table_has_as_few_blocks_as_fit():
    rows = [("name", *(f"{i}" * 8 for i in range(6)))]
    for width, blocks in ((70, 1), (44, 2), (34, 2), (24, 3), (14, 6)):
        assert len(fit_table(rows, width)) == 2 * blocks - 1


@pytest.mark.parametrize("text", ["a little cat sleeps", "x" * 50, "猫" * 20 + " é", "a  b", ""])
def test_wrapped_text_fits_and_has_every_letter(text):
    lines = wrap(text, 11)
    assert max(map(display_width, lines)) <= 11
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert wrap(text, 100) == [text]
