"""Packed products of the native decoder: float32 beside torch, int8 beside PyTorch and numpy."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from regard.models.native import native_library
from regard.models.native.native_products import PackedLinear, emulate_int8

SIZES = [(1, 17, 67), (5, 64, 64), (13, 3, 130), (7, 257, 5)]
ACTIVATIONS = {"linear": lambda x: x, "gelu": functional.gelu, "tanh": torch.tanh}


@pytest.fixture(params=native_library.LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    try:
        native_library.force_level(request.param)
    except ValueError:  # this machine has fewer: the best it has is tested again
        native_library.force_level(None)
    yield request.param
    native_library.force_level(None)


def _random(rows: int, inputs: int, outputs: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(rows + inputs)
    shapes = ((rows, inputs), (outputs, inputs), (outputs,), (rows, outputs))
    x, weight, bias, residual = (torch.randn(*shape, generator=generator) for shape in shapes)
    return x, weight, bias, residual


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_float_products_agree_with_torch(activation: str) -> None:
    for size in SIZES:
        x, weight, bias, residual = _random(*size)
        exact = functional.linear(x.double(), weight.double(), bias.double())
        expected = ACTIVATIONS[activation](exact) + residual
        y = PackedLinear(weight, bias)(x, residual, activation)
        torch.testing.assert_close(y.double(), expected, rtol=1e-5, atol=2e-5)


@pytest.mark.usefixtures("level")
def test_int8_products_equal_the_emulation_to_the_bit() -> None:
    for size in SIZES:
        x, weight, bias, residual = _random(*size)
        x[0] = 0  # a row without a largest value
        y = PackedLinear(weight, bias, "int8")(x, residual)
        assert torch.equal(y, emulate_int8(x, weight, bias, residual))


def test_the_emulation_is_what_numpy_computes() -> None:
    x, weight, bias, _ = (tensor.numpy() for tensor in _random(5, 33, 7))

    def quantized(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        largest = np.abs(rows).max(1)
        factor = np.float32(127) / largest
        return np.rint(rows * factor[:, None]).astype(np.int32), largest / np.float32(127)

    (a, a_scale), (b, b_scale) = quantized(x), quantized(weight)
    expected = (a @ b.T).astype(np.float32) * (b_scale * a_scale[:, None]) + bias
    emulated = emulate_int8(*(torch.from_numpy(array) for array in (x, weight, bias)))
    np.testing.assert_array_equal(emulated.numpy(), expected)


@pytest.mark.usefixtures("level")
@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_a_row_does_not_depend_on_the_others(quantize: str) -> None:
    x, weight, bias, _ = _random(13, 40, 70)
    packed = PackedLinear(weight, bias, quantize)  # type: ignore[arg-type]
    assert torch.equal(packed(x)[4:5], packed(x[4:5]))


def test_a_wrong_size_is_named() -> None:
    with pytest.raises(ValueError, match=r"expected vectors of size 3, got \[2, 4\]"):
        PackedLinear(torch.zeros(5, 3))(torch.zeros(2, 4))
