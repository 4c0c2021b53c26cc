"""The tokenizer of a pretrained model, with the special tokens first as everywhere in Regard."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int

from regard.data.tokenizers.recipes import HIDDEN, SPECIAL, UNK
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.data.tokenizers.tokenizer_file import read_state
from regard.errors import RegardError

MISSING = -1
"""The row of a special token that the model does not have."""


@dataclass(frozen=True)
class ImportedTokenizer:
    """A tokenizer of Regard, and which row of the model's tables belongs to each of its tokens."""

    tokenizer: Tokenizer
    rows: Int[np.ndarray, "v"]
    """Numbers of the tokens in the pretrained model, `MISSING` where it has none."""
    special: tuple[str | None, ...]
    """What the model calls `<pad>`, `<unk>`, `<bos>` and `<eos>`."""


def import_tokenizer(
    state: Mapping[str, Any],
    special: tuple[str | None, ...],
    where: object,
    *,
    prefix_words: bool = False,
    rows: int = 0,
) -> ImportedTokenizer:
    """The tokenizer of a `tokenizer.json`.

    Args:
        state: the content of the file.
        special: what the model calls `<pad>`, `<unk>`, `<bos>` and `<eos>`; None for none.
        where: the file, for messages.
        prefix_words: put a space before each word of a sentence that is given in words, as models
            of bytes that tag words expect.
        rows: rows of the model that each have a token, named in the file or not.
    """
    try:
        numbers = _numbers(state)
        unknown = [name for name in special if name is not None and name not in numbers]
        if unknown:
            raise ValueError(f"it has no token {unknown[0]!r}")
        others = sorted(
            (name for name in _reachable(state, numbers) if name not in special),
            key=numbers.__getitem__,
        )
        names = [*SPECIAL, *others]
        numbered = [numbers[name] if name is not None else MISSING for name in special]
        numbered += [numbers[name] for name in others]
        for row in sorted({*range(rows)}.difference(numbered)):
            names.append(f"{HIDDEN}{row}")
            numbered.append(row)
        renumbered = _renumber(state, names, special)
        if prefix_words:
            _add_prefix_space(renumbered.get("pre_tokenizer"))
    except Exception as error:
        raise _unusable(where, error) from error
    tokenizer = make_imported(renumbered, where)
    return ImportedTokenizer(tokenizer, np.array(numbered, dtype=np.int64), special)


def make_imported(state: Mapping[str, Any], where: object) -> Tokenizer:
    """The tokenizer with these steps and this vocabulary, whose special tokens come first."""
    try:
        return Tokenizer(read_state(_marked(state)))
    except Exception as error:
        raise _unusable(where, error) from error


def _unusable(where: object, error: Exception) -> RegardError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return RegardError(f"{where}: this tokenizer cannot be used ({reason})")


def _numbers(state: Mapping[str, Any]) -> dict[str, int]:
    """The number of every token, added ones included."""
    model = state.get("model")
    if not isinstance(model, dict) or "vocab" not in model:
        raise ValueError("it has no vocabulary")
    vocabulary = model["vocab"]
    numbers: dict[str, int] = (
        dict(vocabulary)
        if isinstance(vocabulary, dict)
        else {str(entry[0]): number for number, entry in enumerate(vocabulary)}
    )
    for token in state.get("added_tokens") or []:
        numbers.setdefault(str(token["content"]), token["id"])
    if not all(type(number) is int and number >= 0 for number in numbers.values()):
        raise ValueError("a token has no number")
    if len(set(numbers.values())) < len(numbers):
        raise ValueError("two tokens have the same number")
    return numbers


def _reachable(state: Mapping[str, Any], numbers: Mapping[str, int]) -> list[str]:
    """The tokens that a text can have.

    In a unigram model each token has a score, which added tokens lack: they are left out. Elsewhere
    they are kept, since a language model gives them logits.
    """
    vocabulary = state["model"]["vocab"]
    return list(numbers) if isinstance(vocabulary, dict) else [str(e[0]) for e in vocabulary]


def _renumber(
    state: Mapping[str, Any], names: list[str], special: tuple[str | None, ...]
) -> dict[str, Any]:
    model = dict(state["model"])
    if "type" not in model:  # files of old versions
        model["type"] = "Unigram" if isinstance(model["vocab"], list) else "BPE"
    if isinstance(model["vocab"], list):
        scores = {str(name): float(score) for name, score in model["vocab"]}
        scored = [scores.get(name or "", 0.0) for name in special]
        lowest = min(scores.values())
        rest = [[name, scores.get(name, lowest)] for name in names[len(SPECIAL) :]]
        model["vocab"] = [*map(list, zip(SPECIAL, scored, strict=True)), *rest]
        model["unk_id"] = UNK
    else:
        model["vocab"] = {name: number for number, name in enumerate(names)}
        model["unk_token"] = SPECIAL[UNK] if model.get("unk_token") is not None else None
        if model["type"] == "WordPiece":
            model["unk_token"] = SPECIAL[UNK]
        if "merges" in model:
            model["merges"] = [
                merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]
            ]
    return {
        **state,
        "model": model,
        "pre_tokenizer": json.loads(json.dumps(state.get("pre_tokenizer"))),
    }


def _marked(state: Mapping[str, Any]) -> dict[str, Any]:
    """Only what encodes and decodes a text, with the mark of an imported tokenizer."""
    normalizer = state.get("normalizer")
    inner = {"type": "Sequence", "normalizers": [normalizer] if normalizer else []}
    # a sequence in a sequence, which no recipe of Regard begins with, marks an imported tokenizer
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [inner]},
        "pre_tokenizer": state.get("pre_tokenizer"),
        "post_processor": None,
        "decoder": state.get("decoder"),
        "model": state["model"],
    }


def _add_prefix_space(part: Any) -> None:
    if isinstance(part, dict):
        if part.get("type") == "ByteLevel":
            part["add_prefix_space"] = True
        for inner in part.get("pretokenizers", []):
            _add_prefix_space(inner)
