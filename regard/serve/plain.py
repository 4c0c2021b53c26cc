"""JSON in and out, as strict as the standard: no NaN, no half characters, no endless nesting."""

import json
import math
import re
from typing import Any, NoReturn

_HALF = re.compile("[\ud800-\udfff]")
DEEPEST = 32
"""Levels of nesting that a request may have."""


def dumps(value: Any) -> bytes:
    """JSON in UTF-8; numbers that JSON has no word for become null.

    >>> dumps({"loss": float("nan"), "text": "é"}).decode()
    '{"loss":null,"text":"é"}'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(finite(value), ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def finite(value: Any) -> Any:
    """The same value with null in place of NaN and the infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return value


def loads(raw: bytes) -> Any:
    """The value of a JSON text; ValueError with the reason where it is none."""
    try:
        found = json.loads(raw.decode("utf-8"), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ValueError(f"more than {DEEPEST} levels deep") from None
    return _whole(found, DEEPEST)


def whole_characters(text: str) -> str:
    """Text that UTF-8 can write: halves of characters become U+FFFD, one for one."""
    return _HALF.sub("\ufffd", text)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _whole(value: Any, levels: int) -> Any:
    if levels < 0:
        raise ValueError(f"more than {DEEPEST} levels deep")
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a number is out of range")
    if isinstance(value, list):
        return [_whole(part, levels - 1) for part in value]
    if isinstance(value, dict):
        return {whole_characters(k): _whole(part, levels - 1) for k, part in value.items()}
    return value
