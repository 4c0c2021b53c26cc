"""Dropout against what its definition says: shares, sums, gradients and the random state."""

import pytest
import torch
from torch import nn

from regard.layers.dropout import Dropout


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_shares_and_values(p: float, dtype: torch.dtype) -> None:
    x = torch.ones(307, 1009, dtype=dtype)
    y = Dropout(p)(x)
    assert y.dtype == dtype
    n = x.numel()
    assert abs((y == 0).sum().item() - n * p) < 5 * (n * p * (1 - p)) ** 0.5
    kept = y[y != 0].double()
    assert kept.min() == kept.max()
    assert kept[0].item() == pytest.approx(
        1 / (1 - p), rel=1e-2 if dtype == torch.bfloat16 else 1e-4
    )


def test_neighbours_are_independent() -> None:
    kept = (Dropout(0.5)(torch.ones(400_000)) != 0).double() - 0.5
    for lag in range(1, 9):
        assert abs((kept[lag:] * kept[:-lag]).mean().item()) < 5 * 0.25 / 400_000**0.5


def test_the_gradient_is_zero_where_the_value_is() -> None:
    x = torch.randn(5, 7, 11, requires_grad=True)
    y = Dropout(0.4)(x)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad * x, y)


def test_the_same_random_state_drops_the_same() -> None:
    layer, x = Dropout(0.3), torch.randn(13, 17)
    torch.manual_seed(5)
    first = layer(x)
    torch.manual_seed(5)
    assert torch.equal(layer(x), first)
    assert not torch.equal(layer(x), first)


@pytest.mark.parametrize("p", [0.0, 1.0, 1e-7])
def test_the_ends(p: float) -> None:
    x = torch.randn(3, 5)
    torch.testing.assert_close(Dropout(p)(x), torch.zeros(3, 5) if p == 1 else x)


def test_in_use_nothing_is_dropped() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.5).eval()(x) is x
    assert "p=0.5" in repr(nn.Sequential(Dropout(0.5)))
    with pytest.raises(ValueError, match=r"dropout 1.5: expected a probability from 0 to 1"):
        Dropout(1.5)
