"""Files of tensors are what the safetensors package reads and writes."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import safetensors.torch
import torch
from torch import Tensor

from regard.data.tensor_writing import ALIGNMENT, TYPE_NAMES, save_tensors


def written(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None) -> bytes:
    with path.open("wb") as stream:
        save_tensors(stream, tensors, metadata)
    return path.read_bytes()


@pytest.mark.parametrize("shape", [(), (0, 3), (3, 5), (7,)])
def test_the_bytes_are_those_of_safetensors(shape, tmp_path):
    tensors = {
        f"{name}✓{n}": (100 * torch.rand(shape)).to(dtype)
        for n, (dtype, name) in enumerate(TYPE_NAMES.items())
    }
    metadata = {"regard": '{"a": "é"}'}
    content = written(tmp_path / "a", tensors, metadata)
    read = safetensors.torch.load(content)
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert read[name].dtype == tensor.dtype
        assert torch.equal(read[name], tensor)
    theirs = safetensors.torch.save(tensors, metadata)
    start, other = (8 + int.from_bytes(raw[:8], "little") for raw in (content, theirs))
    assert start % ALIGNMENT == 0
    assert start - other < ALIGNMENT
    assert len(content) - start == len(theirs) - other


def test_views_are_written_as_they_look(tmp_path):
    whole = torch.arange(12.0).reshape(3, 4)
    views = {"columns": whole.t(), "part": whole[1:, ::2].requires_grad_()}
    read = safetensors.torch.load(written(tmp_path / "a", views, None))
    assert torch.equal(read["columns"], whole.t())
    assert torch.equal(read["part"], whole[1:, ::2])
