"""Exact attention in every form: one equation, and the parts it is made of."""

from typing import TYPE_CHECKING

from regard.lazy_imports import export_lazily

if TYPE_CHECKING:
    from regard.attention import masks, normalizers, positions, scores
    from regard.attention.attend import Attended, Steps, attend, steps
    from regard.attention.dispatch import Path, explain_path
    from regard.attention.local import LocalPrediction, local_bias, local_mask

__all__ = [
    "Attended",
    "LocalPrediction",
    "Path",
    "Steps",
    "attend",
    "explain_path",
    "local_bias",
    "local_mask",
    "masks",
    "normalizers",
    "positions",
    "scores",
    "steps",
]

export_lazily(
    __name__,
    {
        "Attended": "regard.attention.attend:Attended",
        "LocalPrediction": "regard.attention.local:LocalPrediction",
        "Path": "regard.attention.dispatch:Path",
        "Steps": "regard.attention.attend:Steps",
        "attend": "regard.attention.attend:attend",
        "explain_path": "regard.attention.dispatch:explain_path",
        "local_bias": "regard.attention.local:local_bias",
        "local_mask": "regard.attention.local:local_mask",
        "masks": "regard.attention.masks",
        "normalizers": "regard.attention.normalizers",
        "positions": "regard.attention.positions",
        "scores": "regard.attention.scores",
        "steps": "regard.attention.attend:steps",
    },
)
