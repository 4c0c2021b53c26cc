"""Rows of tables, reduced to the chosen columns: TSV, CSV, JSONL, Parquet, `hf:` data sets, and
examples in memory."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from regard.data.readers.column_layout import table_layout
from regard.data.readers.columns import (
    LABEL,
    Role,
    columns_by_name,
    columns_by_number,
    has_header,
    may_be_header,
)
from regard.data.readers.in_memory import ExamplesInMemory
from regard.data.readers.lines import LINE_LIMIT, lines
from regard.data.readers.sources import Source
from regard.data.readers.summary import Summary
from regard.errors import RegardError, unknown

# A field may be as long as a line, whose length `lines` limits.
csv.field_size_limit(max(csv.field_size_limit(), 2 * LINE_LIMIT))
PEEK = 50
"""Rows that are read ahead to tell a header from an example."""
Row = tuple[str, "tuple[object, ...] | None"]
"""Where a row is, and its values in the order of the roles: () for an empty row, None for one that
is too long."""


def table_rows(
    source: Source, roles: Sequence[Role], form: str, summary: Summary | None = None
) -> Iterator[Row]:
    """The rows of a table; `form` is one of tsv, csv, jsonl, parquet, hub and memory.

    `summary` takes note of the columns.
    """
    summary = Summary() if summary is None else summary
    if form in ("tsv", "csv"):
        return _delimited(source, roles, form, summary)
    if form == "jsonl":
        return _records(source, roles, form, _json_records(source), summary)
    if form == "parquet":
        return _records(source, roles, form, _parquet_records(source), summary)
    if source.examples is not None:
        return _examples(source, source.examples, roles, form, summary)
    from regard.data.readers.hub import hub_records

    return _records(source, roles, form, hub_records(source.name), summary)


def _examples(
    source: Source, examples: ExamplesInMemory, roles: Sequence[Role], form: str, summary: Summary
) -> Iterator[Row]:
    """Examples in memory: records by column name, or rows of as many values as there are roles."""
    rows = examples.rows()
    first = next(rows)
    rows = chain([first], rows)
    if isinstance(first, Mapping):
        records = ((number, row) for number, row in enumerate(rows, 1) if isinstance(row, Mapping))
        yield from _records(source, roles, form, records, summary)
        return
    expected = ", ".join(role.option for role in roles)
    columns: list[int] | None = None
    for number, row in enumerate(rows, 1):
        where = source.where(number)
        if len(row) < len(roles) or len(row) != len(first):
            raise RegardError(f"{where}: {_values(len(row))}: expected ({expected})")
        if columns is None:
            columns = columns_by_number(len(row), roles, where)
            layout = table_layout(form, roles, columns, None)
            summary.layouts[source.name] = replace(layout, chosen=True)
        yield where, tuple(row[i] for i in columns)  # type: ignore[index]


def _values(count: int) -> str:
    return f"{count} value{'s' * (count != 1)}"


def _delimited(source: Source, roles: Sequence[Role], form: str, summary: Summary) -> Iterator[Row]:
    rows: Iterator[tuple[int, list[str] | None]] = (
        _tab_rows(source) if form == "tsv" else _comma_rows(source)
    )
    columns: list[int] | None = None
    width = 0
    while True:
        number, cells = next(rows, (0, None))
        if not number:
            return
        where = f"{source.name}:{number}"
        if not cells:
            yield where, None if cells is None else ()
        elif columns is None:
            width = len(cells)
            ahead = list(islice(rows, PEEK))
            rows = chain(ahead, rows)
            following = [row for _, row in ahead if row]
            named = has_header(cells, roles, following)
            if named:
                columns = columns_by_name(cells, roles, where)
            else:
                columns = columns_by_number(width, roles, where, cells)
                # labels tell more, once all of them are known
                if all(role.option != LABEL.option for role in roles) and may_be_header(
                    cells, roles, following
                ):
                    summary.notes.append(_header_note(where, roles, [cells[i] for i in columns]))
            summary.layouts[source.name] = table_layout(
                form, roles, columns, cells if named else None
            )
            if not named:
                yield where, tuple(cells[i] for i in columns)
        elif len(cells) != width:
            hint = "columns are separated by tabs" if form == "tsv" else "quote fields with commas"
            raise RegardError(
                f"{where}: {_columns(len(cells))}: expected {width}, as in the first line ({hint})"
            )
        else:
            yield where, tuple(cells[i] for i in columns)


def _header_note(where: str, roles: Sequence[Role], names: Sequence[str]) -> str:
    pairs = zip(roles, names, strict=True)
    options = " ".join(f"--{role.option} {name.strip()!r}" for role, name in pairs)
    return (
        f"{where} counts as an example, though it may name columns: if it is a header, choose them "
        f"by name, as in {options}"
    )


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
    # The CSV reader pulls lines from `feed`, one or several per row. `at` is the last line that it
    # took and `long` the too long ones among those of the current row.
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
                f"{source.name}:{start}: not CSV ({error}): is a quote not closed?"
            ) from error
        if long and cells:
            raise RegardError(
                f"{source.name}:{start}: quoted field with a line of more than {LINE_LIMIT:,} bytes"
            )
        if at:
            yield start, None if long else (cells if any(c.strip() for c in cells) else [])
        long.clear()
        start = at + 1


def _records(
    source: Source,
    roles: Sequence[Role],
    form: str,
    records: Iterator[tuple[int, Mapping[str, object] | None]],
    summary: Summary,
) -> Iterator[Row]:
    keys: list[str] | None = None
    for number, record in records:
        where = source.where(number)
        if not record:
            yield where, None if record is None else ()
            continue
        flat = _flat(record)
        if keys is None:
            columns = list(flat)
            indices = columns_by_name(columns, roles, where)
            summary.layouts[source.name] = table_layout(form, roles, indices, columns)
            keys = [columns[i] for i in indices]
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
            raise RegardError(
                f"{where}: not JSON in one line ({error}): expected one object per line"
            ) from error
        if not isinstance(record, dict):
            kind = "an array" if isinstance(record, list) else f"{type(record).__name__}"
            raise RegardError(f"{where}: {kind}: expected one JSON object per line")
        if not record:
            raise RegardError(f"{where}: empty object: expected the columns as its keys")
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
            reason = str(error).splitlines()[0]
            raise RegardError(f"{source.name}: not a Parquet file ({reason})") from error


def _flat(record: Mapping[str, object]) -> dict[str, object]:
    """A record with its nested columns on top: `de`, or `translation.de` if that name is taken."""
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
