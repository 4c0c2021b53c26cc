"""A SentencePiece model file (.spm, .model), read without the library.

The file is a protocol buffer: fields, each with a number and a kind, then its value. Only the
fields that a unigram tokenizer needs are read; each length is checked against the file.

Kudo and Richardson, 2018, https://arxiv.org/abs/1808.06226
"""

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.verified_files import MEBIBYTE, read_bytes

MAX_FILE = 32 * MEBIBYTE
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""Kinds of fields."""
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""Types of pieces."""
UNIGRAM = 1
SPACES = r" {2,}"


@dataclass(frozen=True)
class SentencePieceModel:
    """The pieces of a unigram model, and how it normalizes text."""

    pieces: tuple[tuple[str, float, int], ...]
    """Each piece with its score and its type, in the order of their numbers."""
    characters: bytes
    """The table of character replacements; empty for none."""

    @property
    def scores(self) -> dict[str, float]:
        """The score of each piece that a text can have."""
        return {piece: score for piece, score, kind in self.pieces if kind == NORMAL}

    def tokenizer_state(self, vocabulary: list[list[Any]], unknown: int) -> dict[str, Any]:
        """What a tokenizer.json with this vocabulary would be."""
        space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
        steps: list[dict[str, Any]] = [
            {"type": "Strip", "strip_left": False, "strip_right": True},
            {"type": "Replace", "pattern": {"Regex": SPACES}, "content": "▁"},
        ]
        if self.characters:
            table = base64.b64encode(self.characters).decode()
            steps.insert(0, {"type": "Precompiled", "precompiled_charsmap": table})
        return {
            "normalizer": {"type": "Sequence", "normalizers": steps},
            "pre_tokenizer": space,
            "decoder": space,
            "model": {"type": "Unigram", "unk_id": unknown, "vocab": vocabulary},
        }


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """The unigram model in a file; RegardError for damaged ones and other kinds of models."""
    content = read_bytes(path, MAX_FILE)
    try:
        return _parse(content)
    except (ValueError, struct.error) as error:
        raise RegardError(
            f"{path}: not a SentencePiece model that is supported ({error})"
        ) from error


def _parse(content: bytes) -> SentencePieceModel:
    pieces: list[tuple[str, float, int]] = []
    characters: bytes = b""
    kind: int | bytes = UNIGRAM
    for number, value in _fields(content):
        if number == 1:
            pieces.append(_piece(_message(value)))
        elif number == 2:
            kind = dict(_fields(_message(value))).get(3, UNIGRAM)
        elif number == 3:
            settings = dict(_fields(_message(value)))
            characters = _message(settings.get(2, b""))
            # the dummy prefix, extra spaces, spaces as ▁
            if any(settings.get(flag, 1) != 1 for flag in (3, 4, 5)):
                raise ValueError("it treats spaces in an unsupported way")
    if kind != UNIGRAM:
        raise ValueError("its pieces are not those of a unigram model")
    if not any(piece[2] == NORMAL for piece in pieces):
        raise ValueError("it has no pieces")
    if any(piece[2] == USER_DEFINED for piece in pieces):
        raise ValueError("it has user-defined pieces")
    return SentencePieceModel(tuple(pieces), characters)


def _piece(message: bytes) -> tuple[str, float, int]:
    text, score, kind = "", 0.0, NORMAL
    for number, value in _fields(message):
        if number == 1:
            text = _message(value).decode("utf-8")
        elif number == 2:
            (score,) = struct.unpack("<f", _message(value))
        elif number == 3 and isinstance(value, int):
            kind = value
    return text, score, kind


def _message(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a field is of the wrong kind")
    return value


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The number and the value of each field."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        kind = key & 7
        if kind == VARINT:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        if kind == BYTES:
            size, at = _varint(content, at)
        elif kind in (FIXED32, FIXED64):
            size = 4 if kind == FIXED32 else 8
        else:
            raise ValueError("it has a field of an unknown kind")
        if size > len(content) - at:
            raise ValueError("it ends in the middle of a field")
        yield key >> 3, content[at : at + size]
        at += size


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits per byte, least significant first, and where the next field is."""
    value = shift = 0
    while True:
        if at >= len(content) or shift > 63:
            raise ValueError("it ends in the middle of a number")
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
