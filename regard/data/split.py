"""A corpus in three parts: by a hash of the source, so that equal sources are never parted, or, for
running text, by two cuts."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TextIO

import numpy as np

from regard.data.examples import Example, Labelled, Line, Pair, Tagged
from regard.errors import RegardError

PARTS = ("train", "valid", "test")


@dataclass(frozen=True, slots=True)
class Split:
    """Where the parts end: keys hash to 0…2^64, the lowest are `test`, then `valid`, then `train`.

    Nothing but the key and the seed decides, so that a corpus read again, in another order or with
    lines added, falls apart in the same way.
    """

    test: int
    valid: int
    seed: int = 0

    def part(self, key: str) -> str:
        """The part that an example with this key belongs to."""
        place = place_of(key, self.seed)
        return "test" if place < self.test else "valid" if place < self.valid else "train"

    def parted(self, examples: Iterable[Example]) -> Iterator[tuple[str, Example]]:
        """Each example with its part."""
        return ((self.part(key_of(example)), example) for example in examples)


def split_by(
    keys: Iterable[str],
    valid: float = 0.05,
    test: float = 0.0,
    most: int = 2000,
    seed: int = 0,
) -> Split:
    """Set aside shares of the distinct keys for `valid` and `test`: at least one key each (unless
    the share is 0), and at most `most`.

    >>> split = split_by([str(i) for i in range(1000)], valid=0.1, test=0.1)
    >>> parts = [split.part(str(i)) for i in range(1000)]
    >>> parts.count("valid"), parts.count("test"), parts.count("train")
    (100, 100, 800)
    """
    places = np.unique(np.fromiter((place_of(key, seed) for key in keys), np.uint64))
    aside = _aside(len(places), "different examples", test, valid, most)
    edges = [int(places[n]) for n in (aside[0], aside[0] + aside[1])]
    return Split(edges[0] if aside[0] else 0, edges[1] if sum(aside) else 0, seed)


def cut(
    lines: Sequence[Line], valid: float = 0.05, test: float = 0.0, most: int = 2000
) -> list[tuple[str, Line]]:
    """Each line of a running text with its part: the end is `test`, what stands before it `valid`.

    >>> [part for part, _ in cut([Line(str(i)) for i in range(5)], valid=0.2, test=0.2)]
    ['train', 'train', 'train', 'valid', 'test']
    """
    aside = _aside(len(lines), "lines", test, valid, most)
    parts = ["train"] * (len(lines) - sum(aside)) + ["valid"] * aside[1] + ["test"] * aside[0]
    return list(zip(parts, lines, strict=True))


def _aside(count: int, what: str, test: float, valid: float, most: int) -> list[int]:
    """How many are for test, and how many for valid."""
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise RegardError(f"shares of {valid} for valid and {test} for test leave none to train on")
    aside = [min(max(round(share * count), 1), most) if share else 0 for share in (test, valid)]
    if sum(aside) >= count:
        raise RegardError(
            f"{count} {what} cannot be split in {1 + sum(n > 0 for n in aside)} parts: more are "
            "needed"
        )
    return aside


def key_of(example: Example) -> str:
    """What must stay together: the source sentence, the text, the words."""
    if isinstance(example, Pair):
        return example.source
    if isinstance(example, (Labelled, Line)):
        return example.text if isinstance(example.text, str) else example.where
    return " ".join(example.words) if isinstance(example.words, tuple) else example.where


def place_of(key: str, seed: int = 0) -> int:
    """A number in 0…2^64 that the key alone decides, for each seed another."""
    salted = blake2b(key.encode(), digest_size=8, salt=(seed % 2**64).to_bytes(8, "little"))
    return int.from_bytes(salted.digest(), "little")


def write_split(
    folder: Path, parted: Iterable[tuple[str, Example]], form: str = "tsv"
) -> dict[Path, int]:
    """Write each example to the file of its part, and say how many each file holds.

    Examples come with their parts, as `Split.parted` and `cut` give them.
    Pairs, labelled texts and conditioned lines become `train.tsv` (or `.jsonl`, which keeps tabs,
    newlines and several labels), tagged words `train.conll`, plain lines `train.txt` (or `.jsonl`);
    and so `valid` and `test`. The folder appears whole or not at all, and must be new or empty.
    """
    if form not in ("tsv", "jsonl"):
        raise RegardError(f"format {form!r}: expected tsv or jsonl")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RegardError(f"{folder}: holds something else, nothing was written: name a new folder")
    partial = folder.absolute().parent / f".{folder.absolute().name}.{os.getpid()}.partial"
    try:
        partial.mkdir(parents=True)
        counts = _write_parts(partial, parted, form)
        if folder.exists():
            folder.rmdir()
        partial.rename(folder)
    except OSError as error:
        raise RegardError(f"{folder}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return {folder / name: counts[name] for name in sorted(counts)}


def _write_parts(folder: Path, parted: Iterable[tuple[str, Example]], form: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        files: dict[str, TextIO] = {}
        for part, example in parted:
            ending, header, text = _written(example, form)
            name = part + ending
            if name not in files:
                opened = (folder / name).open("w", encoding="utf-8", newline="\n")
                files[name] = stack.enter_context(opened)
                files[name].write(header)
            files[name].write(text)
            counts[name] += 1
        for file in files.values():
            file.flush()
            os.fsync(file.fileno())
    return counts


def _written(example: Example, form: str) -> tuple[str, str, str]:
    """The ending of an example's file, the first line of that file, and the example's own."""
    if isinstance(example, Tagged):
        if not isinstance(example.words, tuple):
            raise RegardError(f"{example.where}: vectors are not written: split their files")
        rows = zip(example.words, example.tags, strict=True)
        return ".conll", "", "".join(f"{word}\t{tag}\n" for word, tag in rows) + "\n"
    if isinstance(example, Line) and example.condition is None:
        if form == "jsonl":
            return ".jsonl", "", json.dumps({"text": example.text}, ensure_ascii=False) + "\n"
        return ".txt", "", _flat(example.text) + "\n"
    record = _record(example)
    if form == "jsonl":
        return ".jsonl", "", json.dumps(record, ensure_ascii=False) + "\n"
    cells = [_flat(value) if isinstance(value, str) else value for value in record.values()]
    if not all(isinstance(cell, str) for cell in cells):
        raise RegardError(f"{example.where}: several labels or none: write jsonl, not tsv")
    return ".tsv", "\t".join(record) + "\n", "\t".join(map(str, cells)) + "\n"


def _record(example: Pair | Labelled | Line) -> dict[str, str | list[str]]:
    if isinstance(example, Pair):
        return {"source": example.source, "target": example.target}
    label = example.labels if isinstance(example, Labelled) else example.condition
    if not isinstance(example.text, str) or isinstance(label, np.ndarray) or label is None:
        raise RegardError(f"{example.where}: vectors are not written: split their files")
    single = label if isinstance(label, str) else label[0] if len(label) == 1 else list(label)
    return {"text": example.text, "label": single}


def _flat(text: str) -> str:
    """A text on one line without tabs, which part lines and columns."""
    return " ".join(text.split()) if any(blank in text for blank in "\t\n\r") else text
