"""`regard data`: make, describe and split corpora; the cache of prepared data."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regard.commands.line_io import number
from regard.commands.run_options import add_quiet
from regard.errors import RegardError, printable
from regard.options import COLUMN_OPTIONS, positive, random_seed
from regard.progress import track

MAX_LABELS = 30
"""Labels that `describe` lists; the others are counted together."""


def proportion(text: str) -> float:
    """A proportion that is less than all, for argparse."""
    value = number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"expected 0 or more and less than 1, got {text!r}")
    return value


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `data` and its verbs."""
    parser = commands.add_parser(
        "data",
        help="make, describe and split corpora; manage the cache of prepared data",
        examples=(
            "regard data describe reviews.tsv --task classify",
            "regard data split pairs.tsv --task translation --out parts",
        ),
    )
    if arguments is not None and "data" not in arguments:
        return
    from regard.tasks.registry import TASKS

    tasks = list(TASKS)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    make = verbs.add_parser(
        "make",
        help="write a built-in corpus as files",
        examples=(
            "regard data make translation --out data",
            "regard data make algorithm --kind sort --size 500 --out data",
        ),
    )
    make.add_argument("task", choices=tasks, metavar="task", help=f"one of {', '.join(tasks)}")
    make.add_argument("--size", type=positive, metavar="INT", help="number of training examples")
    make.add_argument("--seed", type=random_seed, default=0, help="random seed (default: 0)")
    make.add_argument("--kind", help="algorithm: copy (default), reverse, sort or recall")
    make.set_defaults(run=_make, parser=make)
    describe = verbs.add_parser(
        "describe",
        help="summarize a corpus",
        examples=(
            "regard data describe reviews.tsv --task classify",
            "regard data describe train.en train.fr --task translation",
        ),
    )
    split = verbs.add_parser(
        "split",
        help="split a corpus into train, valid and test files",
        examples=(
            "regard data split pairs.tsv --task translation --out parts",
            "regard data split reviews.tsv --task classify --valid 0.05 --out parts",
        ),
    )
    for verb, run in ((describe, _describe), (split, _split)):
        verb.add_argument("files", nargs="*", metavar="FILE", help="the files of the corpus")
        verb.add_argument("--data", nargs="+", metavar="FILE", help="the same, as in training")
        verb.add_argument("--task", choices=tasks, help=f"one of {', '.join(tasks)}")
        for column in COLUMN_OPTIONS:
            verb.add_argument(f"--{column}", metavar="NAME", help=f"column with the {column}")
        verb.set_defaults(run=run, parser=verb)
    for name in ("valid", "test"):
        split.add_argument(
            f"--{name}",
            type=proportion,
            default=0.1,
            metavar="FLOAT",
            help=f"proportion of the {name} data (default: 0.1)",
        )
    split.add_argument("--seed", type=random_seed, default=0, help="random seed (default: 0)")
    split.add_argument(
        "--format",
        choices=("tsv", "jsonl"),
        default="tsv",
        help="tsv or jsonl (default: tsv)",
    )
    cache = verbs.add_parser(
        "cache",
        help="list or remove prepared data that runs share",
        description="Runs on the same files with the same data options prepare them once. The "
        "result is kept in a folder of limited size; the least recently used data goes first.",
        examples=("regard data cache", "regard data cache --limit 5", "regard data cache --clear"),
    )
    cache.add_argument(
        "--folder",
        type=Path,
        metavar="FOLDER",
        help="the folder (default: the user's cache folder)",
    )
    cache.add_argument("--clear", action="store_true", help="remove everything in it")
    cache.add_argument(
        "--limit",
        type=number,
        metavar="GIB",
        help="set its maximum size, and remove what exceeds it",
    )
    cache.set_defaults(run=_cache, parser=cache)
    for verb in (make, describe, split):
        add_quiet(verb)
    for verb in (make, split):
        verb.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="output folder")


def _read(chosen: argparse.Namespace) -> tuple[Any, Any, list[Any], Any]:
    """The task, its data options, the examples of some files, and a summary of every line."""
    from regard.data import Summary, resolve
    from regard.options import make
    from regard.tasks.registry import TASKS

    if chosen.task is None:
        raise RegardError(
            f"{chosen.parser.prog}: --task is missing: what the data is for, one of "
            f"{', '.join(TASKS)}"
        )
    spec, summary = TASKS.row(chosen.task), Summary()
    files = [*chosen.files, *(chosen.data or [])]
    if not files:
        raise RegardError(f"no data: expected files, as in {chosen.parser.prog} FILE --task TASK")
    given = {name: getattr(chosen, name) for name in COLUMN_OPTIONS} | {"data": files}
    options: Any = make(spec.data, given)
    read = spec.read(options, resolve(files), summary)
    examples = list(track(read, "reading data", unit="examples"))
    summary.require(1, "to read")
    return spec, options, examples, summary


