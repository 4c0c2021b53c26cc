"""What a reader yields: one record per example, with the place it was read from."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation."""

    source: str
    target: str
    where: str = ""


@dataclass(frozen=True, slots=True)
class AlignedPair(Pair):
    """A sentence pair with its gold links between words counted from 0, source first."""

    links: tuple[tuple[int, int], ...] = ()
    weights: tuple[float, ...] = ()
    """How probable each link is, from 0 to 1; empty if all are certain."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text, or a sequence of vectors [t, d], and its labels (usually one)."""

    text: str | np.ndarray
    labels: tuple[str, ...]
    where: str = ""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A sentence of words, or of vectors [t, d], with one tag each."""

    words: tuple[str, ...] | np.ndarray
    tags: tuple[str, ...]
    where: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of running text, and what it is conditioned on: a label, a vector [d] or nothing."""

    text: str
    condition: str | np.ndarray | None = None
    where: str = ""


Example = Pair | Labelled | Tagged | Line
"""One example of any task."""
