"""The built-in corpora by name; the modules of a corpus are imported when it is first used."""

from regard.corpora.built_in_corpus import (
    BuiltInCorpus,
    CorpusSplits,
    SplitExamples,
    split_sizes,
)
from regard.errors import RegardError, unknown
from regard.plugins import Table
from regard.progress import track

CORPORA: Table[BuiltInCorpus] = Table(
    "corpus",
    "regard.corpora",
    {
        "english_french": "regard.corpora.english_french.pairs:CORPUS",
        "stories": "regard.corpora.stories.tales:CORPUS",
        "sentiment": "regard.corpora.sentiment.reviews:CORPUS",
        "entities": "regard.corpora.entities.entity_sentences:CORPUS",
        "algorithms": "regard.corpora.algorithms:CORPUS",
    },
)
"""The built-in corpora, and those of installed plug-ins."""


def sample_examples(
    name: str, size: int | None = None, seed: int = 0, **options: str
) -> SplitExamples:
    """The examples of a corpus one by one, each with its split: train, valid, test or pairs.

    ``size`` counts training examples (default: the corpus's own size); ``options`` are those of
    the corpus, such as ``kind="sort"`` of ``algorithms``.
    """
    corpus = CORPORA.row(name)
    return corpus.sample(
        split_sizes(corpus.size if size is None else size), seed, **check_options(name, options)
    )


def check_options(name: str, options: dict[str, str]) -> dict[str, str]:
    """The options of a corpus with their defaults; an error for unknown options and values."""
    allowed = CORPORA.row(name).options
    for option, value in options.items():
        if option not in allowed:
            hint = unknown("option", option, allowed) if allowed else f"no option {option!r}"
            raise RegardError(f"built-in corpus {name}: {hint}")
        if value not in allowed[option]:
            raise RegardError(f"built-in corpus {name}: {unknown(option, value, allowed[option])}")
    return {option: values[0] for option, values in allowed.items()} | options


def make_corpus(name: str, size: int | None = None, seed: int = 0, **options: str) -> CorpusSplits:
    """A built-in corpus in memory: ``size`` training examples, the same for the same seed.

    Validation and test have a tenth as many each, at most 2,000. No text is in two splits.

    >>> corpus = make_corpus("english_french", 100)
    >>> len(corpus.train), len(corpus.valid), len(corpus.test)
    (100, 10, 10)
    """
    splits = CorpusSplits()
    examples = sample_examples(name, size, seed, **options)
    for split, example in track(examples, "making built-in data", unit="examples"):
        getattr(splits, split).append(example)
    return splits
