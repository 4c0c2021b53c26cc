"""The trace document: what a model read, what it produced, and where it looked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError, unknown
from regard.notebook_cards import shorten
from regard.trace.json_fields import Field
from regard.trace.look import Look, equal_fields
from regard.trace.weight_codec import ENCODING, pack, unpack
from regard.verified_files import open_named

if TYPE_CHECKING:
    from regard.show import Drawing

SCHEMA = "regard.trace/2"
"""The name and version of the format that every document carries."""

MAX_BYTES = 256 * 2**20
"""Longer documents are not read."""
MAX_WEIGHTS = 2**26
"""Weights of all looks together: half a gigabyte in memory."""
MAX_TOKENS, MAX_LOOKS, MAX_SIDES, MAX_LINKS = 2**16, 2**12, 64, 2**22
PACK_THRESHOLD = 1024
"""Looks with at least this many weights are packed (default)."""


@dataclass(frozen=True)
class Token:
    """One token of a side, with its offsets in the side's text."""

    text: str
    start: int = 0
    end: int = 0
    special: bool = False
    """Whether it stands for no text, such as an end-of-sentence mark."""
    word: int | None = None
    """Index of its word, split at white space; None for special tokens."""


@dataclass(frozen=True)
class Side:
    """A text that looks or is looked at, such as source, target or text."""

    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, eq=False)
class Attribution:
    """How much each token of a side mattered, according to one method."""

    method: str
    side: str
    values: NDArray[np.float64]
    """[n], one per token."""
    output: int | None = None
    """The output position that is explained; None for the whole output."""

    __eq__ = equal_fields


@dataclass(frozen=True)
class Alternative:
    """A token that was likely at one position of the output."""

    text: str
    probability: float


@dataclass(frozen=True, eq=False)
class Trace:
    """One text through one model, with every attention map on the way."""

    task: str
    sides: Mapping[str, Side]
    """By name; each look names its query side and its key side."""
    looks: tuple[Look, ...]
    output: str
    prediction: Mapping[str, Any] = field(default_factory=dict)
    """Plain values, such as label probabilities, log-probability, n-best list."""
    alternatives: tuple[tuple[Alternative, ...], ...] = ()
    """The most likely tokens at each output position, most likely first."""
    attributions: tuple[Attribution, ...] = ()
    alignment: tuple[tuple[int, int], ...] | None = None
    """Word links (source, target), counted from 0."""
    card: Mapping[str, Any] = field(default_factory=dict)
    """What the model is: name, config, size, training data."""

    __eq__ = equal_fields

    def to_json(self, pack_threshold: int = PACK_THRESHOLD, bits: int = 16) -> str:
        """The trace as a JSON document of schema `regard.trace/2`.

        Looks of at least `pack_threshold` weights are packed (`regard.trace.weight_codec.pack`);
        with 16 bits, weights between 0 and 1 are off by at most 7.7e-6. Smaller looks are exact.
        """
        return json.dumps(
            to_document(self, pack_threshold, bits), allow_nan=False, separators=(",", ":")
        )

    @staticmethod
    def from_json(text: str | bytes, file: str = "trace") -> "Trace":
        """Read a document; raises RegardError with the path of the first wrong value."""
        return _trace(_parse(text, file))

    @staticmethod
    def read(path: str | PathLike[str]) -> "Trace":
        """Read a trace from a JSON file."""
        try:
            with open_named(Path(path)) as stream:
                return Trace.from_json(stream.read(MAX_BYTES + 1), str(path))
        except OSError as error:
            raise RegardError(f"{path}: cannot be read ({error.strerror})") from error

    def __getitem__(self, key: str | tuple[str, int | None, int | None]) -> Any:
        """The looks of a name, or one of them: `trace["decoder.source"]`, `trace[name, 0, 1]`."""
        if not isinstance(key, tuple):
            return self._looks_named(key)
        name, layer, head = key
        looks = self._looks_named(name)
        for look in looks:
            if (look.layer, look.head) == (layer, head):
                return look
        places = ", ".join(f"({look.layer}, {look.head})" for look in looks)
        raise KeyError(f"no look {name!r} of layer {layer} and head {head}; there are {places}")

    def stack(self, name: str) -> NDArray[np.float64]:
        """The weights of all looks of a name, [layers, heads, q, k].

        Layers and heads are in order, those that have no number first. Heads that a layer lacks,
        and looks of different sizes, are an error.
        """
        looks = self._looks_named(name)
        by_layer: dict[int, dict[int, Look]] = {}
        for look in looks:
            layer, head = (-1 if n is None else n for n in (look.layer, look.head))
            by_layer.setdefault(layer, {})[head] = look
        heads = {tuple(sorted(layer)) for layer in by_layer.values()}
        shapes = {look.weights.shape for look in looks}
        if len(heads) > 1 or len(shapes) > 1:
            differing = "numbers of heads" if len(heads) > 1 else f"shapes {sorted(shapes)}"
            raise ValueError(f"looks {name!r} have different {differing}: use trace[{name!r}]")
        return np.array(
            [
                [look.weights for _, look in sorted(layer.items())]
                for _, layer in sorted(by_layer.items())
            ]
        )

    def _looks_named(self, name: str) -> tuple[Look, ...]:
        looks = tuple(look for look in self.looks if look.name == name)
        if not looks:
            raise KeyError(unknown("look", name, dict.fromkeys(look.name for look in self.looks)))
        return looks

    def __repr__(self) -> str:
        read = next(iter(self.sides.values())).text if self.sides else ""
        names = list(dict.fromkeys(look.name for look in self.looks))
        count = "1 look" if len(self.looks) == 1 else f"{len(self.looks)} looks"
        looks = f"{count} ({', '.join(names)})" if names else "no looks"
        return f"Trace({self.task}: {shorten(read, 60)!r} → {shorten(self.output, 60)!r}, {looks})"

    def show(self, to: str | PathLike[str] | None = None, **options: Any) -> "Drawing":
        """Show it here, or write a file whose name ends in html, svg, png or json."""
        from regard.show import show

        return show(self, to, **options)

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()


