"""A run on many files: which files there are, what is left to do, and who does it."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from regard.data.readers.columns import Role, columns_by_name
from regard.data.readers.sources import resolve
from regard.errors import OptionError, RegardError
from regard.inference.bulk.line_work import LineWork
from regard.inference.bulk.local_workers import process_locally
from regard.inference.bulk.output_folder import OutputFolder
from regard.inference.bulk.output_formats import ERROR, OUTPUT_FORMATS
from regard.inference.bulk.part_files import Summary, add_summary, is_whole_part
from regard.inference.bulk.read_shard import json_record, parquet_columns
from regard.inference.bulk.shards import (
    SHARD_LINES,
    InputFile,
    Shard,
    divide,
    file_form,
    is_compressed,
)
from regard.progress import stage, track
from regard.training import RunFolder
from regard.verified_files import file_digest


@dataclass(frozen=True)
class Engine:
    """Who processes shards."""

    on: str = "processes"
    """processes or ray."""
    jobs: int | None = None
    """Number of workers (default: one per CPU)."""
    ray_address: str | None = None
    threads: int = 1
    """Threads of each worker."""
    shard_lines: int = SHARD_LINES
    """Lines that a worker processes before it writes them."""

    def process(
        self, settings: dict[str, Any], jobs: Sequence[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """The answers to all jobs, in the order in which they are done."""
        if self.on == "ray":
            from regard.inference.bulk.ray_workers import process_on_ray

            return process_on_ray(settings, jobs, self.jobs, self.ray_address)
        return process_locally(settings, jobs, self.jobs or os.cpu_count() or 1)


def process_files(
    work: LineWork,
    data: Sequence[str] | str,
    out: Path,
    engine: Engine,
    *,
    output_format: str | None = None,
    roles: Sequence[Role] = (),
    log: Callable[[str], None] = lambda line: None,
) -> tuple[Summary, Path | None]:
    """Process all files; the counts and errors of all of them, and a file with the errors.

    Args:
        work: what is done with each line.
        data: names of files, or patterns.
        out: the folder for the output files.
        engine: who does it.
        output_format: lines, jsonl or parquet (default: that of the input; jsonl with details).
        roles: the columns of tables that are read, one per text of a line.
        log: called with lines for the user.
    """
    files = [_with_columns(file, work, roles) for file in input_files(data, work, output_format)]
    kind = output_format or _common_form(files, work)
    folder = OutputFolder(out, kind)
    run = RunFolder(Path(work.run))
    job = asdict(replace(work, device="")) | {
        "run": file_digest(run.model),
        "texts": list(work.texts),
        "output_format": kind,
        "columns": [role.chosen for role in roles],
    }
    settings = {"work": asdict(work), "format": kind, "threads": engine.threads}
    total: Summary = {"lines": 0, "truncated": 0, "failed": 0, "errors": []}
    with folder.begin(job, files):
        left = []
        for file in files:
            summary = folder.finished(file)
            if summary is None:
                left.append(file)
            else:
                add_summary(total, summary)
        if len(left) < len(files):
            log(f"{len(files) - len(left)} of {len(files)} files were finished before")
        for summary in _process(folder, left, settings, engine, log):
            add_summary(total, summary)
        folder.remove_parts()
        errors = folder.write_errors(total["errors"]) if total["failed"] else None
    return total, errors


def _process(
    folder: OutputFolder,
    files: Sequence[InputFile],
    settings: dict[str, Any],
    engine: Engine,
    log: Callable[[str], None],
) -> Iterator[Summary]:
    """Process files; the summary of each as it is finished."""
    shards = {
        file: divide(file, engine.shard_lines)
        for file in track(files, "counting lines", unit="files")
    }
    waiting: list[Shard] = []
    missing = dict.fromkeys(files, 0)
    done = 0
    for shard in (shard for file in files for shard in shards[file]):
        if is_whole_part(folder.part_path(shard)):
            done += shard.count
        else:
            waiting.append(shard)
            missing[shard.file] += 1
    if done:
        log(f"{done:,} lines were finished before")
    for file in files:
        if not missing[file]:
            yield folder.finish(file, shards[file])
    jobs = [
        {"number": number, "shard": shard.record(), "part": str(folder.part_path(shard).absolute())}
        for number, shard in enumerate(waiting)
    ]
    total = done + sum(shard.count for shard in waiting)
    verb = {"predictions": "predicting", "scores": "scoring", "alignments": "aligning"}
    with stage(verb[settings["work"]["kind"]], total, "lines") as progress:
        progress.advance(done)
        for answer in engine.process(settings, jobs) if jobs else ():
            file = waiting[answer["number"]].file
            progress.advance(answer["lines"])
            missing[file] -= 1
            if not missing[file]:
                yield folder.finish(file, shards[file])


def input_files(
    data: Sequence[str] | str, work: LineWork, output_format: str | None
) -> list[InputFile]:
    """The files, with names for their outputs; two of the same name are an error."""
    files, inputs = [], dict[str, str]()
    for source in resolve(data):
        if source.path is None or not source.path.is_file():
            raise RegardError(f"{source.name}: expected files for --jobs and --on")
        name = source.path.name
        compressed = is_compressed(source.path)
        if source.path.suffix.lower() == ".gz":
            name = source.path.stem
        form = file_form(source)
        ending = OUTPUT_FORMATS[output_format or _form(form, work)].ending
        if form == "parquet" and compressed:
            raise RegardError(f"{source.name}: Parquet in gzip cannot be read: decompress it")
        if ending and Path(name).suffix.lower() != ending:
            name = Path(name).stem + ending
        elif not ending and form != "lines":
            name = Path(name).stem + ".txt"
        if name in inputs:
            raise RegardError(
                f"{inputs[name]} and {source.name} would both be written as {name}: rename one, "
                "or run the command for each"
            )
        inputs[name] = source.name
        files.append(
            InputFile(str(source.path.resolve()), form, compressed, name, str(source.fingerprint()))
        )
    return files


def _form(form: str, work: LineWork) -> str:
    return "jsonl" if form == "lines" and work.details else form


def _common_form(files: Sequence[InputFile], work: LineWork) -> str:
    """The format of the output; files of several formats need a choice."""
    forms = sorted({_form(file.form, work) for file in files})
    if len(forms) > 1:
        raise OptionError(
            "format", f"the files are {' and '.join(forms)}: choose one of {', '.join(forms)}"
        )
    return forms[0]


def _with_columns(file: InputFile, work: LineWork, roles: Sequence[Role]) -> InputFile:
    """A table with the columns that are read, found by the names in its first record."""
    if file.form == "lines":
        return file
    names = parquet_columns(file) if file.form == "parquet" else list(json_record(file))
    for name in (work.column, ERROR):
        if name in names:
            raise RegardError(f"{file.path}: has a column {name!r} already: rename it")
    if not names:
        return replace(file, columns=tuple(role.option for role in roles))
    indices = columns_by_name(names, list(roles), f"{file.path}:1")
    return replace(file, columns=tuple(names[i] for i in indices))
