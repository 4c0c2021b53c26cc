"""Readers, tokenizer, corpora on disk and batches: from files to examples to tensors."""

from typing import TYPE_CHECKING

from regard.lazy_imports import export_lazily

if TYPE_CHECKING:
    from regard.data.data_report import DataReport
    from regard.data.examples import AlignedPair, Example, Labelled, Line, Pair, Tagged
    from regard.data.labels import Labels
    from regard.data.readers.in_memory import hold_examples
    from regard.data.readers.labelled import read_labelled
    from regard.data.readers.parallel import read_pairs
    from regard.data.readers.sources import Source, resolve
    from regard.data.readers.summary import Counts, Summary
    from regard.data.readers.tagged import read_tagged
    from regard.data.readers.text import read_lines

__all__ = [
    "AlignedPair",
    "Counts",
    "DataReport",
    "Example",
    "Labelled",
    "Labels",
    "Line",
    "Pair",
    "Source",
    "Summary",
    "Tagged",
    "hold_examples",
    "read_labelled",
    "read_lines",
    "read_pairs",
    "read_tagged",
    "resolve",
]

export_lazily(
    __name__,
    {
        "AlignedPair": "regard.data.examples:AlignedPair",
        "Counts": "regard.data.readers.summary:Counts",
        "DataReport": "regard.data.data_report:DataReport",
        "Example": "regard.data.examples:Example",
        "Labelled": "regard.data.examples:Labelled",
        "Labels": "regard.data.labels:Labels",
        "Line": "regard.data.examples:Line",
        "Pair": "regard.data.examples:Pair",
        "Source": "regard.data.readers.sources:Source",
        "Summary": "regard.data.readers.summary:Summary",
        "Tagged": "regard.data.examples:Tagged",
        "hold_examples": "regard.data.readers.in_memory:hold_examples",
        "read_labelled": "regard.data.readers.labelled:read_labelled",
        "read_lines": "regard.data.readers.text:read_lines",
        "read_pairs": "regard.data.readers.parallel:read_pairs",
        "read_tagged": "regard.data.readers.tagged:read_tagged",
        "resolve": "regard.data.readers.sources:resolve",
    },
)
