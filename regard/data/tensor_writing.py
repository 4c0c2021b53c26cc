"""Tensors written as safetensors into an open file.

The package of that name writes to a path: by the time it opens the path, somebody who may rename
files in the folder can have put a link there. The format: https://huggingface.co/docs/safetensors.
"""

import json
from collections.abc import Mapping
from typing import BinaryIO

import torch
from torch import Tensor

TYPE_NAMES = {
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""Types of tensors that Regard writes, as the format calls them."""
ALIGNMENT = 64
"""At a multiple of how many bytes the numbers begin: a file that is mapped into memory is computed
with as it is, and processors read whole lines of their cache."""


LARGEST_WEIGHT = 1e6
"""Far beyond what training arrives at; products of larger weights are soon infinite."""


def has_usable_numbers(tensor: Tensor) -> bool:
    """Whether all numbers of a tensor are finite and not enormous; it takes no memory."""
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    low, high = tensor.aminmax()
    return bool((low >= -LARGEST_WEIGHT) & (high <= LARGEST_WEIGHT))


def save_tensors(
    stream: BinaryIO, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors by name: the size of the header, the header as JSON, the numbers in order.

    Large types come first, so that every tensor begins at a multiple of the size of its type.
    """
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    header: dict[str, object] = {} if metadata is None else {"__metadata__": dict(metadata)}
    end = 0
    for name, tensor in ordered:
        start, end = end, end + tensor.numel() * tensor.element_size()
        shape, offsets = list(tensor.shape), [start, end]
        kind = TYPE_NAMES[tensor.dtype]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": offsets}
    raw = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    raw += b" " * (-(8 + len(raw)) % ALIGNMENT)
    stream.write(len(raw).to_bytes(8, "little") + raw)
    for _, tensor in ordered:
        if tensor.numel():
            flat = tensor.detach().cpu().contiguous().reshape(-1)
            stream.write(flat.view(torch.uint8).numpy().data)
