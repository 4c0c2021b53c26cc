"""Which steps the tokenizer of a pretrained model may have.

A `tokenizer.json` can hold any steps that the `tokenizers` package knows, also patterns that take
for ever and replacements that multiply a text. Those that pretrained models need are listed here,
each with the values of its settings; every other step or setting is refused.
"""

import base64
import binascii
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Check = Callable[[Any], bool]

MAX_PARTS = 24
"""Steps of one kind, in all sequences together."""
MAX_GROWTH = 8
"""How many times longer all replacements together may make a text."""
ONCE = ("ByteLevel", "Metaspace", "Precompiled", "Prepend")
"""Steps that make a text longer: repeated ones would multiply it."""
MAX_CHARSMAP = 2**20
"""Bytes of a table of character replacements; that of NFKC has about 240,000."""
LONGEST_REPLACEMENT = 128
"""Bytes that replace a character; NFKC needs up to 33."""

PATTERNS = frozenset(
    {
        " {2,}",
        # GPT-2, and the tokenizers that followed it
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    }
)
"""Regular expressions that are known to take time in proportion to the text."""


def check_steps(state: Mapping[str, Any]) -> None:
    """Raise ValueError unless normalizer, pre-tokenizer and decoder have known steps only."""
    for name, known in STEPS.items():
        part = state.get(name)
        if part is not None:
            steps = list(_leaves(part, name, known, [MAX_PARTS]))
            _check_growth(steps, name)


def check_model_settings(model: Mapping[str, Any]) -> None:
    """Raise ValueError unless the settings of the model, its vocabulary aside, are known ones."""
    kind = model.get("type")
    if kind not in MODELS:
        raise ValueError(f"a model of type {str(kind)[:40]!r}: expected {', '.join(MODELS)}")
    _check_settings(model, str(kind), {**MODELS[str(kind)], "vocab": _any, "merges": _any})


def _leaves(
    part: Any, where: str, known: Mapping[str, Mapping[str, Check]], left: list[int]
) -> Iterator[dict[str, Any]]:
    """The steps of a part that are no sequences, each checked; `left` is how many more may come."""
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind not in known:
        raise ValueError(f"{where} of type {str(kind)[:40]!r} is not supported")
    left[0] -= 1
    if left[0] < 0:
        raise ValueError(f"{where}: expected at most {MAX_PARTS} steps")
    if kind != "Sequence":
        _check_settings(part, f"{where} {kind}", known[kind])
        yield part
        return
    lists = [value for key, value in part.items() if key != "type"]
    if len(lists) != 1 or not isinstance(lists[0], list):
        raise ValueError(f"{where}: expected a list of steps")
    for inner in lists[0]:
        yield from _leaves(inner, where, known, left)


def _check_growth(steps: Sequence[Mapping[str, Any]], where: str) -> None:
    """Raise ValueError if steps could make a text many times longer."""
    counts = Counter(step["type"] for step in steps)
    for kind in ONCE:
        if counts[kind] > 1:
            raise ValueError(f"{where}: {kind} occurs {counts[kind]} times")
    growth = 1.0
    for step in steps:
        if step["type"] == "Replace":
            ((form, pattern),) = step["pattern"].items()
            shortest = len(pattern) if form == "String" else 1
            growth *= max(1.0, len(step["content"]) / shortest)
    if growth > MAX_GROWTH:
        raise ValueError(f"{where}: its replacements make a text {growth:,.0f} times longer")


def _check_settings(part: Mapping[str, Any], where: str, settings: Mapping[str, Check]) -> None:
    for name, value in part.items():
        if name == "type":
            continue
        if name not in settings or not settings[name](value):
            raise ValueError(f"{where}: {name} {str(value)[:40]!r} is not supported")


def _any(value: Any) -> bool:
    return True


def _flag(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def _short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 8


def _short_or_none(value: Any) -> bool:
    return value is None or _short(value)


def _none(value: Any) -> bool:
    return value is None or value == ""


def _name_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, str) and len(value) <= 256)


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= 1000


def _scheme(value: Any) -> bool:
    return value in ("always", "first", "never")


def _behavior(value: Any) -> bool:
    return value in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")


