"""Examples that Python code holds: lists, columns, data frames, data sets, any iterable.

They take the place of a file name in the options of a run: `ExamplesInMemory` is a text that says
what they are, so that a config can record it, and carries the examples themselves.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.examples import Labelled, Line, Pair, Tagged
from regard.data.readers.hub import with_class_names
from regard.errors import RegardError

MARK = "in memory: "
"""What the description of examples in memory begins with."""
FILE_MARKS = ("hf:", "*", "?", "[", "/", "\\")
"""What only file names contain, if they have no white space."""
Row = Mapping[str, object] | tuple[object, ...]
"""One example: values by column name, or values in the order of the roles."""


class ExamplesInMemory(str):
    """What some examples are, as in "in memory: 5 examples, digest 3fa2b1c09d4e"."""

    name: str
    """The argument that they were given as: data or valid."""
    digest: str
    """The SHA-256 digest of all of them."""
    _rows: Callable[[], Iterable[object]]

    def __new__(
        cls, rows: Callable[[], Iterable[object]], name: str = "data"
    ) -> "ExamplesInMemory":
        """Describe the examples that `rows` gives at each call.

        Args:
            rows: the examples, from the first one, as often as it is called.
            name: the argument that they were given as, for messages.
        """
        total, count = sha256(), 0
        for row in _checked(rows(), name):
            total.update(json.dumps(row, default=_digest, ensure_ascii=True).encode())
            count += 1
        if not count:
            raise RegardError(f"{name}: no examples: expected at least one")
        digest = total.hexdigest()
        examples = "example" if count == 1 else "examples"
        text = super().__new__(cls, f"{MARK}{count:,} {examples}, digest {digest[:12]}")
        text.name, text.digest, text._rows = name, digest, rows
        return text

    def __deepcopy__(self, memo: object) -> "ExamplesInMemory":
        return self

    def rows(self) -> Iterator[Row]:
        """The examples, each as values by column name, or as a tuple."""
        return _checked(self._rows(), self.name)

    def where(self, number: int) -> str:
        """The place of the example with this number, from 1, as Python counts: data[0]."""
        return f"{self.name}[{number - 1}]"


def hold_examples(data: Any, name: str = "data") -> Any:
    """File names as they are; anything else as `ExamplesInMemory`.

    Rows are tuples such as (text, label), records by column name, or single texts; a tuple of
    sequences is columns, as in (texts, labels). Data frames and data sets have named columns.

    Args:
        data: file names, or examples in any of these forms.
        name: the argument that it was given as, for messages.
    """
    if data is None or _names_files(data):
        return data
    return ExamplesInMemory(_repeatable(data, name), name)


def _names_files(data: Any) -> bool:
    """Whether these are file names; a list of texts is not, if none of them is a file."""
    if isinstance(data, (str, PathLike)):
        return True
    if not isinstance(data, (list, tuple)):
        return False
    if not all(isinstance(part, str) for part in data):
        return any(_is_path_or_source(part) for part in data)
    if any(isinstance(part, ExamplesInMemory) for part in data):
        return True
    words = any(len(part.split()) > 1 for part in data)
    return not (len(data) > 1 and words) or any(map(_may_name_file, data))


def _is_path_or_source(part: object) -> bool:
    return isinstance(part, PathLike) or hasattr(part, "fingerprint")


def _may_name_file(text: str) -> bool:
    if len(text.split()) == 1 and any(mark in text for mark in FILE_MARKS):
        return True
    try:
        return text == "-" or Path(text).exists()
    except (OSError, ValueError):
        return False


def _repeatable(data: Any, name: str) -> Callable[[], Iterable[object]]:
    """The examples as something that can be read again and again."""
    if isinstance(data, ExamplesInMemory):
        return data._rows
    if isinstance(data, Mapping):
        return _from_mapping(data, name)
    if hasattr(data, "features") and hasattr(data, "__iter__"):  # a data set of `datasets`
        return lambda: with_class_names(data)
    if hasattr(data, "columns") and hasattr(data, "iloc"):  # a data frame of pandas
        return lambda: _frame_records(data)
    if hasattr(data, "iter_rows") and hasattr(data, "columns"):  # a data frame of polars
        return lambda: data.iter_rows(named=True)
    if hasattr(data, "to_pylist"):  # a table of pyarrow
        return lambda: data.to_pylist()
    if isinstance(data, tuple) and 1 < len(data) < 4 and all(map(_is_column, data)):
        _check_equal([len(column) for column in data], name)
        return lambda: zip(*data, strict=True)
    if not isinstance(data, Iterable):
        raise RegardError(
            f"{name}: {_kind(data)}: expected file names, a list of examples such as "
            "[(text, label), …], columns such as (texts, labels), or a data frame"
        )
    rows = data if isinstance(data, list) else list(data)
    return lambda: rows


def _from_mapping(data: Mapping[Any, Any], name: str) -> Callable[[], Iterable[object]]:
    if any(hasattr(part, "features") for part in data.values()):
        splits = ", ".join(map(str, data))
        raise RegardError(
            f"{name}: several splits ({splits}): expected one, as in {name}=dataset['train']"
        )
    if not all(map(_is_column, data.values())):
        raise RegardError(
            f"{name}: one record: expected a list of records, or a list of values for each column"
        )
    names = [str(column) for column in data]
    _check_equal([len(column) for column in data.values()], name)
    return lambda: (dict(zip(names, row, strict=True)) for row in zip(*data.values(), strict=True))


def _is_column(part: object) -> bool:
    text = isinstance(part, (str, bytes, Mapping))
    return not text and hasattr(part, "__len__") and hasattr(part, "__iter__")


def _check_equal(sizes: Sequence[int], name: str) -> None:
    if len(set(sizes)) > 1:
        counts = ", ".join(f"{size:,}" for size in sizes)
        raise RegardError(f"{name}: its columns have different lengths: {counts}")


def _frame_records(frame: Any) -> Iterator[Mapping[str, object]]:
    names = [str(column) for column in frame.columns]
    columns = (frame.iloc[:, i] for i in range(len(names)))
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _checked(rows: Iterable[object], name: str) -> Iterator[Row]:
    """The examples as records or tuples of plain values; a row of another kind is an error."""
    named: bool | None = None
    for index, row in enumerate(rows):
        plain = _row(row)
        if plain is None or (named is not None and isinstance(plain, Mapping) != named):
            kind = "records by column name" if named else "tuples such as (text, label), or records"
            raise RegardError(f"{name}[{index}]: {_kind(row)}: expected {kind}")
        named = isinstance(plain, Mapping)
        yield plain


def _row(row: object) -> Row | None:
    if isinstance(row, str):
        return (row,)
    if isinstance(row, Mapping):
        return {str(column): _plain(value) for column, value in row.items()}
    if isinstance(row, (Pair, Labelled, Tagged, Line)):
        return _of_example(row)
    if isinstance(row, list) and row and all(map(_is_tagged_word, row)):
        return tuple(_plain(list(part)) for part in zip(*row, strict=True))  # [(word, tag), …]
    if isinstance(row, (list, tuple)):
        return tuple(map(_plain, row))
    return None


def _of_example(row: Pair | Labelled | Tagged | Line) -> Row:
    if isinstance(row, Pair):
        return (row.source, row.target)
    if isinstance(row, Labelled):
        return (row.text, list(row.labels))
    if isinstance(row, Tagged):
        words = row.words if isinstance(row.words, np.ndarray) else list(row.words)
        return (words, list(row.tags))
    return (row.text,) if row.condition is None else (row.text, row.condition)


def _is_tagged_word(part: object) -> bool:
    return isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str)


def _plain(value: object) -> Any:
    """The value of a cell: text, number, None, a list of such, or an array of vectors."""
    if type(value).__name__ in ("NAType", "NaTType"):  # missing, in pandas
        return None
    if hasattr(value, "detach"):
        value = np.asarray(value.detach().cpu())
    if isinstance(value, np.ndarray):
        vectors = value.ndim > 1 or value.dtype.kind == "f"
        return value if vectors and value.dtype.kind in "fiub" else [*map(_plain, value.tolist())]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (set, frozenset)):
        return sorted(map(str, value))
    if isinstance(value, (list, tuple)):
        return [*map(_plain, value)]
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    return value


def _digest(value: object) -> str:
    if isinstance(value, np.ndarray):
        numbers = np.ascontiguousarray(value)
        return f"{value.dtype}{value.shape}{sha256(numbers.tobytes()).hexdigest()}"
    return f"{type(value).__name__} {value}"


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
