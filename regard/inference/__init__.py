"""Trained runs in use: load one, predict, evaluate, align, explain, export."""

from regard.inference.run import Run, load

__all__ = ["Run", "load"]
