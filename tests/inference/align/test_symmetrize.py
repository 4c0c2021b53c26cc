"""Symmetrisation against the published pseudo-code, over whole matrices, and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.inference.align.extract_links import argmax
from regard.inference.align.symmetrize import (
    SYMMETRIZATIONS,
    agree,
    grow_diag_final_and,
    intersect,
    union,
)

LINKS = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=14)
NEIGHBOURING = [(-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)]


def published(e2f, f2e, rows=5, columns=7):
    """GROW-DIAG-FINAL-AND as Koehn et al. write it, with matrices and loops over all points."""
    alignment = [[(e, f) in e2f and (e, f) in f2e for f in range(columns)] for e in range(rows)]

    def e_aligned(e):
        return any(alignment[e])

    def f_aligned(f):
        return any(row[f] for row in alignment)

    added = True
    while added:
        added = False
        for e in range(rows):
            for f in range(columns):
                if not alignment[e][f]:
                    continue
                for de, df in NEIGHBOURING:
                    e_new, f_new = e + de, f + df
                    if not (0 <= e_new < rows and 0 <= f_new < columns):
                        continue
                    free = not e_aligned(e_new) or not f_aligned(f_new)
                    if free and ((e_new, f_new) in e2f or (e_new, f_new) in f2e):
                        alignment[e_new][f_new] = added = True
    for a in (e2f, f2e):
        for e_new in range(rows):
            for f_new in range(columns):
                if not e_aligned(e_new) and not f_aligned(f_new) and (e_new, f_new) in a:
                    alignment[e_new][f_new] = True
    return {(e, f) for e in range(rows) for f in range(columns) if alignment[e][f]}


@given(LINKS, LINKS)
def test_as_published(forward, backward):
    found = grow_diag_final_and(forward, backward)
    assert found == published(forward, backward)
    assert intersect(forward, backward) <= found <= union(forward, backward)


@pytest.mark.parametrize(
    ("forward", "backward", "expected"),
    [
        # (1, 1) stands at a corner of (0, 0) and both its words are free
        ({(0, 0), (1, 1)}, {(0, 0)}, {(0, 0), (1, 1)}),
        # (0, 1) stands beside (0, 0): source word 0 has a link, target word 1 has none
        ({(0, 0), (0, 1)}, {(0, 0)}, {(0, 0), (0, 1)}),
        # nothing in common: the forward links first, then what is left of the backward ones
        ({(0, 2), (3, 1)}, {(0, 3), (2, 0)}, {(0, 2), (3, 1), (2, 0)}),
        # (0, 3) is far from any link, and source word 0 is taken: it stays outside
        ({(0, 0), (0, 3)}, {(0, 0)}, {(0, 0)}),
        # (1, 1) would link two words that both have links by then
        ({(0, 1), (1, 0), (1, 1)}, {(0, 1), (1, 0)}, {(0, 1), (1, 0)}),
        (set(), set(), set()),
    ],
)
def test_by_hand(forward, backward, expected):
    assert SYMMETRIZATIONS["grow-diag-final-and"](forward, backward) == expected


def test_intersect_and_union():
    assert SYMMETRIZATIONS["intersect"]([(0, 0), (1, 1)], [(1, 1), (2, 0)]) == {(1, 1)}
    assert SYMMETRIZATIONS["union"]([(0, 0)], [(2, 0)]) == {(0, 0), (2, 0)}


def test_one_direction_decides_where_the_other_wavers():
    """Target word 0 wavers and leans to the wrong word; the way back is sure of the right one."""
    forward = np.array([[0.45, 0.55, 0.0], [0.1, 0.9, 0.0]])  # [t, s]
    backward = np.array([[0.9, 0.1], [0.05, 0.95], [0.5, 0.5]])  # [s, t]
    assert argmax(forward) == {(1, 0), (1, 1)}
    assert argmax(agree(forward, backward)) == {(0, 0), (1, 1)}
    by_loop = [[(forward[t, s] * backward[s, t]) ** 0.5 for s in range(3)] for t in range(2)]
    np.testing.assert_allclose(agree(forward, backward), by_loop)
