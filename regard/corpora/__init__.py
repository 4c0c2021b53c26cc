"""Corpora that need no files: sampled from small grammars, the same for the same seed."""

from regard.corpora.built_in_corpus import BuiltInCorpus, CorpusSplits
from regard.corpora.corpus_folder import WrittenCorpus, write_corpus
from regard.corpora.corpus_registry import CORPORA, make_corpus, sample_examples

__all__ = [
    "CORPORA",
    "BuiltInCorpus",
    "CorpusSplits",
    "WrittenCorpus",
    "make_corpus",
    "sample_examples",
    "write_corpus",
]
