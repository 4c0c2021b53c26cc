"""Tables of the terminal: nothing is wider than asked for, and nothing is lost."""

import pytest

from regard.show.text_width import display_width, fit_table

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
