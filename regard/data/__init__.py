"""Readers, tokenizer, corpora on disk and batches: from files to examples to tensors."""

from regard.data.examples import Example, Labelled, Line, Pair, Tagged
from regard.data.labelled import read_labelled
from regard.data.labels import Labels
from regard.data.parallel import read_pairs
from regard.data.running import read_lines
from regard.data.sources import Source, resolve
from regard.data.summary import Counts, Summary
from regard.data.tagged import read_tagged

__all__ = [
    "Counts",
    "Example",
    "Labelled",
    "Labels",
    "Line",
    "Pair",
    "Source",
    "Summary",
    "Tagged",
    "read_labelled",
    "read_lines",
    "read_pairs",
    "read_tagged",
    "resolve",
]
