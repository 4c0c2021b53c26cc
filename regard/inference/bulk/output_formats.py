"""Results as lines of text, JSON records or Parquet: the bytes of a shard, and the whole file."""

import datetime
import decimal
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import pyarrow as pa  # type: ignore[import-untyped]

from regard.errors import RegardError
from regard.inference.bulk.line_work import LineResult, LineWork
from regard.inference.bulk.part_files import open_part
from regard.inference.bulk.read_shard import InputRow, parquet_rows
from regard.inference.bulk.shards import Shard
from regard.inference.line_records import as_json_line

ERROR = "error"
"""The column of tables that says what is wrong with a row; null where nothing is."""
DETAILS = "details"
"""The column of Parquet files with all details, as JSON."""
TYPES = {"output": pa.string(), "log_probability": pa.float64(), "links": pa.string()}
Rows = Sequence[tuple[InputRow, LineResult]]


@dataclass(frozen=True)
class OutputFormat:
    """How results are stored."""

    ending: str
    """Of the file's name; empty: as in the input."""
    encode: Callable[[Shard, LineWork, Rows], bytes]
    """The bytes of a shard."""
    join: Callable[[Sequence[Path], IO[bytes]], None]
    """Writes a file from the bytes of all its shards, in order."""


def _encode_lines(shard: Shard, work: LineWork, rows: Rows) -> bytes:
    lines = (line for _, result in rows for line in result.lines)
    return b"".join(line.encode("utf-8", "replace") + b"\n" for line in lines)


def _encode_jsonl(shard: Shard, work: LineWork, rows: Rows) -> bytes:
    table = shard.file.form != "lines"
    return b"".join(
        as_json_line(_record(work, row, result, table)).encode("utf-8", "replace") + b"\n"
        for row, result in rows
    )


def _record(work: LineWork, row: InputRow, result: LineResult, table: bool) -> dict[str, Any]:
    """The columns of a row and the new ones; those of a user's table are not replaced."""
    if result.error is not None:
        return {**_plain(row.record), ERROR: result.error}
    new = result.details or {work.column: result.value}
    return dict(_plain(row.record)) | {
        name: value for name, value in new.items() if not table or name not in row.record
    }


def _plain(value: Any) -> Any:
    """Values of a Parquet file as JSON has them."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | datetime.timedelta):
        return str(value)
    if isinstance(value, bytes):
        raise RegardError("a column of bytes cannot be written as JSON: choose --format parquet")
    return value


def _encode_parquet(shard: Shard, work: LineWork, rows: Rows) -> bytes:
    if shard.file.form == "parquet":
        table = parquet_rows(shard)
    else:
        try:
            names = dict.fromkeys(name for row, _ in rows for name in row.record)
            columns = {name: pa.array([row.record.get(name) for row, _ in rows]) for name in names}
            table = pa.table(columns)
        except pa.ArrowException as error:
            raise RegardError(
                f"{shard.file.path}: lines {shard.first} to {shard.first + shard.count - 1} cannot "
                f"be a table ({str(error).splitlines()[0]}): choose --format jsonl"
            ) from error
    results = [result for _, result in rows]
    values = pa.array([r.value if r.error is None else None for r in results], TYPES[work.column])
    table = table.append_column(work.column, values)
    if work.details:
        details = [as_json_line(r.details) if r.details else None for r in results]
        table = table.append_column(DETAILS, pa.array(details, pa.string()))
    table = table.append_column(ERROR, pa.array([r.error for r in results], pa.string()))
    buffer = BytesIO()
    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)
    return buffer.getvalue()


def _join_bytes(parts: Sequence[Path], output: IO[bytes]) -> None:
    for path in parts:
        with open_part(path) as (_, content):
            shutil.copyfileobj(content, output, 1 << 20)


def _join_parquet(parts: Sequence[Path], output: IO[bytes]) -> None:
    from pyarrow import parquet

    schemas = []
    for path in parts:
        with open_part(path) as (_, content):
            schemas.append(pa.ipc.open_stream(content).schema)
    schema = pa.unify_schemas(schemas, promote_options="permissive") if schemas else pa.schema([])
    with parquet.ParquetWriter(output, schema) as writer:
        for path in parts:
            with open_part(path) as (_, content):
                writer.write_table(_conform(pa.ipc.open_stream(content).read_all(), schema))


def _conform(table: Any, schema: Any) -> Any:
    """The table with the columns of all parts of a file; those that it lacks are null."""
    columns = [
        table.column(column.name).cast(column.type)
        if column.name in table.column_names
        else pa.nulls(len(table), column.type)
        for column in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


OUTPUT_FORMATS = {
    "lines": OutputFormat("", _encode_lines, _join_bytes),
    "jsonl": OutputFormat(".jsonl", _encode_jsonl, _join_bytes),
    "parquet": OutputFormat(".parquet", _encode_parquet, _join_parquet),
}
"""Formats of output files by name."""