def _pattern(value: Any) -> bool:
    """A short string, or one of the known regular expressions."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    ((kind, text),) = value.items()
    return (kind == "String" and _short(text) and text != "") or (
        kind == "Regex" and text in PATTERNS
    )


def is_charsmap(value: Any) -> bool:
    """Whether a table of character replacements of SentencePiece is one.

    It is a double-array trie (units of 32 bits) and the replacements, each ended by a zero byte.
    The package that reads it does not check what the units point to, so it is checked here: every
    step of a search stays inside the trie, and every result is a whole character of the
    replacements.
    """
    if not isinstance(value, str) or len(value) > 2 * MAX_CHARSMAP:
        return False
    try:
        content = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    size = int.from_bytes(content[:4], "little")
    if not 1024 <= size <= len(content) - 5 or size % 4 or content[-1] != 0:
        return False
    units = np.frombuffer(content[4 : 4 + size], dtype="<u4").astype(np.int64)
    replacements = np.frombuffer(content[4 + size :], dtype=np.uint8)
    numbers = np.arange(len(units))
    # a search follows the root and units with a label; those with bit 31 set are results
    followed = ((units >> 31) == 0) & (((units & 0xFF) != 0) | (numbers == 0))
    targets = (numbers ^ ((units >> 10) << ((units & 512) >> 6)))[followed]
    if int((targets | 255).max()) >= len(units):
        return False
    leaves = targets[(units[followed] >> 8) & 1 == 1]
    results = units[leaves] & 0x7FFFFFFF
    if len(results) and int(results.max()) >= len(replacements):
        return False
    if bool((replacements[results] & 0xC0 == 0x80).any()):
        return False
    ends = np.flatnonzero(replacements == 0)
    try:
        content[4 + size :].decode("utf-8")
    except UnicodeDecodeError:
        return False
    return int(np.diff(np.concatenate([[-1], ends])).max()) <= LONGEST_REPLACEMENT


_METASPACE: dict[str, Check] = {
    "replacement": _short,
    "prepend_scheme": _scheme,
    "add_prefix_space": _flag,
    "split": _flag,
    "str_rep": _short,
}
_BYTE_LEVEL: dict[str, Check] = {
    "add_prefix_space": _flag,
    "trim_offsets": _flag,
    "use_regex": _flag,
}
_REPLACE: dict[str, Check] = {"pattern": _pattern, "content": _short}
STEPS: dict[str, dict[str, dict[str, Check]]] = {
    "normalizer": {
        "Sequence": {},
        "BertNormalizer": {
            "clean_text": _flag,
            "handle_chinese_chars": _flag,
            "strip_accents": _flag,
            "lowercase": _flag,
        },
        "Lowercase": {},
        "NFC": {},
        "NFD": {},
        "NFKC": {},
        "NFKD": {},
        "Nmt": {},
        "StripAccents": {},
        "Strip": {"strip_left": _flag, "strip_right": _flag},
        "Prepend": {"prepend": _short},
        "Replace": _REPLACE,
        "Precompiled": {"precompiled_charsmap": is_charsmap},
    },
    "pre_tokenizer": {
        "Sequence": {},
        "BertPreTokenizer": {},
        "ByteLevel": _BYTE_LEVEL,
        "Metaspace": _METASPACE,
        "Whitespace": {},
        "WhitespaceSplit": {},
        "Digits": {"individual_digits": _flag},
        "Punctuation": {"behavior": _behavior},
        "Split": {"pattern": _pattern, "behavior": _behavior, "invert": _flag},
    },
    "decoder": {
        "Sequence": {},
        "WordPiece": {"prefix": _short, "cleanup": _flag},
        "ByteLevel": _BYTE_LEVEL,
        "Metaspace": _METASPACE,
        "ByteFallback": {},
        "Fuse": {},
        "Replace": _REPLACE,
        "Strip": {"content": _short, "start": _count, "stop": _count},
    },
}
"""Steps of each part with their settings."""
MODELS: dict[str, dict[str, Check]] = {
    "WordPiece": {
        "unk_token": _name_or_none,
        "continuing_subword_prefix": _short,
        "max_input_chars_per_word": _count,
    },
    "BPE": {
        "dropout": _none,
        "unk_token": _name_or_none,
        "continuing_subword_prefix": _none,
        "end_of_word_suffix": _none,
        "fuse_unk": _flag,
        "byte_fallback": _flag,
        "ignore_merges": _flag,
    },
    "Unigram": {"unk_id": _any, "byte_fallback": _flag},
}
"""Models with their settings."""