def to_document(
    trace: Trace, pack_threshold: int = PACK_THRESHOLD, bits: int = 16
) -> dict[str, Any]:
    """The trace as plain values, ready for JSON."""
    return {
        "schema": SCHEMA,
        "version": _version(),
        "task": trace.task,
        "sides": {
            name: {"text": side.text, "tokens": [_token_record(token) for token in side.tokens]}
            for name, side in trace.sides.items()
        },
        "looks": [_look_record(look, trace.sides, pack_threshold, bits) for look in trace.looks],
        "output": trace.output,
        "prediction": _plain(trace.prediction),
        "alternatives": [
            [{"text": token.text, "probability": float(token.probability)} for token in position]
            for position in trace.alternatives
        ],
        "attributions": [
            {
                "method": attribution.method,
                "side": attribution.side,
                "values": np.asarray(attribution.values, dtype=np.float64).tolist(),
                "output": attribution.output,
            }
            for attribution in trace.attributions
        ],
        "alignment": None if trace.alignment is None else [list(link) for link in trace.alignment],
        "card": _plain(trace.card),
    }


def _version() -> str | None:
    """The installed version of Regard; None where it runs from a source folder."""
    try:
        return version("regard")
    except PackageNotFoundError:
        return None


def _token_record(token: Token) -> dict[str, Any]:
    record: dict[str, Any] = {"text": token.text, "start": token.start, "end": token.end}
    if token.special:
        record["special"] = True
    if token.word is not None:
        record["word"] = token.word
    return record


def _look_record(
    look: Look, sides: Mapping[str, Side], pack_threshold: int, bits: int
) -> dict[str, Any]:
    """One look; the words of its sides are not written a second time."""
    record: dict[str, Any] = {
        "name": look.name,
        "query_side": look.query_side,
        "key_side": look.key_side,
    }
    for name, value in (("layer", look.layer), ("head", look.head), ("notes", look.notes)):
        if value or value == 0:
            record[name] = value
    for name, side, words in (
        ("queries", look.query_side, look.queries),
        ("keys", look.key_side, look.keys),
    ):
        if side not in sides or tuple(token.text for token in sides[side].tokens) != words:
            record[name] = list(words)
    large = look.weights.size >= pack_threshold
    record["weights"] = pack(look.weights, bits) if large else look.weights.tolist()
    return record


