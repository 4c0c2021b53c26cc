"""A trace: what a model was given, what it made of it, and where it looked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError
from regard.fields import Field
from regard.looks import Look, equal_fields
from regard.packing import ENCODING, pack, unpack

if TYPE_CHECKING:
    from regard.show import Drawn

SCHEMA = "regard.trace/1"

MOST_BYTES = 256 * 2**20
"""Of a document; a longer one is not read."""
MOST_NUMBERS = 2**26
"""Of weights in all looks together: half a gigabyte."""
MOST_TOKENS, MOST_LOOKS, MOST_SIDES = 2**16, 2**12, 64
PACKED_FROM = 1024
"""Looks with so many numbers are packed unless said otherwise."""


@dataclass(frozen=True)
class Token:
    """One token of a side, and where it stands in the side's text."""

    text: str
    start: int = 0
    end: int = 0
    special: bool = False
    """Whether it stands for no text, such as the end of a sentence."""
    word: int | None = None
    """The number of its word, counted by white space; None for special tokens."""


@dataclass(frozen=True)
class Side:
    """A text that looks or is looked at: source, target, text."""

    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True, eq=False)
class Attribution:
    """How much each token of a side mattered, by one method."""

    method: str
    side: str
    values: NDArray[np.float64]
    """[n], one a token."""
    output: int | None = None
    """The position of the output that it is about; None for all of it."""

    __eq__ = equal_fields


@dataclass(frozen=True)
class Alternative:
    """What else might have stood at a place of the output."""

    text: str
    probability: float


@dataclass(frozen=True, eq=False)
class Trace:
    """One text through one model."""

    task: str
    sides: Mapping[str, Side]
    """By name; looks say which side asks and which is asked."""
    looks: tuple[Look, ...]
    output: str
    prediction: Mapping[str, Any] = field(default_factory=dict)
    """Plain values: probabilities of labels, score, n-best."""
    alternatives: tuple[tuple[Alternative, ...], ...] = ()
    """For each position of the output, the likeliest tokens there, likeliest first."""
    attributions: tuple[Attribution, ...] = ()
    alignment: tuple[tuple[int, int], ...] | None = None
    """Links of words: source, target, from 0."""
    card: Mapping[str, Any] = field(default_factory=dict)
    """What the model is: name, config, size, where it was trained."""

    __eq__ = equal_fields

    def to_json(self, packed_from: int = PACKED_FROM, bits: int = 16) -> str:
        """The trace as a JSON document of schema `regard.trace/1`.

        Looks of `packed_from` numbers or more are packed (`regard.packing.pack`, with an error of
        at most 7.7e-6 for weights between 0 and 1 and 16 bits); smaller ones are exact.
        """
        return json.dumps(document(self, packed_from, bits), allow_nan=False, separators=(",", ":"))

    @staticmethod
    def from_json(text: str | bytes, file: str = "trace") -> "Trace":
        """Read a document; one that is wrong anywhere raises RegardError with the place."""
        return _trace(_parse(text, file))

    @staticmethod
    def read(path: str | PathLike[str]) -> "Trace":
        """The trace of a JSON file."""
        try:
            with Path(path).open("rb") as stream:
                return Trace.from_json(stream.read(MOST_BYTES + 1), str(path))
        except OSError as error:
            raise RegardError(f"{path}: cannot be read ({error.strerror})") from error

    def show(self, to: str | PathLike[str] | None = None, **options: Any) -> "Drawn":
        """Draw it: here and now, or into a file whose name ends in html, svg, png or json."""
        from regard.show import show

        return show(self, to, **options)

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()


