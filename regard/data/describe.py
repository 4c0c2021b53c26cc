"""Statistics of a corpus: size, sentence lengths, words and labels with their frequencies."""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from regard.data.examples import Example, Labelled, Line, Pair, Tagged
from regard.data.readers.summary import Summary
from regard.data.tokenizers.words import word_offsets

QUANTILES = (0, 25, 50, 75, 95, 100)


@dataclass(slots=True)
class Side:
    """One side of a corpus: its words, and the lengths of its sentences in words."""

    name: str
    words: int = 0
    vocabulary: int = 0
    singletons: int = 0
    lengths: dict[int, int] = field(default_factory=dict)
    most_common: list[tuple[str, int]] = field(default_factory=list)


@dataclass(slots=True)
class Description:
    """The statistics of a corpus: examples, sides, label counts, and the reader's summary."""

    examples: int
    sides: list[Side]
    labels: list[tuple[str, int]]
    summary: Summary


def describe(examples: Iterable[Example], summary: Summary) -> Description:
    """Describe a stream of examples; `summary` is the one that their reader fills."""
    count = 0
    by_side: dict[str, tuple[Counter[str], array[int]]] = {}
    labels: Counter[str] = Counter()
    for count, example in enumerate(examples, 1):  # noqa: B007
        labels.update(_labels(example))
        for name, tokens in _sides(example):
            frequencies, lengths = by_side.setdefault(name, (Counter(), array("i")))
            lengths.append(len(tokens))
            if not isinstance(tokens, np.ndarray):
                frequencies.update(tokens)
    sides = [_side(name, *statistics) for name, statistics in by_side.items()]
    ranked = sorted(labels.items(), key=lambda entry: (-entry[1], entry[0]))
    return Description(count, sides, ranked, summary)


def _labels(example: Example) -> tuple[str, ...]:
    if isinstance(example, Labelled):
        return example.labels
    if isinstance(example, Tagged):
        return example.tags
    if isinstance(example, Line) and isinstance(example.condition, str):
        return (example.condition,)
    return ()


def _sides(example: Example) -> list[tuple[str, list[str] | tuple[str, ...] | np.ndarray]]:
    if isinstance(example, Pair):
        return [("source", _words(example.source)), ("target", _words(example.target))]
    if isinstance(example, Tagged):
        return [("words", example.words)]
    text = example.text
    return [("text", _words(text) if isinstance(text, str) else text)]


def _words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_offsets(text)]


def _side(name: str, frequencies: Counter[str], lengths: "array[int]") -> Side:
    values = np.frombuffer(lengths, np.int32) if lengths else np.zeros(1, np.int32)
    quantiles = np.percentile(values, QUANTILES, method="nearest").astype(int)
    return Side(
        name,
        words=int(values.sum()),
        vocabulary=len(frequencies),
        singletons=sum(count == 1 for count in frequencies.values()),
        lengths=dict(zip(QUANTILES, quantiles.tolist(), strict=True)),
        most_common=sorted(frequencies.items(), key=lambda entry: (-entry[1], entry[0]))[:10],
    )