def _plain(value: Any) -> Any:
    """The value with Python's own numbers instead of numpy's, and lists instead of tuples."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def _parse(text: str | bytes, file: str) -> Field:
    if len(text) > MAX_BYTES:
        raise RegardError(f"{file}: longer than the {MAX_BYTES // 2**20} MB that a trace may have")

    def refuse(constant: str) -> None:
        raise RegardError(f"{file}: holds {constant}, which is not a JSON number")

    try:
        document = Field(json.loads(text, parse_constant=refuse), file)
    except json.JSONDecodeError as error:
        raise RegardError(f"{file}:{error.lineno}: not JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:
        raise RegardError(f"{file}: not readable as JSON ({error})") from None
    _check_schema(document)
    return document


def _check_schema(document: Field) -> None:
    schema = document.value.get("schema") if isinstance(document.value, dict) else None
    if schema == SCHEMA:
        return
    if isinstance(schema, str) and schema.startswith("regard.trace/"):
        raise RegardError(
            f"{document.file}: a trace of schema {schema!r:.60}, which this version does not read "
            f"(expected {SCHEMA!r}): make the trace again with the model it came from"
        )
    raise RegardError(
        f"{document.file}: not a trace: expected schema {SCHEMA!r}, got {schema!r:.60}"
    )


_TRACE_FIELDS = (
    *("schema", "version", "task", "sides", "looks", "output", "prediction", "alternatives"),
    *("attributions", "alignment", "card"),
)
_LOOK_FIELDS = (
    *("name", "layer", "head", "query_side", "key_side", "queries", "keys", "notes", "weights"),
)


def _trace(document: Field) -> Trace:
    document.check_names(*_TRACE_FIELDS)
    sides = {name: _side(side) for name, side in document.required("sides").entries(MAX_SIDES)}
    alignment = document.optional("alignment")
    return Trace(
        task=document.required("task").string(),
        sides=sides,
        looks=_looks(document.required("looks"), sides),
        output=document.required("output").string(),
        prediction=_plain_object(document.optional("prediction")),
        alternatives=tuple(
            tuple(_alternative(token) for token in position.items(MAX_TOKENS))
            for position in _optional_items(document.optional("alternatives"), MAX_TOKENS)
        ),
        attributions=tuple(
            _attribution(record, sides)
            for record in _optional_items(document.optional("attributions"), MAX_LOOKS)
        ),
        alignment=tuple(map(_link, alignment.items(MAX_LINKS))) if alignment else None,
        card=_plain_object(document.optional("card")),
    )


def _optional_items(field: Field, limit: int) -> list[Field]:
    return field.items(limit) if field else []


def _plain_object(field: Field) -> Mapping[str, Any]:
    """The object as it stands, whatever it holds; empty where it is missing."""
    if not field:
        return {}
    field.entries(MAX_TOKENS)  # raises unless it is an object of bounded size
    value: Mapping[str, Any] = field.value
    return value


def _side(record: Field) -> Side:
    record.check_names("text", "tokens")
    tokens = tuple(_token(token) for token in record.required("tokens").items(MAX_TOKENS))
    return Side(record.required("text").string(), tokens)


def _token(record: Field) -> Token:
    record.check_names("text", "start", "end", "special", "word")
    special = record.optional("special")
    return Token(
        text=record.required("text").string(),
        start=_optional_integer(record.optional("start")) or 0,
        end=_optional_integer(record.optional("end")) or 0,
        special=bool(special) and special.boolean(),
        word=_optional_integer(record.optional("word")),
    )


def _optional_integer(field: Field) -> int | None:
    return field.integer() if field else None


def _looks(records: Field, sides: Mapping[str, Side]) -> tuple[Look, ...]:
    looks: list[Look] = []
    weights_left = MAX_WEIGHTS
    for record in records.items(MAX_LOOKS):
        looks.append(_look(record, sides, weights_left))
        weights_left -= looks[-1].weights.size
    return tuple(looks)


def _look(record: Field, sides: Mapping[str, Side], weights_left: int) -> Look:
    record.check_names(*_LOOK_FIELDS)
    query_side = record.required("query_side").string()
    key_side = record.required("key_side").string()
    queries = _words(record, "queries", query_side, sides)
    keys = _words(record, "keys", key_side, sides)
    # checked before the weights are unpacked: a small file may claim a huge shape
    if len(queries) * len(keys) > weights_left:
        raise RegardError(f"{record.file}: {record.path}: more than {MAX_WEIGHTS} weights in all")
    notes = record.optional("notes")
    return Look(
        weights=_weights(record.required("weights"), (len(queries), len(keys))),
        queries=queries,
        keys=keys,
        name=record.required("name").string(),
        layer=_optional_integer(record.optional("layer")),
        head=_optional_integer(record.optional("head")),
        query_side=query_side,
        key_side=key_side,
        notes={name: note.string() for name, note in notes.entries(MAX_SIDES)} if notes else {},
    )


def _words(record: Field, name: str, side: str, sides: Mapping[str, Side]) -> tuple[str, ...]:
    """The words of one end of a look: its own, or else those of the side it names."""
    if record.optional(name):
        return tuple(word.string() for word in record.optional(name).items(MAX_TOKENS))
    if side not in sides:
        raise RegardError(
            f"{record.file}: {record.path}: has no {name!r}, nor is there a side {side!r:.60}"
        )
    return tuple(token.text for token in sides[side].tokens)


def _weights(field: Field, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Weights as a list of rows, or packed; raises unless they have this shape."""
    if isinstance(field.value, list):
        rows = field.items(MAX_TOKENS)
        numbers = [[cell.number() for cell in row.items(MAX_TOKENS)] for row in rows]
        # one size if all rows are equally long; with more of them the shape cannot match
        sizes = {len(row) for row in numbers} or {shape[1]}
        given = (len(rows), *sizes)
        if given == shape:
            return np.array(numbers, dtype=np.float64).reshape(shape)
    else:
        field.check_names("encoding", "shape", "low", "high", "data")
        if field.required("encoding").string() != ENCODING:
            raise field.required("encoding").wrong(repr(ENCODING))
        given = tuple(size.integer(0, MAX_TOKENS) for size in field.required("shape").items(2))
        if given == shape:
            return _unpacked(field, shape)
    raise RegardError(
        f"{field.file}: {field.path}: expected {shape[0]} rows of {shape[1]}, "
        f"got {' × '.join(map(str, given))}"
    )


