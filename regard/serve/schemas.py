"""JSON Schema, as far as requests need it: one description both checks and documents them."""

import math
import re
from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def text(longest: int | None = None, **more: Any) -> Schema:
    """A string."""
    return {"type": "string"} | ({} if longest is None else {"maxLength": longest}) | more


def integer(low: int, high: int, **more: Any) -> Schema:
    """A whole number, both ends included."""
    return {"type": "integer", "minimum": low, "maximum": high, **more}


def number(low: int | float, high: int | float, **more: Any) -> Schema:
    """A number, both ends included."""
    return {"type": "number", "minimum": low, "maximum": high, **more}


def array(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    """A list."""
    found: Schema = {"type": "array", "items": items}
    if least:
        found["minItems"] = least
    return found if most is None else found | {"maxItems": most}


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """An object that has no other members than these."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def either(*schemas: Schema) -> Schema:
    """One of several."""
    return {"anyOf": list(schemas)}


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def faults(schema: Schema, value: Any, where: str = "") -> Iterator[tuple[str, str]]:
    """Each place (a JSON pointer) where a value is not as its schema says, and what is wrong.

    >>> list(faults(array(integer(1, 3)), [2, 5]))
    [('/1', '5 is above the most allowed, 3')]
    """
    if "anyOf" in schema:
        found = [list(faults(one, value, where)) for one in schema["anyOf"]]
        if all(found):
            yield from min(found, key=lambda some: (_of_kind(some, where), len(some)))
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield where, f"expected {' or '.join(kinds)}, got {_kind(value)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield where, f"expected one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str):
        yield from _text_faults(schema, value, where)
    elif isinstance(value, list):
        yield from _list_faults(schema, value, where)
    elif isinstance(value, dict):
        yield from _record_faults(schema, value, where)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_faults(schema, value, where)


def _of_kind(found: list[tuple[str, str]], where: str) -> bool:
    """Whether nothing but the type was wrong: the alternative that was not meant."""
    return found[0][0] == where and found[0][1].startswith("expected")


def _text_faults(schema: Schema, value: str, where: str) -> Iterator[tuple[str, str]]:
    if len(value) > schema.get("maxLength", math.inf):
        yield where, f"{len(value)} characters: at most {schema['maxLength']} are allowed"
    if len(value) < schema.get("minLength", 0):
        yield where, f"{len(value)} characters: at least {schema['minLength']} are needed"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield where, f"does not match {schema['pattern']}"


def _list_faults(schema: Schema, value: list[Any], where: str) -> Iterator[tuple[str, str]]:
    if len(value) > schema.get("maxItems", math.inf):
        yield where, f"{len(value)} entries: at most {schema['maxItems']} are allowed"
        return
    if len(value) < schema.get("minItems", 0):
        yield where, f"{len(value)} entries: at least {schema['minItems']} are needed"
    for i, part in enumerate(value):
        yield from faults(schema.get("items", {}), part, f"{where}/{i}")


def _record_faults(schema: Schema, value: dict[str, Any], where: str) -> Iterator[tuple[str, str]]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield where, f"{name} is missing"
    if len(value) > schema.get("maxProperties", math.inf):
        yield where, f"{len(value)} members: at most {schema['maxProperties']} are allowed"
    for name, part in value.items():
        inside = f"{where}/{name.replace('~', '~0').replace('/', '~1')[:80]}"
        if "propertyNames" in schema:
            yield from faults(schema["propertyNames"], name, inside)
        if name in known:
            yield from faults(known[name], part, inside)
        elif schema.get("additionalProperties") is False:
            yield inside, f"unknown; known: {', '.join(known) or 'nothing'}"
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from faults(schema["additionalProperties"], part, inside)


def _number_faults(schema: Schema, value: int | float, where: str) -> Iterator[tuple[str, str]]:
    if value < schema.get("minimum", -math.inf):
        yield where, f"{value} is below the least allowed, {schema['minimum']}"
    if value <= schema.get("exclusiveMinimum", -math.inf):
        yield where, f"{value} is not above {schema['exclusiveMinimum']}"
    if value > schema.get("maximum", math.inf):
        yield where, f"{value} is above the most allowed, {schema['maximum']}"


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return kind == "number" or isinstance(value, int) or value.is_integer()
    return isinstance(value, KINDS[kind])


def _kind(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return next(name for name, kinds in KINDS.items() if isinstance(value, kinds))
