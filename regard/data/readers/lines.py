"""Lines of text from bytes: UTF-8, any newline, byte-order mark, Unicode NFC, bounded memory."""

import unicodedata
from collections.abc import Iterator
from io import BufferedIOBase

from regard.data.readers.sources import Source
from regard.errors import RegardError

LINE_LIMIT = 1 << 20
"""Bytes of the longest line that is accepted; longer ones are counted as too long, or split."""

BLOCK = 1 << 16
BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")


def lines(source: Source, limit: int = LINE_LIMIT) -> Iterator[tuple[int, str | None]]:
    """Number and text of each line; None for a line of more than `limit` bytes."""
    with source.open() as stream:
        for number, raw in enumerate(raw_lines(stream, limit), 1):
            yield number, None if raw is None else decode(raw, source.name, number, number == 1)


def line_pieces(source: Source, limit: int = LINE_LIMIT) -> Iterator[tuple[int, str, bool]]:
    """Number and text of each line or, over `limit` bytes, of its pieces; True if more follow."""
    with source.open() as stream:
        number, first = 1, True
        for raw, ended in _raw_pieces(stream, limit):
            yield number, decode(raw, source.name, number, first), not ended
            number, first = number + ended, False


def first_line(source: Source) -> str:
    """The first line that is not blank, to recognize a format; empty if there is none."""
    return next((text for _, text in lines(source) if text and not text.isspace()), "")


def decode(raw: bytes, name: str, number: int, first: bool = False) -> str:
    """The text of one raw line; an error names the file, line and byte (from 1).

    >>> decode(b"caf\\xc3\\xa9", "a.txt", 2)
    'café'
    >>> decode(b"caf\\xe9", "a.txt", 2)
    Traceback (most recent call last):
    regard.errors.RegardError: a.txt:2:4: byte 0xe9 is not UTF-8: convert the file, for example...
    """
    shift = 0
    if first:
        if raw[:2] in UTF16:
            raise RegardError(
                f"{name}:1:1: UTF-16 text: convert the file with iconv -f UTF-16 -t UTF-8"
            )
        shift, raw = len(BOM) * raw.startswith(BOM), raw.removeprefix(BOM)
    nul = raw.find(b"\0")
    if nul >= 0:
        raise RegardError(f"{name}:{number}:{shift + nul + 1}: NUL byte: is this a text file?")
    try:
        return to_nfc(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        place = f"{name}:{number}:{shift + error.start + 1}"
        raise RegardError(
            f"{place}: byte 0x{raw[error.start]:02x} is not UTF-8: "
            "convert the file, for example with iconv -f LATIN1 -t UTF-8"
        ) from error


def to_nfc(text: str) -> str:
    """The text in Unicode normal form C, in which words that look equal are equal."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def clean_line(text: str) -> str:
    """A text as every command reads it: in normal form C, without blanks at its ends.

    >>> clean_line(" the cat sat . \\n")
    'the cat sat .'
    """
    return to_nfc(text).strip()


def raw_lines(stream: BufferedIOBase, limit: int = LINE_LIMIT) -> Iterator[bytes | None]:
    """Lines without their newline; None for a line over the limit, whose bytes are dropped.

    Lines end at \\n, \\r\\n or \\r, and are yielded as soon as they have arrived.
    """
    pending, skipping = b"", False
    while block := stream.read1(BLOCK):
        parts = (pending + block).splitlines(keepends=True)
        # A carriage return at the end of a block may be half of \r\n: it waits for the next one.
        pending = b"" if parts[-1].endswith(b"\n") else parts.pop()
        for part in parts:
            raw = part.rstrip(b"\r\n")
            if not skipping:
                yield None if len(raw) > limit else raw
            skipping = False
        # One byte more than the limit may be that carriage return.
        if not skipping and len(pending) > limit + 1:
            skipping = True
            yield None  # at once: this line may never end
        if skipping:
            pending = b"\r" if pending.endswith(b"\r") else b""
    if pending and not skipping:
        raw = pending.rstrip(b"\r\n")
        yield None if len(raw) > limit else raw


def _raw_pieces(stream: BufferedIOBase, limit: int) -> Iterator[tuple[bytes, bool]]:
    """Lines, or their pieces if they are too long; True for the last piece of a line."""
    pending = b""
    while block := stream.read(BLOCK):
        parts = (pending + block).splitlines(keepends=True)
        pending = b"" if parts[-1].endswith(b"\n") else parts.pop()
        for part in parts:
            raw = part.rstrip(b"\r\n")
            while len(raw) > limit:
                place = _split_point(raw, limit)
                yield raw[:place], False
                raw = raw[place:]
            yield raw, True
        while len(pending) > limit + 1:
            place = _split_point(pending, limit)
            yield pending[:place], False
            pending = pending[place:]
    if pending:
        yield pending.rstrip(b"\r\n"), True


def _split_point(raw: bytes, limit: int) -> int:
    """Where to split a long line: at its last space within the limit, else between characters."""
    space = raw.rfind(b" ", 1, limit)
    if space > 0:
        return space
    place = limit
    while place > 1 and raw[place] & 0xC0 == 0x80:  # a continuation byte of UTF-8
        place -= 1
    return place if place > 1 else limit
