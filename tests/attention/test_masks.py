"""Masks against rules written out for each pair of positions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention import masks


def table(rule, shape):
    """A bool tensor from a rule of (example, position of the query, key)."""
    *batch, queries, keys = shape
    rows = [
        [[rule(b, q + keys - queries, k) for k in range(keys)] for q in range(queries)]
        for b in range(batch[0] if batch else 1)
    ]
    return torch.tensor(rows)


N = [3, 0]
IDS = [[0, 0, 1, 1, 1, 2, 2], [0, 0, 0, 0, 0, 0, 1]]
CASES = [
    ("causal()", masks.causal(), lambda b, i, j: j <= i),
    ("past()", masks.past(), lambda b, i, j: j < i),
    ("lengths([3, 0])", masks.lengths(N), lambda b, i, j: j < N[b]),
    ("window(2)", masks.window(2), lambda b, i, j: abs(i - j) < 2),
    ("prefix(2)", masks.prefix(2), lambda b, i, j: j < 2),
    ("dilated(3)", masks.dilated(3), lambda b, i, j: (i - j) % 3 == 0),
    ("others()", masks.others(), lambda b, i, j: i != j),
    (
        f"documents({IDS})",
        masks.documents(torch.tensor(IDS)),
        lambda b, i, j: IDS[b][i] == IDS[b][j],
    ),
    (
        "causal() & window(3) & lengths([3, 0])",
        masks.causal() & masks.window(3) & masks.lengths(N),
        lambda b, i, j: i - 3 < j <= i and j < N[b],
    ),
    (
        "(causal() | prefix([3, 0]))",
        masks.causal() | masks.prefix(N),
        lambda b, i, j: j <= i or j < N[b],
    ),
    ("~(window(2))", ~masks.window(2), lambda b, i, j: abs(i - j) >= 2),
]


@pytest.mark.parametrize(("name", "mask", "rule"), CASES, ids=[case[0][:30] for case in CASES])
@pytest.mark.parametrize("queries", [1, 5, 7])
def test_a_mask_is_its_rule(name, mask, rule, queries):
    shape = (2, queries, 7)
    expected = table(rule, shape)
    assert repr(mask) == name
    assert torch.equal(mask.tensor(shape).expand(shape), expected)
    with_heads = mask.tensor((2, 3, queries, 7)).expand(2, 3, queries, 7)
    assert torch.equal(with_heads, expected.unsqueeze(1).expand(2, 3, queries, 7))
    rows, columns = range(queries // 2, queries), range(2, 6)
    block = mask.block(shape, rows, columns).expand(2, len(rows), len(columns))
    assert torch.equal(block, expected[:, queries // 2 :, 2:6])
    reach = mask.reach(queries, 7, rows)
    outside = [k for k in range(7) if k not in reach]
    assert not expected[:, queries // 2 :, outside].any()
    assert set(reach) <= set(range(7))
    spans = mask.spans(shape)
    if spans is not None:
        start, stop = (side.expand(2, queries) for side in spans)
        keys = torch.arange(7)
        exact = (keys >= start.unsqueeze(-1)) & (keys < stop.unsqueeze(-1))
        assert torch.equal(exact, expected)


def test_causal_lengths_and_window_have_spans():
    for mask in (
        masks.causal(),
        masks.lengths(N),
        masks.window(2),
        masks.causal() & masks.window(2),
        masks.past(),
        masks.past() & masks.window(3),
    ):
        assert mask.spans((2, 5, 7)) is not None


def test_more_queries_than_keys_begin_before_the_first_key():
    expected = table(lambda b, i, j: j <= i, (5, 3))[0]
    assert torch.equal(masks.causal().tensor((5, 3)), expected)
    assert not masks.causal().tensor((5, 3))[:2].any()
    assert len(masks.causal().reach(5, 3, range(2))) == 0
    assert len(masks.window(2).reach(9, 3, range(2))) == 0


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 5))
def test_combinations_are_those_of_bool_tensors(queries, keys, size):
    shape = (queries, keys)
    a, b = masks.causal(), masks.window(size)
    left, right = a.tensor(shape), b.tensor(shape)
    assert torch.equal((a & b).tensor(shape), left & right)
    assert torch.equal((a | b).tensor(shape), left | right)
    assert torch.equal((~a).tensor(shape), ~left)
    assert torch.equal((right & a).tensor(shape), left & right)
    assert torch.equal((right | a).tensor(shape), left | right)
    assert torch.equal((~(a & b)).tensor(shape), (~a | ~b).tensor(shape))


def test_tensors_get_a_heads_axis():
    dense = torch.rand(2, 5, 7) > 0.5
    mask = (masks.causal() & dense | ~masks.as_mask(dense)).over_heads(4)
    shape = (2, 3, 5, 7)
    causal = masks.causal().tensor((5, 7))
    expected = (causal & dense | ~dense).unsqueeze(1).expand(shape)
    assert torch.equal(mask.tensor(shape).expand(shape), expected)


def test_masks_draw_themselves():
    assert str(masks.others()).splitlines()[0] == "· █ █ █ █ █"
    assert masks.lengths([1, 2]).draw(1, 3) == "█ · ·\n\n█ █ ·"
    assert str(masks.documents([0, 0, 1])) == "█ █ ·\n█ █ ·\n· · █"
    assert str(masks.as_mask(torch.tensor([[True, False]]))) == "█ ·"


@pytest.mark.usefixtures("shapes_unchecked")
def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"window\(0\): expected a whole number of at least 1"):
        masks.window(0)
    with pytest.raises(ValueError, match=r"dilated\(-1\): expected"):
        masks.dilated(-1)
    with pytest.raises(ValueError, match=r"lengths must be whole numbers; got torch\.float32"):
        masks.lengths(torch.tensor([1.0]))
    with pytest.raises(ValueError, match=r"True = may attend; got torch.float32.* go to bias="):
        _ = masks.causal() & torch.zeros(2, 2)
    with pytest.raises(
        ValueError, match=r"lengths of shape \[3\] do not fit scores of .*\[2, 5, 7\]"
    ):
        masks.lengths([1, 2, 3]).tensor((2, 5, 7))
    with pytest.raises(
        ValueError, match=r"documents of 3 queries and 3 keys do not fit .*\[2, 4\]"
    ):
        masks.documents([0, 0, 1]).tensor((2, 4))
