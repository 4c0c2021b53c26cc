"""Tables: TSV, CSV, JSONL, Parquet and `hf:` data sets, as rows of the columns asked for."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from regard.data.columns import Role, by_name, by_number, has_header
from regard.data.lines import LINE_LIMIT, lines
from regard.data.sources import Source
from regard.errors import RegardError, unknown

# a field may be as long as a line, whose length `lines` minds
csv.field_size_limit(max(csv.field_size_limit(), 2 * LINE_LIMIT))
Row = tuple[str, "tuple[object, ...] | None"]
"""Where a row stands, and the values of the roles in order: none in an empty row, None if the row
is too long to be taken."""


def table(source: Source, roles: Sequence[Role], form: str) -> Iterator[Row]:
    """The rows of a table of format `form`: tsv, csv, jsonl, parquet or hub."""
    if form in ("tsv", "csv"):
        return _delimited(source, roles, form)
    if form == "jsonl":
        return _records(source, roles, _json_records(source))
    if form == "parquet":
        return _records(source, roles, _parquet_records(source))
    from regard.data.hub import hub_records

    return _records(source, roles, hub_records(source.name))


def _delimited(source: Source, roles: Sequence[Role], form: str) -> Iterator[Row]:
    rows = _tab_rows(source) if form == "tsv" else _comma_rows(source)
    places: list[int] | None = None
    width = 0
    for number, cells in rows:
        where = f"{source.name}:{number}"
        if not cells:
            yield where, None if cells is None else ()
        elif places is None:
            width = len(cells)
            if has_header(cells, roles):
                places = by_name(cells, roles, where)
            else:
                places = by_number(width, roles, where)
                yield where, tuple(cells[i] for i in places)
        elif len(cells) != width:
            raise RegardError(
                f"{where}: {_columns(len(cells))} where the first line has {width}: "
                f"{'tabs separate columns' if form == 'tsv' else 'quote fields with commas'}"
            )
        else:
            yield where, tuple(cells[i] for i in places)


def _tab_rows(source: Source) -> Iterator[tuple[int, list[str] | None]]:
    for number, text in lines(source):
        if text is None:
            yield number, None
        else:
            yield number, text.split("\t") if text.strip() else []


def _comma_rows(source: Source) -> Iterator[tuple[int, list[str] | None]]:
    """Rows of a CSV file (RFC 4180): quoted fields may hold commas, quotes and newlines."""
    numbered = lines(source)
    number, first = next(numbered, (0, ""))
    separator = ";" if first and ";" in first and "," not in first else ","
    long: list[int] = []
    at = 0

    def feed() -> Iterator[str]:
        nonlocal at
        for at, text in chain([(number, first)], numbered):
            if text is None:
                long.append(at)
            yield "\n" if text is None else text + "\n"

    reader = csv.reader(feed(), delimiter=separator, strict=True)
    start = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise RegardError(
                f"{source.name}:{start}: not CSV ({error}): is a quote left open?"
            ) from error
        if long and cells:
            raise RegardError(f"{source.name}:{start}: a quoted field is over {LINE_LIMIT} bytes")
        if at:
            yield start, None if long else (cells if any(c.strip() for c in cells) else [])
        long.clear()
        start = at + 1


def _records(
    source: Source,
    roles: Sequence[Role],
    records: Iterator[tuple[int, Mapping[str, object] | None]],
) -> Iterator[Row]:
    keys: list[str] | None = None
    for number, record in records:
        where = f"{source.name}:{number}"
        if not record:
            yield where, None if record is None else ()
            continue
        flat = _flat(record)
        if keys is None:
            columns = list(flat)
            keys = [columns[i] for i in by_name(columns, roles, where)]
        try:
            yield where, tuple(flat[key] for key in keys)
        except KeyError as error:
            raise RegardError(f"{where}: {unknown('column', error.args[0], flat)}") from error


def _json_records(source: Source) -> Iterator[tuple[int, Mapping[str, object] | None]]:
    for number, text in lines(source):
        if text is None or not text.strip():
            yield number, None if text is None else {}
            continue
        where = f"{source.name}:{number}"
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RegardError(f"{where}: not JSON ({error}): one object a line") from error
        if not isinstance(record, dict):
            kind = "an array" if isinstance(record, list) else f"{type(record).__name__}"
            raise RegardError(f"{where}: {kind} where one JSON object a line was expected")
        if not record:
            raise RegardError(f"{where}: an object without any key")
        yield number, record


def _parquet_records(source: Source) -> Iterator[tuple[int, Mapping[str, object] | None]]:
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow import parquet

    with source.seekable() as path:
        try:
            with parquet.ParquetFile(path) as file:
                number = 0
                for batch in file.iter_batches(batch_size=1024):
                    for record in batch.to_pylist():
                        number += 1
                        yield number, record
        except (pa.ArrowException, OSError) as error:
            what = str(error).splitlines()[0]
            raise RegardError(f"{source.name}: not a Parquet file ({what})") from error


def _flat(record: Mapping[str, object]) -> dict[str, object]:
    """A record whose nested columns have names of their own: `de`, or `translation.de` if taken."""
    if not any(isinstance(value, dict) for value in record.values()):
        return dict(record)
    flat: dict[str, object] = {k: v for k, v in record.items() if not isinstance(v, dict)}
    for key, value in record.items():
        if isinstance(value, dict):
            for inner, part in value.items():
                flat[inner if inner not in flat else f"{key}.{inner}"] = part
    return flat


def _columns(count: int) -> str:
    return f"{count} column{'s' * (count > 1)}"
