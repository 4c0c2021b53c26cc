"""A built-in corpus for every task, by name."""

from collections.abc import Callable
from functools import partial

from regard.data.builtin import bilingual, entities, sentiment, sequences, stories
from regard.data.builtin.parts import Made, Sizes, Splits, sizes
from regard.errors import RegardError, unknown

SIZES = {
    "translation": 10_000,
    "language": 3_000,
    "classify": 10_000,
    "tag": 5_000,
    "algorithm": 10_000,
}
"""The tasks, and how many training examples their corpora have if nothing else is asked for."""

TASKS = tuple(SIZES)


def examples(task: str, size: int | None = None, seed: int = 0, kind: str = "copy") -> Made:
    """The examples of a corpus one by one, each with the part (train, valid, test, pairs) it is in.

    ``size`` counts training examples; ``kind`` is which algorithm, for that task alone.
    """
    if task not in SIZES:
        raise RegardError(unknown("task", task, TASKS))
    if kind not in sequences.KINDS:
        raise RegardError(unknown("algorithm", kind, sequences.KINDS))
    makers: dict[str, Callable[[Sizes, int], Made]] = {
        "translation": bilingual.pairs,
        "language": stories.tales,
        "classify": sentiment.reviews,
        "tag": entities.sentences,
        "algorithm": partial(sequences.problems, kind=kind),
    }
    return makers[task](sizes(SIZES[task] if size is None else size), seed)


def make(task: str, size: int | None = None, seed: int = 0, kind: str = "copy") -> Splits:
    """The built-in corpus of a task: ``size`` training examples, the same for the same seed.

    Validation and test have a tenth as many each, 2,000 at most. No text is in two parts.

    >>> corpus = make("translation", 100)
    >>> len(corpus.train), len(corpus.valid), len(corpus.test)
    (100, 10, 10)
    """
    splits = Splits()
    for part, example in examples(task, size, seed, kind):
        getattr(splits, part).append(example)
    return splits
