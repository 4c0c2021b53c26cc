"""The sizes that a layer was made for, held against what it is given."""

from torch import Tensor


def expect_size(what: str, vectors: Tensor, size: int) -> None:
    """Raise a ValueError that names the shape unless the last axis has this size."""
    if vectors.shape[-1] != size:
        raise ValueError(
            f"{what} of shape {list(vectors.shape)} ends in {vectors.shape[-1]}; this layer was "
            f"made for vectors of size {size}"
        )
