"""The data that a run has prepared: tokenizers, labels and corpora, with their digests.

The record is written after all of them, in one atomic write: where it exists, they are complete.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from regard.atomic_files import is_partial_file, write_text
from regard.errors import RegardError
from regard.training.run_folder import CONFIG, RunFolder
from regard.training.run_identity import run_identity
from regard.verified_files import (
    MAX_JSON,
    MEBIBYTE,
    file_digest,
    is_file_below,
    json_digest,
    read_json,
)

TRAINING_ONLY = (".arrow", "initial.safetensors")
"""How the names of corpora, and of the weights that training starts from, end: only training reads
them."""
MAX_RECORD = 4 * MEBIBYTE
MAX_TABLE = 8 * 2**30
"""Limit of word vectors and tables of n-grams, all of which are hashed when a run is loaded."""
MOST_FILES = 1000
"""Files of prepared data, of which a run has about ten."""


@dataclass(frozen=True)
class Prepared:
    """The record of the prepared data."""

    files: str | None
    """The fingerprint of the data files when they were read; None if it is unknown."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 digest of each prepared file by name."""

    @property
    def digest(self) -> str:
        """One digest of all prepared files."""
        return json_digest(dict(self.digests))


def write_prepared(folder: RunFolder, report: Mapping[str, Any], files: str | None) -> None:
    """Write the record of the files that were prepared in a run folder.

    `report` says what was read, and `files` is the fingerprint of the data files.
    """
    digests = {
        path.relative_to(folder.data).as_posix(): file_digest(path)
        for path in sorted(folder.data.rglob("*"))
        if path.is_file() and not is_partial_file(path) and path != folder.prepared
    }
    record = {**report, "files": files, "digests": digests}
    write_text(folder.prepared, json.dumps(record, ensure_ascii=False, indent=1) + "\n")


def read_prepared(folder: RunFolder) -> Prepared:
    """What `write_prepared` wrote."""
    path = folder.prepared
    try:
        record = read_json(path, MAX_RECORD)
    except (FileNotFoundError, NotADirectoryError):
        raise RegardError(
            f"{path}: is missing: restore it from a copy, or train the run again"
        ) from None
    digests = record.get("digests") if isinstance(record, dict) else None
    if not isinstance(digests, dict) or not all(isinstance(d, str) for d in digests.values()):
        raise RegardError(f"{path}: is damaged: expected the digests of prepared files")
    if len(digests) > MOST_FILES:
        raise RegardError(f"{path}: names {len(digests):,} files: expected at most {MOST_FILES}")
    files = record.get("files")
    return Prepared(files if isinstance(files, str) else None, digests)


def verify_prepared(folder: RunFolder, prepared: Prepared, *, corpora: bool) -> None:
    """Compare the prepared files with their digests; the corpora only if training reads them."""
    for name, expected in prepared.digests.items():
        path = folder.data / name
        if not is_file_below(name):
            raise RegardError(f"{folder.prepared}: {name!r} is not a file of the run")
        if name.endswith(TRAINING_ONLY) and not corpora:
            continue
        limit = None if corpora else MAX_JSON if path.suffix == ".json" else MAX_TABLE
        if file_digest(path, limit) != expected:
            raise RegardError(
                f"{path}: is damaged (its SHA-256 digest is not the one in "
                f"{folder.prepared.name}): restore it from a copy, or remove {folder.prepared} and "
                f"run the same train command to read the data again"
            )


def identify_run(folder: RunFolder) -> dict[str, Any]:
    """What the tensor files of a run record; nothing of a folder without config and data."""
    config = folder.config() if (folder.path / CONFIG).exists() else {}
    data = read_prepared(folder).digest if folder.prepared.exists() else None
    return run_identity(config, data)
