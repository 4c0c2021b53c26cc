"""Built-in corpora as ordinary files: a folder that appears whole or not at all."""

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

from regard.atomic_files import refuse_used_folder, write_folder
from regard.corpora.built_in_corpus import BuiltInCorpus, SplitExamples
from regard.corpora.corpus_registry import CORPORA, check_options, sample_examples
from regard.progress import track

DESCRIPTION = "corpus.json"
"""The file that says what a folder holds."""


class WrittenCorpus(NamedTuple):
    """Where a corpus is: the files and the number of examples of each split."""

    folder: Path
    files: dict[str, tuple[Path, ...]]
    counts: dict[str, int]


def write_corpus(
    name: str, folder: str | Path, size: int | None = None, seed: int = 0, **options: str
) -> WrittenCorpus:
    """Write a built-in corpus: a folder with the files of each split and a ``corpus.json``.

    english_french: ``train.en``, ``train.fr`` and their gold ``train.alignments`` (Pharaoh format:
    ``i-j``, words counted from 0, English first); sentiment: ``train.tsv``, and minimal pairs in
    ``pairs.tsv``, on two lines each; entities: ``train.conll``; stories: ``train.txt`` with one
    paragraph per line, and ``train.tsv`` with its topic too; algorithms: ``train.tsv``. The other
    splits have the same files. The same corpus written before is left as it is; a folder with
    anything else in it is an error.
    """
    folder = Path(folder)
    corpus = CORPORA.row(name)
    sampled = sample_examples(name, size, seed, **options)
    examples = track(sampled, "making built-in data", unit="examples")
    description = {
        "format": "regard built-in corpus",
        "corpus": name,
        "size": size or corpus.size,
        "seed": seed,
        "options": check_options(name, options),
    }
    if folder.is_dir() and any(folder.iterdir()):
        return _read_written(folder, description)

    def fill(partial: Path) -> tuple[dict[str, list[str]], dict[str, int]]:
        names, counts = _write_splits(corpus, examples, partial)
        lengths = {
            name: (partial / name).stat().st_size for files in names.values() for name in files
        }
        text = json.dumps(
            description | {"splits": names, "counts": counts, "bytes": lengths}, indent=2
        )
        with (partial / DESCRIPTION).open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            _flush_to_disk(file)
        return names, counts

    return _with_paths(folder, *write_folder(folder, fill))


def _with_paths(folder: Path, names: dict[str, list[str]], counts: dict[str, int]) -> WrittenCorpus:
    files = {split: tuple(folder / name for name in listed) for split, listed in names.items()}
    return WrittenCorpus(folder, files, counts)


def _read_written(folder: Path, description: dict[str, object]) -> WrittenCorpus:
    """The corpus in a folder, if it is exactly the described one."""
    try:
        stored = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        same = all(stored[key] == value for key, value in description.items()) and all(
            (folder / name).stat().st_size == length for name, length in stored["bytes"].items()
        )
        if same and {path.name for path in folder.iterdir()} == {DESCRIPTION, *stored["bytes"]}:
            return _with_paths(folder, stored["splits"], stored["counts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        pass
    refuse_used_folder(folder)
    raise AssertionError  # it is a folder with files


def _write_splits(
    corpus: BuiltInCorpus, examples: SplitExamples, folder: Path
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Write each example to the files of its split; their names, and the counts of examples."""
    names: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    with ExitStack() as stack:
        files: dict[str, list[IO[str]]] = {}
        for split, example in examples:
            if split not in files:
                names[split] = [split + suffix for suffix in corpus.suffixes]
                paths = [folder / name for name in names[split]]
                files[split] = [stack.enter_context(_open(path)) for path in paths]
                files[split][-1].write(corpus.header)
                counts[split] = 0
            counts[split] += 1
            for file, text in zip(files[split], corpus.lines(example), strict=True):
                file.write(text + "\n")
        for opened in files.values():
            for file in opened:
                _flush_to_disk(file)
    return names, counts


def _open(path: Path) -> IO[str]:
    return path.open("w", encoding="utf-8", newline="\n")


def _flush_to_disk(file: IO[str]) -> None:
    file.flush()
    os.fsync(file.fileno())
