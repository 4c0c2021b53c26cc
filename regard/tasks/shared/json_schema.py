"""The part of JSON Schema that requests need: one schema both checks and documents them.

https://json-schema.org/draft/2020-12
"""

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

Schema = dict[str, Any]

PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
TYPE_NAMES = {
    "string": "a string",
    "boolean": "a boolean",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "number": "a number",
    "integer": "an integer",
}
EXPECTED = "must be"
"""How the description of a wrong type begins."""


def text(max_length: int | None = None, **keywords: Any) -> Schema:
    """A string."""
    bound = {} if max_length is None else {"maxLength": max_length}
    return {"type": "string"} | bound | keywords


def integer(low: int, high: int, **keywords: Any) -> Schema:
    """An integer, both bounds included."""
    return {"type": "integer", "minimum": low, "maximum": high, **keywords}


def number(low: int | float, high: int | float, **keywords: Any) -> Schema:
    """A number, both bounds included."""
    return {"type": "number", "minimum": low, "maximum": high, **keywords}


def array(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    """A list."""
    schema: Schema = {"type": "array", "items": items}
    if least:
        schema["minItems"] = least
    return schema if most is None else schema | {"maxItems": most}


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object with these members and no others."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def either(*schemas: Schema) -> Schema:
    """A value that matches one of several schemas."""
    return {"anyOf": list(schemas)}


def nullable(schema: Schema) -> Schema:
    """A value that matches the schema, or null."""
    return {**schema, "type": [schema["type"], "null"]}


class SchemaError(NamedTuple):
    """One place where a value does not match its schema."""

    pointer: str
    """The place, as a JSON pointer."""
    detail: str
    """What is wrong, as a sentence that names the place."""


def schema_errors(schema: Schema, value: Any, pointer: str = "") -> Iterator[SchemaError]:
    """Each place where a value does not match its schema, and what is wrong there.

    >>> [error.detail for error in schema_errors(array(integer(1, 3)), [2, 5])]
    ['[1] is 5; the maximum is 3']
    >>> [error.detail for error in schema_errors(text(4, title="text"), "naïve", "/text")]
    ['The text has 5 characters; at most 4 are allowed']
    """
    for place, said in _errors(schema, value, pointer):
        yield SchemaError(place.pointer, f"{place.subject} {said}")


class _Place(NamedTuple):
    """A part of a value: where it is, and how its schema calls it."""

    pointer: str
    title: str = ""

    @property
    def subject(self) -> str:
        """The part in words: “The text”, “The text inputs[1]”, “parameters.top_k”."""
        path = ""
        for part in self.pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            path += f"[{name}]" if part.isdecimal() else f".{name}" if path else name
        if not path:
            return "The request"
        if not self.title:
            return path
        return f"The {self.title} {path}" if path.endswith("]") else f"The {self.title}"


_Found = Iterator[tuple[_Place, str]]


def _errors(schema: Schema, value: Any, pointer: str) -> _Found:
    place = _Place(pointer, schema.get("title", ""))
    if "anyOf" in schema:
        alternatives = [list(_errors(one, value, pointer)) for one in schema["anyOf"]]
        if all(alternatives):
            # report the errors of the alternative that was most likely meant: one whose type
            # matches, and of these the one with the fewest errors
            yield from min(
                alternatives, key=lambda errors: (_is_type_error(errors, pointer), len(errors))
            )
        return
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_has_type(value, type_name) for type_name in types):
        expected = " or ".join(TYPE_NAMES[name] for name in types)
        yield place, f"{EXPECTED} {expected}, not {TYPE_NAMES[_type_name(value)]}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield place, f"{EXPECTED} one of: {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str):
        yield from _text_errors(schema, value, place)
    elif isinstance(value, list):
        yield from _array_errors(schema, value, place)
    elif isinstance(value, dict):
        yield from _record_errors(schema, value, place)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_errors(schema, value, place)


def _is_type_error(errors: list[tuple[_Place, str]], pointer: str) -> bool:
    """Whether the value itself, rather than a part of it, is not what was expected."""
    return errors[0][0].pointer == pointer and errors[0][1].startswith(EXPECTED)


def _size_errors(schema: Schema, size: int, unit: str, limits: str, place: _Place) -> _Found:
    low, high = schema.get(f"min{limits}", 0), schema.get(f"max{limits}", math.inf)
    if size > high:
        yield place, f"has {size:,} {unit}; at most {high:,} are allowed"
    if size < low:
        yield place, f"has {size:,} {unit}; at least {low:,} are required"


def _text_errors(schema: Schema, value: str, place: _Place) -> _Found:
    yield from _size_errors(schema, len(value), "characters", "Length", place)
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield place, f"does not match {schema['pattern']}"


def _array_errors(schema: Schema, value: list[Any], place: _Place) -> _Found:
    yield from _size_errors(schema, len(value), "items", "Items", place)
    if len(value) > schema.get("maxItems", math.inf):
        return
    for i, item in enumerate(value):
        yield from _errors(schema.get("items", {}), item, f"{place.pointer}/{i}")


def _record_errors(schema: Schema, value: dict[str, Any], place: _Place) -> _Found:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield place, f"lacks {name}"
    yield from _size_errors(schema, len(value), "members", "Properties", place)
    for name, member in value.items():
        escaped = name.replace("~", "~0").replace("/", "~1")[:80]  # a client chose its length
        inside = f"{place.pointer}/{escaped}"
        if "propertyNames" in schema:
            yield from _errors(schema["propertyNames"], name, inside)
        if name in known:
            yield from _errors(known[name], member, inside)
        elif schema.get("additionalProperties") is False:
            yield _Place(inside), f"is unknown; known: {', '.join(known) or 'none'}"
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from _errors(schema["additionalProperties"], member, inside)


def _number_errors(schema: Schema, value: int | float, place: _Place) -> _Found:
    if value < schema.get("minimum", -math.inf):
        yield place, f"is {value}; the minimum is {schema['minimum']}"
    if value <= schema.get("exclusiveMinimum", -math.inf):
        yield place, f"is {value}; expected more than {schema['exclusiveMinimum']}"
    if value > schema.get("maximum", math.inf):
        yield place, f"is {value}; the maximum is {schema['maximum']}"


def _has_type(value: Any, type_name: str) -> bool:
    if type_name in ("number", "integer"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return type_name == "number" or isinstance(value, int) or value.is_integer()
    return isinstance(value, PYTHON_TYPES[type_name])


def _type_name(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return next(name for name, types in PYTHON_TYPES.items() if isinstance(value, types))
