"""Corpora that need no files: made by small grammars of ours, the same for the same seed."""

from regard.data.builtin.making import SIZES, TASKS, examples, make
from regard.data.builtin.parts import AlignedPair, Splits
from regard.data.builtin.sentences import words
from regard.data.builtin.sequences import KINDS, endless, sequence
from regard.data.builtin.writing import Written, write

__all__ = [
    "KINDS",
    "SIZES",
    "TASKS",
    "AlignedPair",
    "Splits",
    "Written",
    "endless",
    "examples",
    "make",
    "sequence",
    "words",
    "write",
]
