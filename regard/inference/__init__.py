"""Trained models in use: load a run, predict and evaluate."""

from regard.inference.runs import Run, load, train_run

__all__ = ["Run", "load", "train_run"]
