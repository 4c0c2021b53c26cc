"""Train, validation and test splits: by a hash of the source, so that equal sources stay together,
or, for running text, by position."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TextIO

import numpy as np

from regard.atomic_files import write_folder
from regard.data.examples import Example, Labelled, Line, Pair, Tagged
from regard.errors import RegardError


@dataclass(frozen=True, slots=True)
class HashSplit:
    """Thresholds on the hash of a key, 0…2^64: the lowest are `test`, then `valid`, then `train`.

    The split of an example depends on its key and the seed alone, so that it stays the same when
    the corpus is read in another order or grows.
    """

    test_below: int
    valid_below: int
    seed: int = 0

    def of(self, key: str) -> str:
        """The split of the examples with this key."""
        value = key_hash(key, self.seed)
        if value < self.test_below:
            return "test"
        return "valid" if value < self.valid_below else "train"

    def assign(self, examples: Iterable[Example]) -> Iterator[tuple[str, Example]]:
        """Each example with its split."""
        return ((self.of(split_key(example)), example) for example in examples)


def split_by_hash(
    keys: Iterable[str] | np.ndarray,
    valid: float = 0.05,
    test: float = 0.0,
    most: int = 2000,
    seed: int = 0,
) -> HashSplit:
    """Hold out shares of the distinct keys for `valid` and `test`.

    Each has at least one key (unless its share is 0) and at most `most`. The keys are texts, or
    their hashes by this seed.

    >>> split = split_by_hash([str(i) for i in range(1000)], valid=0.1, test=0.1)
    >>> splits = [split.of(str(i)) for i in range(1000)]
    >>> splits.count("valid"), splits.count("test"), splits.count("train")
    (100, 100, 800)
    """
    if not isinstance(keys, np.ndarray):
        keys = np.fromiter((key_hash(key, seed) for key in keys), np.uint64)
    hashes = np.unique(keys)
    in_test, in_valid = _held_out_counts(len(hashes), "distinct examples", test, valid, most)
    # The hash at index n is the smallest one that is not among the first n.
    return HashSplit(
        test_below=int(hashes[in_test]) if in_test else 0,
        valid_below=int(hashes[in_test + in_valid]) if in_test + in_valid else 0,
        seed=seed,
    )


def hold_out_by_label(labels: Mapping[int, str], count: int) -> frozenset[int]:
    """About `count` of the keys, given by their hashes, with every label in proportion.

    Of each label the keys with the lowest hashes are held out, at least one if there are two or
    more. Labels that occur once stay where they can be learned.

    >>> held_out = hold_out_by_label({n: "spam" if n < 10 else "ham" for n in range(100)}, 10)
    >>> sorted(held_out)
    [0, 10, 11, 12, 13, 14, 15, 16, 17, 18]
    """
    groups: dict[str, list[int]] = {}
    for key in sorted(labels):
        groups.setdefault(labels[key], []).append(key)
    ranks = {
        key: rank / len(keys)
        for keys in groups.values()
        if len(keys) > 1
        for rank, key in enumerate(keys)
    }
    if not ranks:  # every label occurs once
        ranks = dict.fromkeys(sorted(labels), 0.0)
    return frozenset(sorted(ranks, key=lambda key: (ranks[key], key))[:count])


def split_running_text(
    lines: Sequence[Line], valid: float = 0.05, test: float = 0.0, most: int = 2000
) -> list[tuple[str, Line]]:
    """Each line of a running text with its split: the end is `test`, the lines before it `valid`.

    >>> lines = [Line(str(i)) for i in range(5)]
    >>> [split for split, _ in split_running_text(lines, valid=0.2, test=0.2)]
    ['train', 'train', 'train', 'valid', 'test']
    """
    in_test, in_valid = _held_out_counts(len(lines), "lines", test, valid, most)
    in_train = len(lines) - in_test - in_valid
    splits = ["train"] * in_train + ["valid"] * in_valid + ["test"] * in_test
    return list(zip(splits, lines, strict=True))


def _held_out_counts(
    count: int, what: str, test: float, valid: float, most: int
) -> tuple[int, int]:
    """How many of `count` are held out for test, and how many for validation."""
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise RegardError(
            f"shares of {valid} for valid and {test} for test: expected at least 0 each, and a sum "
            "below 1"
        )
    in_test, in_valid = (
        min(max(round(share * count), 1), most) if share else 0 for share in (test, valid)
    )
    if in_test + in_valid >= count:
        raise RegardError(
            f"too few {what} ({count}): {in_valid} for valid and {in_test} for test leave none to "
            "train on: add data or lower the shares"
        )
    return in_test, in_valid


def split_key(example: Example) -> str:
    """What decides the split of an example: the source sentence, the text or the words."""
    if isinstance(example, Pair):
        return example.source
    if isinstance(example, (Labelled, Line)):
        return example.text if isinstance(example.text, str) else example.where
    return " ".join(example.words) if isinstance(example.words, tuple) else example.where


def key_hash(key: str, seed: int = 0) -> int:
    """A hash of the key, 0…2^64, salted with the seed."""
    salted = blake2b(key.encode(), digest_size=8, salt=(seed % 2**64).to_bytes(8, "little"))
    return int.from_bytes(salted.digest(), "little")


def write_split(
    folder: Path, assigned: Iterable[tuple[str, Example]], form: str = "tsv"
) -> dict[Path, int]:
    """Write each example to the file of its split; how many examples each file holds.

    `assigned` examples come with their splits, as `HashSplit.assign` and `split_running_text`
    return them. Pairs, labelled texts and conditioned lines become `train.tsv` (or `.jsonl`, which
    preserves tabs, newlines and several labels), tagged words `train.conll`, plain lines
    `train.txt` (or `.jsonl`); `valid` and `test` likewise. The folder must be new or empty, and
    appears whole or not at all.
    """
    if form not in ("tsv", "jsonl"):
        raise RegardError(f"unknown format {form!r}: expected tsv or jsonl")
    counts = write_folder(folder, lambda partial: _write_files(partial, assigned, form))
    return {folder / name: counts[name] for name in sorted(counts)}


def _write_files(folder: Path, assigned: Iterable[tuple[str, Example]], form: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        files: dict[str, TextIO] = {}
        for split, example in assigned:
            suffix, header, text = _serialize(example, form)
            name = split + suffix
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


def _serialize(example: Example, form: str) -> tuple[str, str, str]:
    """The suffix of an example's file, the header of that file, and the example's own text."""
    if isinstance(example, Tagged):
        if not isinstance(example.words, tuple):
            raise _vectors_error(example)
        rows = zip(example.words, example.tags, strict=True)
        return ".conll", "", "".join(f"{word}\t{tag}\n" for word, tag in rows) + "\n"
    if isinstance(example, Line) and example.condition is None:
        if form == "jsonl":
            return ".jsonl", "", json.dumps({"text": example.text}, ensure_ascii=False) + "\n"
        return ".txt", "", _on_one_line(example.text) + "\n"
    record = _record(example)
    if form == "jsonl":
        return ".jsonl", "", json.dumps(record, ensure_ascii=False) + "\n"
    cells = [_on_one_line(value) if isinstance(value, str) else value for value in record.values()]
    if not all(isinstance(cell, str) for cell in cells):
        raise RegardError(
            f"{example.where}: TSV holds exactly one label per text, here are "
            f"{len(record['label'])}: use --format jsonl"
        )
    return ".tsv", "\t".join(record) + "\n", "\t".join(map(str, cells)) + "\n"


def _record(example: Pair | Labelled | Line) -> dict[str, str | list[str]]:
    if isinstance(example, Pair):
        return {"source": example.source, "target": example.target}
    label = example.labels if isinstance(example, Labelled) else example.condition
    if not isinstance(example.text, str) or isinstance(label, np.ndarray) or label is None:
        raise _vectors_error(example)
    single = label if isinstance(label, str) else label[0] if len(label) == 1 else list(label)
    return {"text": example.text, "label": single}


def _vectors_error(example: Example) -> RegardError:
    return RegardError(
        f"{example.where}: vectors cannot be split by this command: split their files instead"
    )


def _on_one_line(text: str) -> str:
    """The text without tabs and newlines, which separate columns and lines."""
    return " ".join(text.split()) if any(blank in text for blank in "\t\n\r") else text
