"""The output of many files: whole files, and what is needed to resume, in a folder `.regard`.

    OUT/NAME                     a finished output file
    OUT/.regard/job.json         what is done, with which run and options
    OUT/.regard/files/NAME.json  the record of a finished file: written after the file
    OUT/.regard/parts/NAME/…     finished shards of a file that is not finished

Every file is written whole or not at all, so a process may be killed at any moment.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from regard.atomic_files import (
    is_partial_file,
    make_folder,
    open_to_append,
    write_text,
    write_whole,
)
from regard.errors import RegardError
from regard.inference.bulk.output_formats import OUTPUT_FORMATS
from regard.inference.bulk.part_files import Summary, add_summary, is_summary, open_part
from regard.inference.bulk.shards import InputFile, Shard
from regard.verified_files import MEBIBYTE, file_digest, is_plain, read_json

STATE = ".regard"
FORMAT = 1


class OutputFolder:
    """The folder that a user named for the output of many files."""

    def __init__(self, path: Path, output_format: str) -> None:
        self.path, self._format = path, OUTPUT_FORMATS[output_format]
        self._state = path / STATE

    @contextmanager
    def begin(self, job: dict[str, Any], files: Sequence[InputFile]) -> Iterator[None]:
        """Lock the folder for a job; one that holds anything else is an error."""
        self._refuse_foreign(files)
        self._refuse_links()
        make_folder(self._state)
        with open_to_append(self._state / "lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RegardError(
                    f"{self.path}: another process writes here: wait for it, or choose another "
                    "folder"
                ) from None
            self._check_job({"format": FORMAT, **job})
            self._remove_partial_outputs(files)
            yield

    def finished(self, file: InputFile) -> Summary | None:
        """The record of a file whose output is complete; None if it has to be made."""
        try:
            record = read_json(self._record(file), 16 * MEBIBYTE)
            summary = record.pop("summary")
            same = record == self._state_of(file) and is_summary(summary)
        except (OSError, RegardError, AttributeError, KeyError, TypeError):
            return None
        return summary if same else None

    def part_path(self, shard: Shard) -> Path:
        """Where the result of a shard is."""
        return self._state / "parts" / shard.file.output / f"{shard.name}.part"

    def finish(self, file: InputFile, shards: Sequence[Shard]) -> Summary:
        """Make the output of a file from the results of all its shards."""
        paths = [self.part_path(shard) for shard in shards]
        summary: Summary = {"lines": 0, "truncated": 0, "failed": 0, "errors": []}
        for path in paths:
            with open_part(path) as (part, _):
                add_summary(summary, part)
        write_whole(self.path / file.output, lambda output: self._format.join(paths, output))
        record = {**self._state_of(file), "summary": summary}
        self._record(file).parent.mkdir(exist_ok=True)
        write_text(self._record(file), json.dumps(record))
        shutil.rmtree(self._state / "parts" / file.output, ignore_errors=True)
        return summary

    def remove_parts(self) -> None:
        """Remove what is left of files that have changed, when every file is finished."""
        shutil.rmtree(self._state / "parts", ignore_errors=True)

    def write_errors(self, messages: Sequence[str]) -> Path:
        """All messages of a job, one per line."""
        path = self._state / "errors.txt"
        write_text(path, "".join(f"{message}\n" for message in messages))
        return path

    def _record(self, file: InputFile) -> Path:
        return self._state / "files" / f"{file.output}.json"

    def _state_of(self, file: InputFile) -> dict[str, str]:
        """What changes with an input file, and with its output."""
        return {
            "fingerprint": file.fingerprint,
            "digest": file_digest(self.path / file.output),
        }

    def _remove_partial_outputs(self, files: Sequence[InputFile]) -> None:
        """Remove what a killed process had begun to write: only one that has the lock writes it."""
        outputs = {file.output for file in files}
        for path in self.path.iterdir():
            if is_partial_file(path) and path.name.rsplit(".", 2)[0] in outputs:
                path.unlink()

    def _check_job(self, job: dict[str, Any]) -> None:
        path = self._state / "job.json"
        try:
            known = read_json(path, MEBIBYTE)
        except FileNotFoundError:
            write_text(path, json.dumps(job, indent=1))
            return
        if not isinstance(known, dict):
            raise RegardError(f"{path}: is damaged: choose another folder")
        changed = [name for name in {**known, **job} if known.get(name) != job.get(name)]
        if changed:
            name = sorted(changed)[0]
            raise RegardError(
                f"{self.path}: holds the output of another command ({name} was "
                f"{_shorten(known.get(name))}, now {_shorten(job.get(name))}): choose another "
                "folder"
            )

    def _refuse_links(self) -> None:
        """Somebody else may have made this folder: a link may lead to any file."""
        inside = (
            Path(parent, name)
            for parent, folders, files in os.walk(self._state)
            for name in folders + files
        )
        for path in (self._state, *inside):
            if not is_plain(path):
                raise RegardError(
                    f"{path}: is a link, a pipe or a device, and nothing is written to these in "
                    "a folder of outputs: choose another folder"
                )

    def _refuse_foreign(self, files: Sequence[InputFile]) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise RegardError(
                f"{self.path}: is a file: expected a folder for the output of {len(files)} file"
                f"{'s' * (len(files) != 1)}"
            )
        for file in files:
            if self.path.is_dir() and os.path.samefile(Path(file.path).parent, self.path):
                raise RegardError(
                    f"{self.path}: contains the input {file.path}: choose another folder"
                )
        if not self.path.exists():
            return
        own = {STATE}
        if (self._state / "job.json").exists():
            own |= {file.output for file in files}
            own |= {path.name.removesuffix(".json") for path in self._state.glob("files/*.json")}
        for path in sorted(self.path.iterdir()):
            if path.name not in own and not is_partial_file(path):
                raise RegardError(
                    f"{path}: is not an output of this command: choose a new or empty folder"
                )


def _shorten(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
