"""Exact attention in every form: one equation, and the parts it is made of."""

from regard.attention import masks, normalizers, positions, scores
from regard.attention.equation import Attended, Steps, attend, steps
from regard.attention.local import LocalPrediction, local_bias, local_mask
from regard.attention.paths import Path, explain_path

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
