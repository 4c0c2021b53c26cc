"""Built-in corpora as ordinary files: a folder that appears whole or not at all."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

from regard.data.builtin.making import SIZES, examples
from regard.data.builtin.parts import AlignedPair
from regard.data.examples import Example, Labelled, Line, Pair, Tagged
from regard.errors import RegardError

DESCRIPTION = "corpus.json"
"""The file that says what a folder holds."""

HEADERS = {
    "classify": "text\tlabel\n",
    "language": "text\ttopic\n",
    "algorithm": "source\ttarget\n",
}
"""First lines of the tables, by task."""


class Written(NamedTuple):
    """Where a corpus is: the files and the number of examples of each part."""

    folder: Path
    files: dict[str, tuple[Path, ...]]
    counts: dict[str, int]


def write(
    task: str, folder: str | Path, size: int | None = None, seed: int = 0, kind: str = "copy"
) -> Written:
    """Write a built-in corpus: a folder with the files of each part and a ``corpus.json``.

    translation: ``train.en``, ``train.fr`` and their gold ``train.alignments`` (Pharaoh: ``i-j``,
    words between spaces counted from 0, English first); classify: ``train.tsv`` and minimal pairs
    in ``pairs.tsv``, two lines a pair; tag: ``train.conll``; language: a paragraph a line in
    ``train.txt``, with its topic in ``train.tsv``; algorithm: ``train.tsv``; and so ``valid`` and
    ``test``. The same corpus written before is left as it is; a folder with anything else in it
    is refused.
    """
    folder = Path(folder)
    made = examples(task, size, seed, kind)
    described = {
        "corpus": "regard built-in",
        "task": task,
        "size": size or SIZES[task],
        "seed": seed,
    }
    if task == "algorithm":
        described["kind"] = kind
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        return _written_before(folder, described)
    partial = folder.absolute().parent / f".{folder.absolute().name}.{os.getpid()}.partial"
    try:
        partial.mkdir(parents=True)
        names, counts = _write_parts(task, made, partial)
        lengths = {
            name: (partial / name).stat().st_size for files in names.values() for name in files
        }
        text = json.dumps(
            described | {"parts": names, "counts": counts, "bytes": lengths}, indent=2
        )
        with (partial / DESCRIPTION).open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            _settle(file)
        if folder.exists():
            folder.rmdir()
        partial.rename(folder)
    except OSError as error:
        raise RegardError(
            f"{folder}: cannot write the corpus: {error.strerror or error}"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return _written(folder, names, counts)


def _written(folder: Path, names: dict[str, list[str]], counts: dict[str, int]) -> Written:
    files = {part: tuple(folder / name for name in listed) for part, listed in names.items()}
    return Written(folder, files, counts)


def _written_before(folder: Path, described: dict[str, object]) -> Written:
    """What the folder holds, if it is the very corpus that is asked for."""
    try:
        found = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        same = all(found[key] == value for key, value in described.items()) and all(
            (folder / name).stat().st_size == length for name, length in found["bytes"].items()
        )
        if same and {path.name for path in folder.iterdir()} == {DESCRIPTION, *found["bytes"]}:
            return _written(folder, found["parts"], found["counts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    raise RegardError(
        f"{folder}: holds something else, nothing was written: give --out a new or empty folder"
    )


def _write_parts(
    task: str, made: Iterator[tuple[str, Example]], folder: Path
) -> tuple[dict[str, list[str]], dict[str, int]]:
    names: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    with ExitStack() as stack:
        files: dict[str, list[IO[str]]] = {}
        for part, example in made:
            if part not in files:
                names[part] = [part + ending for ending in _ENDINGS[task]]
                paths = [folder / name for name in names[part]]
                files[part] = [stack.enter_context(_open(path)) for path in paths]
                if task in HEADERS:
                    files[part][-1].write(HEADERS[task])
                counts[part] = 0
            counts[part] += 1
            for file, text in zip(files[part], _texts(example), strict=True):
                file.write(text + "\n")
        for opened in files.values():
            for file in opened:
                _settle(file)
    return names, counts


_ENDINGS = {
    "translation": (".en", ".fr", ".alignments"),
    "classify": (".tsv",),
    "tag": (".conll",),
    "language": (".txt", ".tsv"),
    "algorithm": (".tsv",),
}


def _texts(example: Example) -> tuple[str, ...]:
    """What each file of a part says of an example."""
    match example:
        case AlignedPair():
            return example.source, example.target, " ".join(f"{i}-{j}" for i, j in example.links)
        case Pair():
            return (f"{example.source}\t{example.target}",)
        case Labelled():
            return (f"{example.text}\t{example.labels[0]}",)
        case Tagged():
            tagged = zip(example.words, example.tags, strict=True)
            return ("".join(f"{word} {tag}\n" for word, tag in tagged),)
        case Line():
            return example.text, f"{example.text}\t{example.condition}"


def _open(path: Path) -> IO[str]:
    return path.open("w", encoding="utf-8", newline="\n")


def _settle(file: IO[str]) -> None:
    file.flush()
    os.fsync(file.fileno())
