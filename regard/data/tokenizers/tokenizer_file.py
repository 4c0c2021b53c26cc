"""Tokenizers from files that may be damaged or crafted: only what Regard writes is accepted.

A `tokenizer.json` can hold any steps that the `tokenizers` package knows: padding of any length,
patterns that take for ever, replacements that multiply a text, truncation. A tokenizer of Regard is
one of six recipes around a vocabulary. So the recipe is built anew, the vocabulary is taken from
the file after a check, and everything else in the file must be what the recipe says. The tokenizer
of a pretrained model has other steps: those that `tokenizer_parts` lists.
"""

import json
import math
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers

from regard.data.tokenizers.recipes import (
    SPECIAL,
    UNK,
    WORD_LEVEL,
    build_tokenizer,
    is_imported,
    recipe_of,
    word_decoder,
)
from regard.data.tokenizers.tokenizer_parts import STEPS, check_model_settings, check_steps
from regard.errors import RegardError
from regard.verified_files import parse_json, read_bytes

_VOCABULARY = ("vocab", "merges")


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a file that Regard has written."""
    try:
        content = read_bytes(path)
    except OSError as error:
        raise RegardError(
            f"{path}: the tokenizer cannot be read ({error.strerror or error})"
        ) from error
    try:
        return read_state(parse_json(content))
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise RegardError(
            f"{path}: not a tokenizer of Regard ({reason}): restore it from a copy, or train the "
            f"run again"
        ) from error


def read_state(state: Any) -> Tokenizer:
    """The tokenizer with this content: a recipe of Regard, or one that `import_tokenizer` made.

    ValueError for anything else.
    """
    if is_imported(state):
        return _read_imported(state)
    recipe = _recipe(state)
    difference = _difference(state, recipe)
    if difference:
        raise ValueError(f"{difference} is not what Regard writes")
    given = state["model"]
    size = _check_vocabulary(recipe, given["vocab"])
    if "merges" in recipe["model"]:
        _check_merges(given["merges"], given["vocab"], size)
    recipe["model"] |= {name: given[name] for name in _VOCABULARY if name in given}
    return Tokenizer.from_str(json.dumps(recipe))


def _read_imported(state: dict[str, Any]) -> Tokenizer:
    """A tokenizer of a pretrained model: known steps around a vocabulary, and nothing else."""
    for name in state:
        if name not in ("version", "model", *STEPS) and state[name]:
            raise ValueError(f"{str(name)[:40]} is not what Regard writes")
    model = state["model"]
    if not isinstance(model, dict):
        raise ValueError("it has no model")
    check_steps(state)
    check_model_settings(model)
    size = _check_vocabulary(state, model["vocab"], bytes_needed=False)
    if "merges" in model:
        _check_merges(model["merges"], model["vocab"], 4 * size)
        if any("".join(merge) in SPECIAL for merge in model["merges"]):
            raise ValueError("a merge makes a special token")
    if model["type"] == "Unigram" and model.get("unk_id") != UNK:
        raise ValueError(f"unk_id is not {UNK}")
    if model["type"] != "Unigram" and model.get("unk_token") not in (None, SPECIAL[UNK]):
        raise ValueError(f"unk_token is not {SPECIAL[UNK]}")
    try:
        return Tokenizer.from_str(json.dumps(state))
    except BaseException as error:  # a panic of the library is no Exception
        if isinstance(error, Exception | KeyboardInterrupt | SystemExit):
            raise
        raise ValueError("the tokenizers package cannot read it") from error


def _recipe(state: Any) -> dict[str, Any]:
    """The content of a file with the recipe of this one and an empty vocabulary."""
    if not isinstance(state, dict):
        raise ValueError("expected an object")
    try:
        kind, lowercase = recipe_of(state)
    except (KeyError, TypeError) as error:
        raise ValueError(f"it lacks {error}") from error
    word_level = kind in (*WORD_LEVEL, "character")
    other = models.Unigram if kind == "unigram" else models.BPE
    model = models.WordLevel if word_level else other
    tokenizer = build_tokenizer(kind, model(), lowercase)
    if kind == "word":
        tokenizer.decoder = word_decoder()
    recipe: dict[str, Any] = json.loads(tokenizer.to_str())
    if kind == "unigram":
        recipe["model"]["unk_id"] = UNK
    return recipe


def _difference(given: Any, expected: Any, name: str = "") -> str | None:
    """The name of the first part that differs; the vocabulary may.

    Fields that are not set (null, false) may be missing on either side: other versions of the
    `tokenizers` package write more or fewer of them.
    """
    if isinstance(given, dict) and isinstance(expected, dict):
        for key in sorted(given.keys() | expected.keys(), key=str):
            if name == "model" and key in _VOCABULARY:
                continue
            inner = f"{name}.{key}" if name else str(key)
            found = _difference(given.get(key), expected.get(key), inner)
            if found:
                return found
        return None
    if isinstance(given, list) and isinstance(expected, list) and len(given) == len(expected):
        pairs = enumerate(zip(given, expected, strict=True))
        return next((d for i, (a, b) in pairs if (d := _difference(a, b, f"{name}[{i}]"))), None)
    unset = not given and not expected and not isinstance(given, str | list)
    same = unset or (type(given) is type(expected) and given == expected)
    return None if same else name


def _check_vocabulary(recipe: dict[str, Any], vocabulary: Any, *, bytes_needed: bool = True) -> int:
    """The size of a vocabulary: distinct tokens with the numbers from 0 on."""
    if recipe["model"]["type"] == "Unigram":
        if not isinstance(vocabulary, list):
            raise ValueError("expected a list of pieces")
        for entry in vocabulary:
            if not isinstance(entry, list) or len(entry) != 2 or type(entry[1]) is not float:
                raise ValueError(f"{str(entry)[:40]!r} is not a piece with its score")
            if not math.isfinite(entry[1]):
                raise ValueError(f"the score of {str(entry[0])[:40]!r} is not finite")
        tokens = [entry[0] for entry in vocabulary]
    else:
        if not isinstance(vocabulary, dict):
            raise ValueError("expected a vocabulary")
        size = len(vocabulary)
        numbers = set(vocabulary.values())
        if any(type(n) is not int for n in numbers) or numbers != set(range(size)):
            raise ValueError(f"its {size} tokens do not have the numbers from 0 to {size - 1}")
        tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    if not all(isinstance(token, str) and token for token in tokens):
        raise ValueError("a token is empty")
    if len(set(tokens)) < len(tokens):
        raise ValueError("a token occurs twice")
    if tuple(tokens[: len(SPECIAL)]) != SPECIAL:
        raise ValueError(f"its first tokens are not {', '.join(SPECIAL)}")
    all_bytes = {*pre_tokenizers.ByteLevel.alphabet()}
    if bytes_needed and recipe["model"]["type"] == "BPE" and not all_bytes <= {*tokens}:
        raise ValueError("a byte has no token")
    return len(tokens)


def _check_merges(merges: Any, vocabulary: dict[str, int], size: int) -> None:
    """Every merge joins two tokens to a third one."""
    if not isinstance(merges, list) or len(merges) > size:
        raise ValueError("expected a list of merges, fewer than tokens")
    for merge in merges:
        parts = merge.split(" ") if isinstance(merge, str) else merge
        known = isinstance(parts, list) and len(parts) == 2 and all(p in vocabulary for p in parts)
        if not known or "".join(parts) not in vocabulary:
            raise ValueError(f"the merge {str(merge)[:40]!r} is not one of tokens")
