"""Inputs that are vectors instead of words: frames, features, embeddings."""

import json
import re
from pathlib import Path

import numpy as np

from regard.data import resolve
from regard.data.arrays import array
from regard.data.tokenizer import Tokenizer
from regard.errors import RegardError
from regard.files import write_text

FILE = "features.json"
ROWS = 64
"""Sequences of vectors that are written to a corpus at once: they are larger than texts."""
NUMBERED = re.compile(r"(.+\.npy)\[(\d+)\]", re.IGNORECASE)


def size_of(value: object) -> int | None:
    """The size of the vectors of an example; None if it has words."""
    return int(value.shape[-1]) if isinstance(value, np.ndarray) else None


def fit(value: object, features: int | None, where: str) -> None:
    """Refuse vectors where words are expected, words where vectors are, and vectors of another
    size than those of the training data."""
    size = size_of(value)
    if (size is None) != (features is None):
        found, expected = ("words", "vectors") if size is None else ("vectors", "words")
        raise RegardError(f"{where}: {found} where the training data has {expected}")
    if size != features:
        raise RegardError(
            f"{where}: vectors of {size} numbers, but those of the training data have {features}"
        )


def sequence(given: object, features: int) -> np.ndarray:
    """One sequence [t, d]: an array, or the name of a `.npy` file of one, [t, d] or [d].

    `x.npy[3]` is the fourth sequence of a file of several.
    """
    if isinstance(given, np.ndarray):
        return _sound(given, features, "an array")
    name = str(given).strip()
    if not name.lower().endswith(".npy") and not NUMBERED.fullmatch(name):
        raise RegardError(
            f"{name[:60]!r}: this run reads vectors: expected the name of a .npy file, or x.npy[3]"
        )
    numbered = None if Path(name).is_file() else NUMBERED.fullmatch(name)
    (source,) = resolve(numbered[1] if numbered else name)
    with array(source) as values:
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
        return _sound(values, features, name)


def tokens(tokenizer: Tokenizer | None) -> Tokenizer:
    """The tokenizer of a run of words, which a run of vectors has not."""
    if tokenizer is None:
        raise RegardError("this run reads vectors, which have no words")
    return tokenizer


def save_size(folder: Path, features: int) -> None:
    """Keep the size of the vectors in a run."""
    write_text(folder / FILE, json.dumps({"features": features}) + "\n")


def load_size(folder: Path) -> int | None:
    """What `save_size` kept; None for a run of words."""
    path = folder / FILE
    try:
        return int(json.loads(path.read_text("utf-8"))["features"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RegardError(f"{path}: the size of vectors cannot be read ({error})") from error


def _sound(values: np.ndarray, features: int, name: str) -> np.ndarray:
    if values.ndim not in (1, 2) or values.shape[-1] != features or values.dtype.kind not in "fiub":
        raise RegardError(
            f"{name}: {values.dtype} of shape {list(values.shape)}: expected numbers [t, "
            f"{features}] or [{features}], as in training"
        )
    numbers = np.atleast_2d(np.asarray(values, dtype=np.float32))
    if not np.isfinite(numbers).all():
        raise RegardError(f"{name}: holds NaN or infinite values")
    return numbers