def _unpacked(field: Field, shape: tuple[int, int]) -> NDArray[np.float64]:
    record = {
        "shape": shape,
        "low": field.required("low").number(),
        "high": field.required("high").number(),
        "data": field.required("data").string(),
    }
    try:
        return unpack(record)
    except ValueError as error:
        raise RegardError(f"{field.file}: {field.path}: {error}") from None


def _alternative(record: Field) -> Alternative:
    record.check_names("text", "probability")
    return Alternative(record.required("text").string(), record.required("probability").number())


def _attribution(record: Field, sides: Mapping[str, Side]) -> Attribution:
    record.check_names("method", "side", "values", "output")
    side = record.required("side").string()
    values = record.required("values").items(MAX_TOKENS)
    if side not in sides or len(sides[side].tokens) != len(values):
        raise RegardError(
            f"{record.file}: {record.path}: {len(values)} values do not fit side {side!r:.60}"
        )
    return Attribution(
        method=record.required("method").string(),
        side=side,
        values=np.array([value.number() for value in values], dtype=np.float64),
        output=_optional_integer(record.optional("output")),
    )


def _link(field: Field) -> tuple[int, int]:
    ends = field.items(2)
    if len(ends) != 2:
        raise field.wrong("two whole numbers")
    return ends[0].integer(), ends[1].integer()
