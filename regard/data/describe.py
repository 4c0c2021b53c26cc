"""What is in a corpus: how much, how long, which words and labels, how often the same."""

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from regard.data.examples import Example, Labelled, Line, Pair, Tagged
from regard.data.summary import Summary
from regard.data.words import words

QUANTILES = (0, 25, 50, 75, 95, 100)


@dataclass(slots=True)
class Side:
    """One side of a corpus: its words, and the lengths of its sentences in words."""

    name: str
    words: int = 0
    vocabulary: int = 0
    once: int = 0
    lengths: dict[int, int] = field(default_factory=dict)
    common: list[tuple[str, int]] = field(default_factory=list)


@dataclass(slots=True)
class Description:
    """A corpus described: examples, sides, labels with their counts, and the reader's summary."""

    examples: int
    sides: list[Side]
    labels: list[tuple[str, int]]
    summary: Summary


def describe(examples: Iterable[Example], summary: Summary) -> Description:
    """Describe examples as they stream by; `summary` is the one their reader fills."""
    count = 0
    seen: dict[str, tuple[Counter[str], array[int]]] = {}
    labels: Counter[str] = Counter()
    for count, example in enumerate(examples, 1):  # noqa: B007
        labels.update(_labels(example))
        for name, found in _sides(example):
            known, lengths = seen.setdefault(name, (Counter(), array("i")))
            lengths.append(len(found))
            if not isinstance(found, np.ndarray):
                known.update(found)
    sides = [_side(name, known, lengths) for name, (known, lengths) in seen.items()]
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
    return [text[start:end] for start, end in words(text)]


def _side(name: str, known: Counter[str], lengths: "array[int]") -> Side:
    values = np.frombuffer(lengths, np.int32) if lengths else np.zeros(1, np.int32)
    marks = np.percentile(values, QUANTILES, method="nearest").astype(int)
    once = sum(count == 1 for count in known.values())
    return Side(
        name,
        int(values.sum()),
        len(known),
        once,
        dict(zip(QUANTILES, marks.tolist(), strict=True)),
        sorted(known.items(), key=lambda entry: (-entry[1], entry[0]))[:10],
    )
