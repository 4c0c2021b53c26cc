"""Counts of what was read, empty, too long, duplicated and kept; per file and in total."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from hashlib import blake2b
from struct import Struct

import numpy as np

from regard.data.readers.column_layout import Layout
from regard.errors import RegardError

_PROBES = Struct("<4Q")
"""Four hashes of 64 bits."""


@dataclass(slots=True)
class Counts:
    """Counts of examples: `read = empty + long + kept`; the other three lie outside that sum.

    `duplicated` examples are kept; `skipped` lines are comments and document marks; `split` counts
    how often a line of running text over the limit was split in two.
    """

    read: int = 0
    empty: int = 0
    long: int = 0
    kept: int = 0
    duplicated: int = 0
    skipped: int = 0
    split: int = 0

    def __str__(self) -> str:
        words = {
            "long": "too long",
            "split": "split at the line limit",
            "skipped": "comments skipped",
        }
        parts = [(f.name, getattr(self, f.name)) for f in fields(self)]
        shown = [p for p in parts if p[1] or p[0] in ("read", "kept")]
        return ", ".join(f"{n:,} {words.get(name, name)}" for name, n in shown)


class BloomFilter:
    """Whether a text was seen before, in memory of fixed size (Bloom 1970).

    With m bits, k probes and n texts, a new text is taken for an old one with probability
    (1 - exp(-kn/m))^k: below one in a million at two million texts.

    >>> seen = BloomFilter()
    >>> seen.add("a"), seen.add("b"), seen.add("a")
    (False, False, True)
    """

    def __init__(self, bits: int = 1 << 28) -> None:
        self._bits = bits
        # The pages of numpy's zeros take no memory before they are written to.
        self._table = np.zeros(bits // 8, np.uint8).data

    def add(self, text: str) -> bool:
        """Add `text`; True if it was there already."""
        digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_PROBES.size).digest()
        known = True
        for probe in _PROBES.unpack(digest):
            place = probe % self._bits
            byte, bit = place >> 3, 1 << (place & 7)
            if not self._table[byte] & bit:
                known = False
                self._table[byte] |= bit
        return known


@dataclass(slots=True)
class Summary:
    """The counts of one reading per file, and notes for the user.

    >>> summary = Summary()
    >>> [summary.admit("a.txt", text) for text in ("one", "", None, "one")]
    [True, False, False, True]
    >>> print(summary)
    4 read, 1 empty, 1 too long, 2 kept, 1 duplicated
    """

    files: dict[str, Counts] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    layouts: dict[str, Layout] = field(default_factory=dict)
    """How the columns of each file were understood, where it has columns."""
    seen: BloomFilter = field(default_factory=BloomFilter, repr=False, compare=False)

    def of(self, name: str) -> Counts:
        """The counts of one file."""
        if name not in self.files:
            self.files[name] = Counts()
        return self.files[name]

    def admit(self, name: str, *texts: str | None) -> bool:
        """Count one example of file `name`; False if a text is empty, or too long (None)."""
        counts = self.of(name)
        counts.read += 1
        if any(text is None for text in texts):
            counts.long += 1
            return False
        if not all(texts):
            counts.empty += 1
            return False
        counts.kept += 1
        counts.duplicated += self.seen.add("\t".join(texts))  # type: ignore[arg-type]
        return True

    def columns(self) -> tuple[str, ...]:
        """What the columns are for: one line, or one per file where files differ."""
        if len(set(self.layouts.values())) == 1:
            return (str(next(iter(self.layouts.values()))),)
        return tuple(f"{layout} in {name}" for name, layout in self.layouts.items())

    def guessed(self) -> str:
        """The files whose columns the user did not choose; empty if there is none."""
        return _listed(name for name, layout in self.layouts.items() if not layout.chosen)

    @property
    def total(self) -> Counts:
        """The counts over all files."""
        names = [f.name for f in fields(Counts)]
        return Counts(**{n: sum(getattr(c, n) for c in self.files.values()) for n in names})

    def require(self, least: int = 2, purpose: str = "to train and to validate") -> None:
        """Raise an error unless at least `least` examples were kept."""
        total, names = self.total, _listed(self.files)
        if total.kept == 0:
            raise RegardError(f"{names}: no usable examples ({total})")
        if total.kept < least:
            some = "only one example" if total.kept == 1 else f"only {total.kept} examples"
            hint = ""
            if any(layout.form == "conll" for layout in self.layouts.values()):
                hint = "; a blank line ends a sentence, and each line holds a word and its tag"
            raise RegardError(
                f"{names}: {some}: expected at least {least} {purpose} ({total}){hint}"
            )

    def as_dict(self) -> dict[str, object]:
        """Plain values for a JSON file."""
        files = {name: asdict(counts) for name, counts in self.files.items()}
        return {"total": asdict(self.total), "files": files, "notes": list(self.notes)}

    def __str__(self) -> str:
        return "; ".join([str(self.total), *self.notes])


def _listed(names: Iterable[str], most: int = 3) -> str:
    """The first few names, and how many more there are.

    >>> _listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more
