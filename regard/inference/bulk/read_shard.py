"""The rows of a shard: the texts that a model reads, and what is wrong with the others."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from regard.data.readers.cells import text_cell
from regard.data.readers.columns import TEXT
from regard.data.readers.lines import LINE_LIMIT, decode, raw_lines
from regard.errors import RegardError
from regard.inference.bulk.shards import InputFile, Shard

UNREADABLE = "\ufffd".encode()
"""Replaces NUL, which is in no text: a stray one does not cost the line."""
PEEK = 1000
"""Lines in which a first record is looked for, to learn the names of columns."""


@dataclass(frozen=True)
class InputRow:
    """One line of text, or one record of a table."""

    number: int
    texts: tuple[str, ...]
    """One text, or a source and its target; empty ones where there is an error."""
    record: dict[str, Any]
    """The columns of a table; of a line the texts by their names."""
    error: str | None = None


def read_rows(shard: Shard, names: tuple[str, ...]) -> list[InputRow]:
    """All rows of a shard; `names` is what the texts of a line are called."""
    numbers = range(shard.first, shard.first + shard.count)
    if shard.file.form == "parquet":
        rows = [_table_row(shard.file, n, r) for n, r in _parquet_records(shard)]
    else:
        lines = list(_lines(shard))
        read = _json_row if shard.file.form == "jsonl" else _text_row
        rows = [read(shard.file, n, line, names) for n, line in zip(numbers, lines, strict=False)]
    if len(rows) != shard.count:
        raise RegardError(
            f"{shard.file.path}: changed while it was read: run the same command again"
        )
    return rows


def _lines(shard: Shard) -> Iterator[bytes | None]:
    with shard.file.source.open() as stream:
        if shard.offset:
            stream.seek(shard.offset)
            yield from islice(raw_lines(stream), shard.count)
        else:
            yield from islice(raw_lines(stream), shard.first - 1, shard.first - 1 + shard.count)


def _text(file: InputFile, number: int, raw: bytes | None) -> str:
    if raw is None:
        raise RegardError(f"{file.path}:{number}: line of more than {LINE_LIMIT:,} bytes")
    return decode(raw.replace(b"\0", UNREADABLE), file.path, number, number == 1)


def _text_row(file: InputFile, number: int, raw: bytes | None, names: tuple[str, ...]) -> InputRow:
    try:
        text = _text(file, number, raw)
        if len(names) == 1:
            return InputRow(number, (text,), {names[0]: text})
        cells = tuple(text.split("\t")) if text.strip() else ("",) * len(names)
        if len(cells) != len(names):
            raise RegardError(
                f"{file.path}:{number}: {len(cells)} columns: expected {', tab, '.join(names)}"
            )
        return InputRow(number, cells, dict(zip(names, cells, strict=True)))
    except RegardError as error:
        return InputRow(number, ("",) * len(names), dict.fromkeys(names, ""), str(error))


def _json_row(file: InputFile, number: int, raw: bytes | None, names: tuple[str, ...]) -> InputRow:
    where = f"{file.path}:{number}"
    empty = ("",) * len(names)
    try:
        text = _text(file, number, raw)
        if not text.strip():
            return InputRow(number, empty, {})
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RegardError(f"{where}: not JSON ({error})") from error
        if not isinstance(record, dict):
            raise RegardError(f"{where}: not a JSON object")
    except RegardError as error:
        return InputRow(number, empty, {}, str(error))
    return _table_row(file, number, record)


def _table_row(file: InputFile, number: int, record: dict[str, Any]) -> InputRow:
    where = f"{file.path}:{number}"
    texts = []
    try:
        for name in file.columns:
            if name not in record:
                raise RegardError(f"{where}: no column {name!r}")
            text = text_cell(record[name], TEXT.choose(name), where)
            if text is None:
                raise RegardError(f"{where}: text of more than {LINE_LIMIT:,} characters")
            texts.append(" ".join(text.splitlines()))
    except RegardError as error:
        return InputRow(number, ("",) * len(file.columns), record, str(error))
    return InputRow(number, tuple(texts), record)


def _parquet_records(shard: Shard) -> Iterator[tuple[int, dict[str, Any]]]:
    """Row groups that end before the shard are skipped."""
    table = parquet_rows(shard)
    return enumerate(table.to_pylist(), shard.first)


def parquet_rows(shard: Shard) -> Any:
    """The rows of a shard as an Arrow table, with the types that the file has."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    skip, need = shard.first - 1, shard.count
    batches = []
    try:
        with parquet.ParquetFile(shard.file.path) as file:
            groups = list(range(file.metadata.num_row_groups))
            while groups and file.metadata.row_group(groups[0]).num_rows <= skip:
                skip -= file.metadata.row_group(groups.pop(0)).num_rows
            for batch in file.iter_batches(batch_size=10_000, row_groups=groups):
                part = batch.slice(min(skip, len(batch)), need)
                skip -= min(skip, len(batch))
                need -= len(part)
                batches.append(part)
                if not need:
                    break
            return pa.Table.from_batches(batches, file.schema_arrow)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise RegardError(f"{shard.file.path}: not a Parquet file ({reason})") from error


def parquet_columns(file: InputFile) -> list[str]:
    """The names of the columns of a Parquet file."""
    from pyarrow import ArrowException, parquet

    try:
        return [str(name) for name in parquet.read_schema(file.path).names]
    except (ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise RegardError(f"{file.path}: not a Parquet file ({reason})") from error


def json_record(file: InputFile) -> dict[str, Any]:
    """The first record of a JSONL file; empty if it has none, or a broken one."""
    with file.source.open() as stream:
        for number, raw in enumerate(islice(raw_lines(stream), PEEK), 1):
            row = _json_row(file, number, raw, ())
            if row.record:
                return row.record
    return {}
