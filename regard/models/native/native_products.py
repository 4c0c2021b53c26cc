"""Products with weights that are packed once, in float32 or int8, by the native library.

    y = activation(W x + b) + residual

int8: each row of x is divided by its largest absolute value / 127 and rounded, half to even, and
so is each row of W, once; the products of bytes are summed exactly, in 32 bits. `emulate_int8`
computes the same in plain PyTorch, equal to the last bit.
"""

import ctypes
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.models.native.native_library import ACTIVATIONS, Product, library

PANEL = 64
"""Outputs whose weights lie together."""
Precision = Literal["none", "int8"]
"""Quantization of the weights: none is float32."""


class PackedLinear:
    """A linear layer whose weights are packed for the native library."""

    def __init__(
        self,
        weight: Float[Tensor, "n k"],
        bias: Float[Tensor, "n"] | None = None,
        quantize: Precision = "none",
    ) -> None:
        """Pack the weights; later changes of them are not seen."""
        self.outputs, self.inputs = weight.shape
        weight = weight.detach().float()
        bias = weight.new_zeros(self.outputs) if bias is None else bias.detach().float()
        self._bias = _fill(bias, PANEL)
        if quantize == "none":
            self._weights = _fill(weight, PANEL).unflatten(0, (-1, PANEL)).mT.contiguous()
            self.product = Product(
                self.inputs, self.outputs, self._weights.data_ptr(), None, None, None
            )
        else:
            whole, scale = quantize_rows(weight)
            padded = torch.nn.functional.pad(_fill(whole, PANEL), (0, -self.inputs % 4))
            panels = padded.unflatten(0, (-1, PANEL)).unflatten(-1, (-1, 4))
            self._bytes = panels.transpose(1, 2).to(torch.int8).contiguous()
            self._scale = _fill(scale, PANEL)
            self._shift = 128 * padded.sum(1, dtype=torch.int32)
            self.product = Product(
                self.inputs,
                self.outputs,
                None,
                *(part.data_ptr() for part in (self._bytes, self._scale, self._shift)),
            )
        self.product.bias = self._bias.data_ptr()

    def __call__(
        self,
        x: Float[Tensor, "*b k"],
        residual: Float[Tensor, "*b n"] | None = None,
        activation: str = "linear",
    ) -> Float[Tensor, "*b n"]:
        """The product with each vector, without gradient."""
        if x.shape[-1] != self.inputs:
            raise ValueError(f"expected vectors of size {self.inputs}, got {list(x.shape)}")
        x = x.contiguous().float()
        residual = None if residual is None else residual.contiguous().float()
        y = x.new_empty(*x.shape[:-1], self.outputs)
        rows = y.numel() // self.outputs
        failed = library().decoder_product(
            ctypes.byref(self.product),
            x.data_ptr(),
            None if residual is None else residual.data_ptr(),
            y.data_ptr(),
            rows,
            ACTIVATIONS.index(activation),
            torch.get_num_threads(),
        )
        if failed:
            raise MemoryError("the native decoder cannot allocate its scratch memory")
        return y


def quantize_rows(x: Float[Tensor, "n k"]) -> tuple[Int[Tensor, "n k"], Float[Tensor, "n"]]:
    """Whole numbers from −127 to 127, and the scale of each row; a row of zeros has scale 0."""
    largest = x.abs().amax(1) if x.shape[1] else x.new_zeros(len(x))
    factor = torch.where(largest > 0, 127.0 / largest, 0.0)
    return (x * factor[:, None]).round().to(torch.int32), largest / 127.0


def emulate_int8(
    x: Float[Tensor, "m k"],
    weight: Float[Tensor, "n k"],
    bias: Float[Tensor, "n"],
    residual: Float[Tensor, "m n"] | None = None,
) -> Float[Tensor, "m n"]:
    """What the native product in int8 gives, in plain operations: its twin for tests."""
    (rows, row_scale), (columns, column_scale) = quantize_rows(x), quantize_rows(weight)
    exact = (rows.long() @ columns.long().T).to(torch.int32)
    y = exact.float() * (column_scale * row_scale[:, None]) + bias
    return y if residual is None else y + residual


def _fill(x: Tensor, multiple: int) -> Tensor:
    """Zeros behind the first axis, up to a multiple of its length."""
    padding = x.new_zeros(-len(x) % multiple, *x.shape[1:])
    return torch.cat([x, padding]).contiguous()
