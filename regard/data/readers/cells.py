"""Contents of a table cell: a text, labels, or the words or tags of a sentence."""

from collections.abc import Sequence

from regard.data.readers.columns import Role
from regard.data.readers.lines import LINE_LIMIT, clean_line
from regard.errors import RegardError


def text_cell(value: object, role: Role, where: str) -> str | None:
    """The text of a cell, stripped; empty if it is missing, None if it is too long."""
    if value is None or (isinstance(value, float) and value != value):  # NaN: missing
        return ""
    if isinstance(value, (bool, int, float)):
        return str(value)
    if not isinstance(value, str):
        kind = type(value).__name__
        raise RegardError(f"{where}: the {role.option} column holds a {kind}: expected text")
    if len(value) > LINE_LIMIT:
        return None
    return clean_line(_check_characters(value, where))


def text_cells(
    values: tuple[object, ...] | None, roles: Sequence[Role], where: str
) -> list[str | None]:
    """The texts of one row: all None if the row is too long, all empty if it is empty."""
    if not values:
        return [None if values is None else ""] * len(roles)
    return [text_cell(value, role, where) for value, role in zip(values, roles, strict=True)]


def label_cell(value: object, role: Role, where: str, separator: str | None) -> tuple[str, ...]:
    """The labels of a cell: a list, one label, or several with a separator between them."""
    if isinstance(value, (list, tuple)):
        texts = [text_cell(part, role, where) for part in value]
    else:
        whole = text_cell(value, role, where)
        texts = [*whole.split(separator)] if whole and separator else [whole]
    labels = [text.strip() for text in texts if text is not None]
    if len(labels) < len(texts):
        raise RegardError(
            f"{where}: label of more than {LINE_LIMIT:,} characters: is this the label column?"
        )
    if "" in labels or (not labels and not isinstance(value, (list, tuple))):
        raise RegardError(f"{where}: no label: expected one in the {role.option} column")
    return tuple(dict.fromkeys(labels))


def word_cell(value: object, role: Role, where: str) -> tuple[str, ...] | None:
    """The words (or tags) of a cell: a list, or a text that is split at white space."""
    if not isinstance(value, (list, tuple)):
        text = text_cell(value, role, where)
        return None if text is None else tuple(text.split())
    words = [text_cell(part, role, where) for part in value]
    if any(word is None for word in words):
        return None
    if not all(words):
        raise RegardError(
            f"{where}: empty string in the list of the {role.option} column: expected a word or tag"
        )
    return tuple(str(word) for word in words)


def _check_characters(text: str, where: str) -> str:
    """The text, unless it has characters that JSON can escape but no UTF-8 file can hold."""
    if "\0" in text:
        raise RegardError(f"{where}: NUL character: is this text?")
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise RegardError(
                f"{where}: half a character (a lone surrogate): write the file again as UTF-8"
            ) from error
    return text