def document(trace: Trace, packed_from: int = PACKED_FROM, bits: int = 16) -> dict[str, Any]:
    """The trace as plain values, ready for JSON."""
    return {
        "schema": SCHEMA,
        "version": _version(),
        "task": trace.task,
        "sides": {
            name: {"text": side.text, "tokens": [_token_record(token) for token in side.tokens]}
            for name, side in trace.sides.items()
        },
        "looks": [_look_record(look, trace.sides, packed_from, bits) for look in trace.looks],
        "output": trace.output,
        "prediction": _plain(trace.prediction),
        "alternatives": [
            [{"text": other.text, "probability": float(other.probability)} for other in place]
            for place in trace.alternatives
        ],
        "attributions": [
            {
                "method": found.method,
                "side": found.side,
                "values": np.asarray(found.values, dtype=np.float64).tolist(),
                "output": found.output,
            }
            for found in trace.attributions
        ],
        "alignment": None if trace.alignment is None else [list(link) for link in trace.alignment],
        "card": _plain(trace.card),
    }


def _version() -> str | None:
    """The version of Regard that is installed; none where it runs from a folder."""
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
    look: Look, sides: Mapping[str, Side], packed_from: int, bits: int
) -> dict[str, Any]:
    """Words that a side already has are not written again."""
    record: dict[str, Any] = {"name": look.name, "asking": look.asking, "asked": look.asked}
    for name, value in (("layer", look.layer), ("head", look.head), ("notes", look.notes)):
        if value or value == 0:
            record[name] = value
    for name, side, words in (
        ("queries", look.asking, look.queries),
        ("keys", look.asked, look.keys),
    ):
        if side not in sides or tuple(token.text for token in sides[side].tokens) != words:
            record[name] = list(words)
    large = look.weights.size >= packed_from
    record["weights"] = pack(look.weights, bits) if large else look.weights.tolist()
    return record


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's own, tuples as lists."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def _parse(text: str | bytes, file: str) -> Field:
    if len(text) > MOST_BYTES:
        raise RegardError(f"{file}: longer than the {MOST_BYTES // 2**20} MB that a trace may have")

    def refuse(constant: str) -> None:
        raise RegardError(f"{file}: holds {constant}, which is no number of JSON")

    try:
        found = Field(json.loads(text, parse_constant=refuse), file)
    except json.JSONDecodeError as error:
        raise RegardError(f"{file}:{error.lineno}: not JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:
        raise RegardError(f"{file}: not JSON that can be read ({error})") from None
    if not isinstance(found.value, dict) or found.value.get("schema") != SCHEMA:
        given = found.value.get("schema") if isinstance(found.value, dict) else None
        raise RegardError(f"{file}: not a trace: expected schema {SCHEMA!r}, got {given!r:.60}")
    return found


_FIELDS = (
    *("schema", "version", "task", "sides", "looks", "output", "prediction", "alternatives"),
    *("attributions", "alignment", "card"),
)


def _trace(found: Field) -> Trace:
    found.only(*_FIELDS)
    sides = {name: _side(side) for name, side in found.at("sides").entries(MOST_SIDES)}
    looks, room = [], MOST_NUMBERS
    for record in found.at("looks").items(MOST_LOOKS):
        looks.append(_look(record, sides, room))
        room -= looks[-1].weights.size
    places = found.get("alternatives").items(MOST_TOKENS) if found.get("alternatives") else []
    given = found.get("attributions").items(MOST_LOOKS) if found.get("attributions") else []
    alignment = found.get("alignment")
    for name in ("prediction", "card"):
        if found.get(name):
            list(found.get(name).entries(MOST_TOKENS))
    return Trace(
        task=found.at("task").text(),
        sides=sides,
        looks=tuple(looks),
        output=found.at("output").text(),
        prediction=found.get("prediction").value or {},
        alternatives=tuple(
            tuple(_alternative(one) for one in place.items(MOST_TOKENS)) for place in places
        ),
        attributions=tuple(_attribution(one, sides) for one in given),
        alignment=tuple(_link(one) for one in alignment.items(2**22)) if alignment else None,
        card=found.get("card").value or {},
    )


def _side(found: Field) -> Side:
    found.only("text", "tokens")
    tokens = tuple(_token(one) for one in found.at("tokens").items(MOST_TOKENS))
    return Side(found.at("text").text(), tokens)


def _token(found: Field) -> Token:
    found.only("text", "start", "end", "special", "word")
    return Token(
        found.at("text").text(),
        found.get("start").whole() if found.get("start") else 0,
        found.get("end").whole() if found.get("end") else 0,
        bool(found.get("special")) and found.get("special").truth(),
        found.get("word").whole() if found.get("word") else None,
    )


def _look(found: Field, sides: Mapping[str, Side], room: int) -> Look:
    names = ("name", "layer", "head", "asking", "asked", "queries", "keys", "notes", "weights")
    found.only(*names)
    asking, asked = found.at("asking").text(), found.at("asked").text()
    queries, keys = _words(found, "queries", asking, sides), _words(found, "keys", asked, sides)
    if len(queries) * len(keys) > room:
        raise RegardError(f"{found.file}: {found.path}: more than {MOST_NUMBERS} weights in all")
    notes = dict(found.get("notes").entries(MOST_SIDES)) if found.get("notes") else {}
    return Look(
        _weights(found.at("weights"), (len(queries), len(keys))),
        queries,
        keys,
        found.at("name").text(),
        found.get("layer").whole() if found.get("layer") else None,
        found.get("head").whole() if found.get("head") else None,
        asking,
        asked,
        {name: note.text() for name, note in notes.items()},
    )


def _words(found: Field, name: str, side: str, sides: Mapping[str, Side]) -> tuple[str, ...]:
    if found.get(name):
        return tuple(word.text() for word in found.get(name).items(MOST_TOKENS))
    if side not in sides:
        raise RegardError(
            f"{found.file}: {found.path}: has no {name!r}, nor is there a side {side!r:.60}"
        )
    return tuple(token.text for token in sides[side].tokens)


def _weights(found: Field, shape: tuple[int, int]) -> NDArray[np.float64]:
    if isinstance(found.value, list):
        rows = found.items(MOST_TOKENS)
        numbers = [[one.number() for one in row.items(MOST_TOKENS)] for row in rows]
        sizes = {len(row) for row in numbers} or {shape[1]}
        given = (len(rows), *sizes)
        if given == shape:
            return np.array(numbers, dtype=np.float64).reshape(shape)
    else:
        found.only("encoding", "shape", "low", "high", "data")
        if found.at("encoding").text() != ENCODING:
            raise found.at("encoding").wrong(repr(ENCODING))
        given = tuple(size.whole(0, MOST_TOKENS) for size in found.at("shape").items(2))
        if given == shape:
            range_ = {"low": found.at("low").number(), "high": found.at("high").number()}
            try:
                return unpack({"shape": shape, "data": found.at("data").text(), **range_})
            except ValueError as error:
                raise RegardError(f"{found.file}: {found.path}: {error}") from None
    raise RegardError(
        f"{found.file}: {found.path}: expected {shape[0]} rows of {shape[1]}, "
        f"got {' × '.join(map(str, given))}"
    )


def _alternative(found: Field) -> Alternative:
    found.only("text", "probability")
    return Alternative(found.at("text").text(), found.at("probability").number())


def _attribution(found: Field, sides: Mapping[str, Side]) -> Attribution:
    found.only("method", "side", "values", "output")
    side, values = found.at("side").text(), found.at("values").items(MOST_TOKENS)
    if side not in sides or len(sides[side].tokens) != len(values):
        raise RegardError(
            f"{found.file}: {found.path}: {len(values)} values do not fit side {side!r:.60}"
        )
    numbers = np.array([value.number() for value in values], dtype=np.float64)
    output = found.get("output").whole() if found.get("output") else None
    return Attribution(found.at("method").text(), side, numbers, output)


def _link(found: Field) -> tuple[int, int]:
    ends = found.items(2)
    if len(ends) != 2:
        raise found.wrong("two whole numbers")
    return ends[0].whole(), ends[1].whole()
