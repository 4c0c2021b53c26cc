"""Inputs that are vectors instead of words: frames, features, embeddings."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from regard.atomic_files import write_text
from regard.data import Tagged, resolve
from regard.data.readers.arrays import open_array
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.errors import RegardError
from regard.verified_files import MEBIBYTE, read_json

FILE = "features.json"
CHUNK_ROWS = 64
"""Sequences of vectors that are written to a corpus in one chunk: they are larger than texts."""
NUMBERED = re.compile(r"(.+\.npy)\[(\d+)\]", re.IGNORECASE)


def size_of(value: object) -> int | None:
    """The size of the vectors of an example; None if it has words."""
    return int(value.shape[-1]) if isinstance(value, np.ndarray) else None


def check_input(value: object, features: int | None, where: str) -> None:
    """Refuse vectors where words are expected, words where vectors are, and vectors of another
    size than those of the training data."""
    size = size_of(value)
    if (size is None) != (features is None):
        given, expected = ("words", "vectors") if size is None else ("vectors", "words")
        raise RegardError(f"{where}: {given} where the training data has {expected}")
    if size != features:
        raise RegardError(
            f"{where}: vectors of {size} numbers, but those of the training data have {features}"
        )


def read_sequence(given: object, features: int) -> np.ndarray:
    """One sequence [t, d]: an array, or the name of a `.npy` file of one, [t, d] or [d].

    `x.npy[3]` is the fourth sequence of a file of several.
    """
    if isinstance(given, np.ndarray):
        return _check_numbers(given, features, "an array")
    name = str(given).strip()
    if not name.lower().endswith(".npy") and not NUMBERED.fullmatch(name):
        raise RegardError(
            f"{name[:60]!r}: this run reads vectors: expected the name of a .npy file, or x.npy[3]"
        )
    numbered = None if Path(name).is_file() else NUMBERED.fullmatch(name)
    (source,) = resolve(numbered[1] if numbered else name)
    with open_array(source) as values:
        if numbered:
            number = int(numbered[2])
            if values.ndim < 2 or number >= len(values):
                raise RegardError(f"{name}: no such sequence: shape {list(values.shape)}")
            values = values[number]
        elif values.ndim > 2:
            raise RegardError(
                f"{name}: shape {list(values.shape)} holds several sequences: name one of them, "
                f"as in {name}[0]"
            )
        return _check_numbers(values, features, name)


def require_tokenizer(tokenizer: Tokenizer | None) -> Tokenizer:
    """The tokenizer of a run that reads words; one that reads vectors has none."""
    if tokenizer is None:
        raise RegardError("this run reads vectors, which have no words")
    return tokenizer


def save_size(folder: Path, features: int) -> None:
    """Write the size of the vectors into a run folder."""
    write_text(folder / FILE, json.dumps({"features": features}) + "\n")


def load_size(folder: Path) -> int | None:
    """What `save_size` wrote; None for a run that reads words."""
    path = folder / FILE
    try:
        features = read_json(path, MEBIBYTE)["features"]
    except FileNotFoundError:
        return None
    except (OSError, KeyError, TypeError) as error:
        raise RegardError(f"{path}: the size of vectors cannot be read ({error})") from error
    if type(features) is not int or features < 1:
        raise RegardError(f"{path}: expected the size of vectors, 1 or more, got {features!r}")
    return features


def _check_numbers(values: np.ndarray, features: int, name: str) -> np.ndarray:
    if values.ndim not in (1, 2) or values.shape[-1] != features or values.dtype.kind not in "fiub":
        raise RegardError(
            f"{name}: {values.dtype} of shape {list(values.shape)}: expected numbers [t, "
            f"{features}] or [{features}], as in training"
        )
    numbers = np.atleast_2d(np.asarray(values, dtype=np.float32))
    if not np.isfinite(numbers).all():
        raise RegardError(f"{name}: holds NaN or infinite values")
    return numbers


def text_of_example(example: Any) -> str:
    """The text of an example with one text, to be explained."""
    text = example.words if isinstance(example, Tagged) else example.text
    if isinstance(text, np.ndarray):
        raise RegardError(f"{example.where}: vectors instead of words cannot be explained")
    return text if isinstance(text, str) else " ".join(text)