def _describe(chosen: argparse.Namespace) -> int:
    from regard.data.describe import describe

    _, _, examples, summary = _read(chosen)
    description = describe(examples, summary)
    rows = [("examples", f"{description.examples:,}", f"({description.summary.total})")]
    rows += [("columns", "", columns) for columns in summary.columns()]
    for side in description.sides:
        lengths = _length_summary(side.lengths)
        common = " ".join(word for word, _ in side.most_common)
        different = f"{side.vocabulary:,} different, {side.singletons:,} that occur once"
        # The words of vectors cannot be counted apart.
        rows += [(_words_of(side.name), f"{side.words:,}", different if side.vocabulary else "")]
        rows += [("  per example", "", lengths)] + [("  most common", "", common)] * bool(common)
    if description.labels:
        rows.append(("labels", f"{len(description.labels):,}", ""))
    total = sum(count for _, count in description.labels)
    listed = [(_shorten(label), count) for label, count in description.labels[:MAX_LABELS]]
    if more := description.labels[MAX_LABELS:]:
        listed.append((f"({len(more):,} more)", sum(count for _, count in more)))
    rows += [(f"  {name}", f"{count:,}", f"{100 * count / total:.1f} %") for name, count in listed]
    print(printable("\n".join([*_aligned(rows), *summary.notes])))
    return 0


def _length_summary(lengths: Mapping[int, int]) -> str:
    """The quantiles of lengths in words.

    >>> _length_summary({0: 1, 25: 3, 50: 5, 75: 8, 95: 20, 100: 48})
    '1 to 48, median 5; half have 3 to 8, 95 % at most 20'
    """
    middle = f"half have {lengths[25]} to {lengths[75]}, 95 % at most {lengths[95]}"
    return f"{lengths[0]} to {lengths[100]}, median {lengths[50]}; {middle}"


def _words_of(side: str) -> str:
    return "words" if side in ("words", "text") else f"{side} words"


def _shorten(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _aligned(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Names to the left, numbers to the right, remarks after them."""
    from regard.show.text_width import align_left, align_right, display_width

    name, number = (max(display_width(row[i]) for row in rows) for i in (0, 1))
    return [f"{align_left(a, name)}  {align_right(b, number)}  {c}".rstrip() for a, b, c in rows]


def _split(chosen: argparse.Namespace) -> int:
    from regard.data.split import split_by_hash, split_key, split_running_text, write_split

    spec, options, examples, summary = _read(chosen)
    running_text = spec.running_text(options)
    if running_text:
        splits: Any = split_running_text(examples, chosen.valid, chosen.test)
    else:
        keys = (split_key(example) for example in examples)
        splits = split_by_hash(keys, chosen.valid, chosen.test, seed=chosen.seed).assign(examples)
    print(summary)
    for path, count in write_split(chosen.out, splits, chosen.format).items():
        print(f"{count:>7,} {path}")
    if running_text and _has_tables([*chosen.files, *(chosen.data or [])]):
        print("only the texts were written: --condition names a column of labels to keep")
    return 0


def _has_tables(files: list[str]) -> bool:
    from regard.data import resolve
    from regard.data.readers.formats import TABLES, detect_format

    return any(detect_format(source, sniff=False) in TABLES for source in resolve(files))


def _cache(chosen: argparse.Namespace) -> int:
    from datetime import datetime

    from regard.training.stored_runs.data_cache import DataCache, default_cache

    folder = chosen.folder or default_cache()
    if folder is None:
        raise RegardError("there is no home folder: name a cache with --folder")
    cache, gibibyte = DataCache(folder), 2**30
    if chosen.limit is not None:
        if not 0 <= chosen.limit < 2**33:
            raise RegardError(f"--limit {chosen.limit:g}: expected 0 or more, in GiB")
        cache.set_limit(int(chosen.limit * gibibyte))
    if chosen.clear:
        print(f"removed {cache.clear() / gibibyte:.2f} GiB from {folder}")
        return 0
    entries = cache.entries()
    for entry in entries:
        used = datetime.fromtimestamp(entry.used).strftime("%Y-%m-%d %H:%M")
        print(printable(f"{entry.size / gibibyte:8.2f} GiB  {used}  {entry.about}"))
    total = sum(entry.size for entry in entries)
    print(f"{total / gibibyte:8.2f} GiB of {cache.limit() / gibibyte:.2f} GiB in {folder}")
    return 0


def _make(chosen: argparse.Namespace) -> int:
    from regard.corpora import write_corpus
    from regard.tasks.registry import TASKS

    spec = TASKS.row(chosen.task)
    if spec.corpus is None:
        raise RegardError(f"{chosen.task}: has no built-in corpus")
    options = {} if chosen.kind is None else {"kind": chosen.kind}
    written = write_corpus(spec.corpus, chosen.out, chosen.size, chosen.seed, **options)
    for split, files in written.files.items():
        print(f"{written.counts[split]:>7,} {split}: {', '.join(map(str, files))}")
    return 0
