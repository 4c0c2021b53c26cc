"""JSON in and out, as strict as the standard: no NaN, no lone surrogates, no deep nesting."""

import json
import math
import re
from typing import Any, NoReturn

_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_DEPTH = 32
"""Levels of nesting that a request may have."""


def dumps(value: Any) -> bytes:
    """JSON in UTF-8; NaN and the infinities, which JSON cannot express, become null.

    >>> dumps({"loss": float("nan"), "text": "é"}).decode()
    '{"loss":null,"text":"é"}'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(nan_to_null(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def nan_to_null(value: Any) -> Any:
    """The same value with None in place of NaN and the infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: nan_to_null(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [nan_to_null(part) for part in value]
    return value


def loads(raw: bytes) -> Any:
    """The value of a JSON text; ValueError with the reason if it is not valid."""
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ValueError(f"more than {MAX_DEPTH} levels deep") from None
    return _sanitize(value, MAX_DEPTH)


def replace_surrogates(text: str) -> str:
    """Text that UTF-8 can encode: each lone surrogate becomes U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _sanitize(value: Any, levels: int) -> Any:
    """The value without lone surrogates; ValueError if it is nested too deeply."""
    if levels < 0:
        raise ValueError(f"more than {MAX_DEPTH} levels deep")
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is out of range")
    if isinstance(value, list):
        return [_sanitize(part, levels - 1) for part in value]
    if isinstance(value, dict):
        return {replace_surrogates(k): _sanitize(part, levels - 1) for k, part in value.items()}
    return value
