"""`regard data`: make, describe and split corpora."""

import argparse
from pathlib import Path
from typing import Any

from regard.commands.train import TASKS
from regard.options import positive

COLUMNS = ("source", "target", "text", "label", "condition")


def add(commands: Any) -> None:
    """Add `data` and its verbs."""
    parser = commands.add_parser("data", help="make, look at and split corpora")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    made = verbs.add_parser("make", help="write a built-in corpus as files")
    made.add_argument("task", help="translation, language, classify, tag or algorithm")
    made.add_argument("--size", type=positive, metavar="INT", help="training examples")
    made.add_argument("--seed", type=int, default=0, help="another seed, another corpus")
    made.add_argument(
        "--kind", default="copy", help="of algorithm: copy (default), reverse, sort or recall"
    )
    made.set_defaults(run=_make, parser=made)
    described = verbs.add_parser("describe", help="say what is in a corpus")
    parted = verbs.add_parser("split", help="part a corpus in train, valid and test files")
    for one, run in ((described, _describe), (parted, _split)):
        one.add_argument("files", nargs="+", metavar="FILE", help="the files of the corpus")
        one.add_argument("--task", required=True, choices=TASKS, help=f"one of {', '.join(TASKS)}")
        for column in COLUMNS:
            one.add_argument(f"--{column}", metavar="NAME", help=f"the column with the {column}")
        one.set_defaults(run=run, parser=one)
    for share in ("valid", "test"):
        parted.add_argument(
            f"--{share}", type=float, default=0.1, help=f"the share for {share} (default: 0.1)"
        )
    parted.add_argument("--seed", type=int, default=0, help="another seed, other parts")
    parted.add_argument("--format", default="tsv", help="tsv or jsonl (default: tsv)")
    for one in (made, parted):
        one.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write")


def _examples(chosen: argparse.Namespace) -> tuple[list[Any], Any]:
    """The examples of a task in some files, and what became of every line."""
    from regard.data import Summary, resolve
    from regard.options import make
    from regard.tasks.kinds import KINDS

    kind, summary = KINDS[chosen.task], Summary()
    named = {name: getattr(chosen, name) for name in COLUMNS} | {"data": chosen.files}
    examples = list(kind.read(make(kind.data, named), resolve(chosen.files), summary))
    summary.require(1, "to look at")
    return examples, summary


def _describe(chosen: argparse.Namespace) -> int:
    from regard.data.describe import describe

    found = describe(*_examples(chosen))
    print(f"{'examples':16}{found.examples:>10,}   ({found.summary})")
    for side in found.sides:
        lengths = ", ".join(f"{share} % {length}" for share, length in side.lengths.items())
        common = " ".join(word for word, _ in side.common)
        print(f"{side.name + ' words':16}{side.words:>10,}   {side.vocabulary:,} different")
        print(f"{'  seen once':16}{side.once:>10,}")
        print(f"{'  lengths':16}{'':10}   {lengths}")
        print(f"{'  most common':16}{'':10}   {common}")
    for label, count in found.labels:
        print(f"{'label ' + label:16}{count:>10,}")
    return 0


def _split(chosen: argparse.Namespace) -> int:
    from regard.data.split import cut, key_of, split_by, write_split

    examples, summary = _examples(chosen)
    if chosen.task == "language" and all(line.condition is None for line in examples):
        parted: Any = cut(examples, chosen.valid, chosen.test)
    else:
        keys = (key_of(example) for example in examples)
        parted = split_by(keys, chosen.valid, chosen.test, seed=chosen.seed).parted(examples)
    print(summary)
    for path, count in write_split(chosen.out, parted, chosen.format).items():
        print(f"{count:>7,} {path}")
    if chosen.task == "language" and chosen.condition is None and _tables(chosen.files):
        print("texts alone were written: --condition names a column of labels to keep")
    return 0


def _tables(files: list[str]) -> bool:
    from regard.data import resolve
    from regard.data.formats import TABLES, form

    return any(form(source, sniff=False) in TABLES for source in resolve(files))


def _make(chosen: argparse.Namespace) -> int:
    from regard.data.builtin import write

    written = write(chosen.task, chosen.out, chosen.size, chosen.seed, chosen.kind)
    for part, files in written.files.items():
        print(f"{written.counts[part]:>7,} {part}: {', '.join(map(str, files))}")
    return 0
