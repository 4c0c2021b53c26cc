"""The fused path against the plain one, in blocks, at sizes that leave rests."""

import pytest
import torch

from regard.attention import attend, fused, masks

MASKS = {
    "causal": masks.causal(),
    "window": masks.window(3),
    "causal window": masks.causal() & masks.window(6),
    "causal lengths": masks.causal() & masks.lengths([19, 0]),
    "prefix": masks.causal() | masks.prefix([7, 2]),
    "documents": masks.documents([0] * 5 + [1] * 11 + [2] * 7),
    "not": ~masks.window(4),
    "tensor": masks.causal() & (torch.rand(2, 1, 1, 23) > 0.3),
}


@pytest.mark.parametrize("queries", [1, 4, 13, 23])
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("biased", [False, True])
def test_blocks_equal_the_plain_path(monkeypatch, name, queries, biased):
    monkeypatch.setattr(fused, "BLOCK", 4)
    query, key, value = (
        torch.randn(2, h, n, s, dtype=torch.float64, requires_grad=True)
        for h, n, s in ((6, queries, 5), (3, 23, 5), (3, 23, 7))
    )
    bias = torch.randn(6, queries, 23, dtype=torch.float64) if biased else None
    probe = torch.randn(2, 6, queries, 7, dtype=torch.float64)
    results = []
    for need_weights in (True, False):
        output = attend(query, key, value, MASKS[name], bias=bias, need_weights=need_weights).output
        results.append([output, *torch.autograd.grad((output * probe).sum(), [query, key, value])])
    for plain, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain)


@pytest.mark.parametrize("name", ["causal", "window", "causal window", "causal lengths", "prefix"])
def test_no_mask_of_all_pairs_is_ever_made(monkeypatch, name):
    seen = []
    kernel = fused._kernel

    def spy(query, key, value, scale, added, *, causal=False):
        seen.append(0 if added is None else added.shape[-2] * added.shape[-1])
        return kernel(query, key, value, scale, added, causal=causal)

    monkeypatch.setattr(fused, "_kernel", spy)
    length = 5 * fused.BLOCK + 3
    lazy = {"lengths": masks.lengths([length, 7])}.get(name, MASKS.get(name))
    if name == "causal lengths":
        lazy = masks.causal() & masks.lengths([length, 7])
    vectors = torch.randn(2, length, 4)
    fast = attend(vectors, vectors, vectors, lazy, need_weights=False).output
    assert max(seen) <= fused.BLOCK * length
    torch.testing.assert_close(fast, attend(vectors, vectors, vectors, lazy).output)


def test_a_window_costs_its_own_size(monkeypatch):
    pairs = []
    kernel = fused._kernel

    def spy(query, key, value, scale, added, *, causal=False):
        pairs.append(query.shape[-2] * key.shape[-2])
        return kernel(query, key, value, scale, added, causal=causal)

    monkeypatch.setattr(fused, "_kernel", spy)
    vectors = torch.randn(2, 16 * fused.BLOCK, 4)
    attend(vectors, vectors, vectors, masks.causal() & masks.window(9), need_weights=False)
    assert sum(pairs) <= 2 * 16 * fused.BLOCK**2


def test_poisoned_memory_does_not_show():
    """Fresh buffers of the kernel may hold anything: fill them with NaN beforehand."""
    torch.full((64, 1024, 64), float("nan"))
    vectors = torch.randn(3, 37, 16)
    mask = masks.causal() & masks.lengths([37, 5, 0])
    got = attend(vectors, vectors, vectors, mask, need_weights=False).output
    assert got.isfinite().all()
    assert (got[2] == 0).all()
