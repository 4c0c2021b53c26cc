"""What was understood of the data before training: columns, labels, sizes, vocabularies."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class DataReport:
    """The facts about the data of a run, for the lines that training begins with."""

    read: str
    """What was read, as in "10,000 read, 3 empty, 9,997 kept"."""
    columns: tuple[str, ...] = ()
    """What the columns are for, one entry per layout: `text = column 2 "comment", label = …`; with
    the name of the file where files differ."""
    labels: Mapping[str, int] = field(default_factory=dict)
    """Labels or tags with the number of their occurrences, the most frequent first."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Number of examples by split: train, valid."""
    vocabularies: Mapping[str, int] = field(default_factory=dict)
    """Number of tokens by side: source and target, or text."""
    notes: tuple[str, ...] = ()
    """Warnings and remarks, one line each."""

    @classmethod
    def from_record(cls, record: Any) -> "DataReport":
        """What `as_dict` returned, from a JSON file; ValueError for anything else."""
        texts, counts = ("columns", "notes"), ("labels", "sizes", "vocabularies")
        if not isinstance(record, dict) or {*record} != {"read", *texts, *counts}:
            raise ValueError("it is not a report on data")
        fit = (
            isinstance(record["read"], str)
            and all(isinstance(record[name], list) for name in texts)
            and all(isinstance(text, str) for name in texts for text in record[name])
            and all(isinstance(record[name], dict) for name in counts)
            and all(type(count) is int for name in counts for count in record[name].values())
        )
        if not fit:
            raise ValueError("it is not a report on data")
        return cls(**record | {name: tuple(record[name]) for name in texts})

    def label_summary(self, most: int = 8) -> str:
        """The number of labels, and the most frequent ones with their counts.

        >>> DataReport("", labels={"pos": 60, "neg": 40}).label_summary()
        '2 (pos: 60, neg: 40)'
        """
        if not self.labels:
            return ""
        shown = [f"{_shorten(name)}: {count:,}" for name, count in self.labels.items()][:most]
        more = [f"and {len(self.labels) - most:,} more"] if len(self.labels) > most else []
        return f"{len(self.labels):,} ({', '.join(shown + more)})"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return asdict(self)

    def __str__(self) -> str:
        """One line for each kind of fact that is known."""
        sizes = ", ".join(f"{count:,} {split}" for split, count in self.sizes.items())
        tokens = ", ".join(f"{side} {count:,} tokens" for side, count in self.vocabularies.items())
        lines = [
            format_row("data", self.read + (f" ({sizes})" if sizes else "")),
            *(format_row("columns", columns) for columns in self.columns),
            *([format_row("labels", self.label_summary())] if self.labels else []),
            *([format_row("vocabulary", tokens)] if tokens else []),
            *(format_row("note", note) for note in self.notes),
        ]
        return "\n".join(lines)


def format_row(name: str, text: str) -> str:
    """A fact for people, in a column beside its name.

    >>> format_row("data", "12 read")
    'data        12 read'
    """
    return f"{name:12}{text}"


def rank_labels(counts: Mapping[str, int]) -> dict[str, int]:
    """Labels with their counts, the most frequent first.

    >>> rank_labels({"b": 1, "a": 1, "c": 5})
    {'c': 5, 'a': 1, 'b': 1}
    """
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def _shorten(name: str, most: int = 40) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
