"""Trained runs in use: load one, predict, evaluate, align, explain, export."""

from regard.inference.load_run import load
from regard.inference.run import Run

__all__ = ["Run", "load"]
