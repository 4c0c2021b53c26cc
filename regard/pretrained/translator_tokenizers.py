"""The tokenizers of a pretrained translator: one for both sides, or one of each side.

Both sides number their tokens alike, since they share a table of word vectors.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int

from regard.data.tokenizers.pretrained_tokenizer import (
    MISSING,
    import_tokenizer,
    make_imported,
)
from regard.data.tokenizers.recipes import HIDDEN, SPECIAL, UNK
from regard.data.tokenizers.sentencepiece_model import SentencePieceModel, read_sentencepiece
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.errors import RegardError
from regard.models.pretrained.architecture import TranslatorArchitecture
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.tokenizer_folder import FILE, check_size, read_special_names, read_state
from regard.verified_files import read_json

SOURCE, TARGET, PIECES, VOCABULARY = "source.spm", "target.spm", "spiece.model", "vocab.json"


class TranslatorTokenizers(NamedTuple):
    """The tokenizers of both sides, and the row of each of their tokens in the model's tables."""

    source: Tokenizer
    target: Tokenizer
    rows: Int[np.ndarray, "v"]
    special: tuple[str | None, ...]
    """What the model calls `<pad>`, `<unk>`, `<bos>` and `<eos>`."""


def read_translator_tokenizers(
    checkpoint: Checkpoint, architecture: TranslatorArchitecture
) -> TranslatorTokenizers:
    """The tokenizers of a model."""
    folder = checkpoint.folder
    if (folder / SOURCE).exists() or (folder / TARGET).exists():
        return _read_two(checkpoint, architecture)
    names = read_special_names(folder)
    unknown, end = names.get("unk_token", "<unk>"), names.get("eos_token", "</s>")
    padding = names.get("pad_token", "<pad>")
    # without a token of its own, the decoder begins with padding
    special: tuple[str | None, ...] = (None, unknown, padding, end)
    if architecture.leads:
        special = (padding, unknown, names.get("bos_token", "<s>"), end)
    if (folder / FILE).exists() or not (folder / PIECES).exists():
        state, where = read_state(folder, names), folder / FILE
    else:
        where = folder / PIECES
        pieces = read_sentencepiece(where)
        vocabulary = [[piece, score] for piece, score, _ in pieces.pieces]
        state = pieces.tokenizer_state(vocabulary, UNK)
    imported = import_tokenizer(state, special, where, rows=architecture.vocabulary)
    check_size(imported, where, architecture.vocabulary)
    _check_begin(checkpoint, imported.rows, leads=architecture.leads)
    return TranslatorTokenizers(imported.tokenizer, imported.tokenizer, imported.rows, special)


def _check_begin(checkpoint: Checkpoint, rows: Int[np.ndarray, "v"], *, leads: bool) -> None:
    """Raise an error unless the config begins and ends texts with the tokenizer's tokens."""
    config = checkpoint.config
    expected = {"eos_token_id": rows[3], "decoder_start_token_id": rows[3 if leads else 2]}
    if leads:
        expected["forced_bos_token_id"] = rows[2]
    for name, row in expected.items():
        given = config.values.get(name)
        if given is not None and given != row:
            raise RegardError(
                f"{config.path}: {name} {str(given)[:40]} is not supported with this tokenizer: "
                f"expected {row}"
            )


def _read_two(checkpoint: Checkpoint, architecture: TranslatorArchitecture) -> TranslatorTokenizers:
    """SentencePiece models of both sides, whose pieces are numbered together in vocab.json."""
    folder = checkpoint.folder
    for name in (SOURCE, TARGET, VOCABULARY):
        if not (folder / name).is_file():
            raise RegardError(
                f"{folder / name}: is missing: the tokenizer of this model is {SOURCE}, {TARGET} "
                f"and {VOCABULARY}"
            )
    numbers = _read_numbers(folder / VOCABULARY, architecture.vocabulary)
    special = (None, "<unk>", "<pad>", "</s>")
    for needed in special[1:]:
        if needed not in numbers:
            raise RegardError(f"{folder / VOCABULARY}: has no token {needed}")
    others = sorted((n for n in numbers if n not in special), key=numbers.__getitem__)
    unnamed = sorted({*range(architecture.vocabulary)} - {*numbers.values()})
    rows = [MISSING, *(numbers[str(name)] for name in special[1:])]
    rows += [*(numbers[name] for name in others), *unnamed]
    sides = []
    for name in (SOURCE, TARGET):
        pieces = read_sentencepiece(folder / name)
        names = _side_names(others, pieces, with_codes=name == SOURCE)
        names += [[f"{HIDDEN}{row}", _lowest(pieces)] for row in unnamed]
        if name == SOURCE:  # pieces that the model does not know, and reads as unknown
            names += [[p, s] for p, s in pieces.scores.items() if p not in numbers]
        vocabulary = [*([token, 0.0] for token in SPECIAL), *names]
        sides.append(make_imported(pieces.tokenizer_state(vocabulary, UNK), folder / name))
    found = np.array(rows, dtype=np.int64)
    _check_begin(checkpoint, found, leads=False)
    return TranslatorTokenizers(sides[0], sides[1], found, special)


def _read_numbers(path: Path, vocabulary: int) -> dict[str, int]:
    numbers = read_json(path)
    if not isinstance(numbers, dict) or not all(
        type(number) is int and 0 <= number < vocabulary for number in numbers.values()
    ):
        raise RegardError(
            f"{path}: expected tokens with numbers below {vocabulary:,}, the size of the model's "
            f"vocabulary: it is the tokenizer of another model"
        )
    if len({*numbers.values()}) < len(numbers):
        raise RegardError(f"{path}: two tokens have the same number")
    return numbers


def _side_names(
    tokens: list[str], pieces: SentencePieceModel, *, with_codes: bool
) -> list[list[Any]]:
    """Tokens with their scores on one side; those that its texts cannot have are hidden.

    The code of a language before a text, such as >>fra<<, is a word of its own.
    """
    scores, lowest = pieces.scores, _lowest(pieces)
    names: list[list[Any]] = []
    for token in tokens:
        if with_codes and token.startswith(">>") and token.endswith("<<"):
            names.append([f"▁{token}", 0.0])
        elif token in scores:
            names.append([token, scores[token]])
        else:
            names.append([token + HIDDEN, lowest])
    return names


def _lowest(pieces: SentencePieceModel) -> float:
    return min(pieces.scores.values())
