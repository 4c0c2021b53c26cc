"""Runs made smaller: packed for others, without training text, or pruned in place."""

import json
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regard.atomic_files import write_folder, write_output, write_text
from regard.errors import RegardError
from regard.training.metrics_log import MAX_METRICS
from regard.training.run_folder import CONFIG, RunFolder
from regard.training.run_identity import FILE_OPTIONS
from regard.training.stored_runs.model_card import CARD, card_file, own_card
from regard.training.stored_runs.run_summary import is_training, summarize_run
from regard.verified_files import parse_json, read_bytes, read_json

TRAINING_ONLY = (".arrow", "initial.safetensors")
"""How the names of files end that hold tokenized text."""
ZIP_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of all files in an archive, so that the same run gives the same archive."""


def pack_run(path: Path, to: Path, *, half: bool = False) -> int:
    """Write what using a run needs to a new folder, or to a file that ends in .zip; its bytes.

    That is the config, the weights, the tokenizers and labels, the metrics and a model card. Left
    out are all texts (the corpora, the samples and the sentences of evaluations), the folders of
    the data files, checkpoints, and the state of the optimizer. With `half` the weights are stored
    in half precision; they are read as float32 again.
    """
    folder = RunFolder(path)
    folder.config()
    folder.require_weights()
    folder.refuse_links_out()
    if to.suffix == ".zip":
        return write_output(to, lambda stream: _write_zip(folder, half, to.stem, stream))
    if to.suffix:
        raise RegardError(f"{to}: expected a folder, or a file that ends in .zip")
    return write_folder(to, lambda part: _write_files(folder, half, part))


def prune_run(path: Path, *, dry_run: bool = False) -> dict[str, int]:
    """Remove what only further training needs from a finished run; bytes freed, by part.

    These are the checkpoints, the state of the optimizer and the tokenized training data. The
    validation data stays: alignments choose their head with it.
    """
    folder = RunFolder(path)
    summary = summarize_run(path)
    if is_training(folder):
        raise RegardError(f"{path}: another process is training here: wait for it")
    if summary.status not in ("finished", "packed"):
        raise RegardError(
            f"{path}: its training is not finished: finish it with `regard train`, since a pruned "
            "run cannot resume"
        )
    folder.refuse_links()
    parts = {
        "checkpoints": sorted(folder.checkpoints.glob("*.safetensors")),
        "training state": sorted(folder.state.glob("*.safetensors")),
        "training data": [
            folder.data / name
            for name in ("train.arrow", "initial.safetensors")
            if (folder.data / name).is_file()
        ],
    }
    freed = {name: sum(file.stat().st_size for file in files) for name, files in parts.items()}
    if dry_run or not any(freed.values()):
        return freed
    try:
        _mark(folder.path, "pruned")  # first: a run that lost some files must not resume
        for files in parts.values():
            for file in files:
                file.unlink(missing_ok=True)
        for emptied in (folder.checkpoints, folder.state):
            if emptied.is_dir() and not any(emptied.iterdir()):
                emptied.rmdir()
    except OSError as error:
        raise RegardError(f"{path}: cannot be pruned ({error.strerror})") from error
    return freed


def _mark(folder: Path, how: str) -> None:
    write_text(folder / RunFolder(folder).packed.name, json.dumps({"how": how}) + "\n")


def _write_files(folder: RunFolder, half: bool, to: Path) -> int:
    for name, content in _contents(folder, half):
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            shutil.copyfile(content, target)
        else:
            target.write_bytes(content)
    return sum(file.stat().st_size for file in to.rglob("*") if file.is_file())


def _write_zip(folder: RunFolder, half: bool, name: str, stream: Any) -> int:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, content in _contents(folder, half):
            entry = zipfile.ZipInfo(f"{name}/{inside}", ZIP_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            data = content.read_bytes() if isinstance(content, Path) else content
            archive.writestr(entry, data)
    return int(stream.tell())


def _contents(folder: RunFolder, half: bool) -> Iterator[tuple[str, Path | bytes]]:
    """The files of a packed run: copied as they are, or rewritten without texts."""
    summary = summarize_run(folder.path)
    yield CONFIG, _as_json(_without_folders(summary.config))
    yield folder.model.name, _in_half_precision(folder.model) if half else folder.model
    yield folder.packed.name, _as_json({"how": "packed", "written": int(summary.modified)})
    yield CARD, (own_card(folder) or card_file(summary)).encode()
    for file in sorted(folder.data.rglob("*")):
        if file.is_file() and not file.is_symlink() and not file.name.endswith(TRAINING_ONLY):
            name = file.relative_to(folder.path).as_posix()
            prepared = file == folder.prepared
            yield name, _prepared_without_texts(file) if prepared else file
    if folder.metrics.exists():
        yield folder.metrics.name, _metrics_without_samples(folder.metrics)
    for file in folder.files("evaluations/*.json"):
        yield f"{folder.evaluations.name}/{file.name}", file


def _in_half_precision(path: Path) -> bytes:
    from regard.training.tensor_files import half_precision  # imports torch

    return half_precision(path)


def _as_json(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()


def _without_folders(config: dict[str, Any]) -> dict[str, Any]:
    """The config with the names of data files, but not of the folders that they were in."""
    data = dict(config.get("data") or {})
    for option in FILE_OPTIONS:
        names = data.get(option)
        if isinstance(names, list):
            data[option] = [Path(str(name)).name for name in names]
        elif isinstance(names, str):
            data[option] = Path(names).name
    return config | {"data": data}


def _prepared_without_texts(path: Path) -> bytes:
    """The summary of the data, without what may quote it."""
    record = read_json(path)
    keep = ("read", "labels", "sizes", "vocabularies", "files", "digests")
    return _as_json({name: record[name] for name in keep if name in record})


def _metrics_without_samples(path: Path) -> bytes:
    lines = []
    for line in read_bytes(path, MAX_METRICS).decode("utf-8", "replace").split("\n"):
        try:
            record = parse_json(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            record.pop("samples", None)
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return "".join(lines).encode()
