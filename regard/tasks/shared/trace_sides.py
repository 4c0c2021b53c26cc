"""The sides of a trace: tokens with their places in a text and the words that they are of."""

import re
from collections.abc import Iterable, Sequence

from regard.data.tokenizers.tokenizer import Tokenizer
from regard.data.tokenizers.words import token_to_word
from regard.trace import Side, Token

Span = tuple[int, int]


def word_spans(text: str) -> list[Span]:
    """Where the words of a text are, as `str.split` counts them.

    >>> word_spans(" the  cat ")
    [(1, 4), (6, 9)]
    """
    return [found.span() for found in re.finditer(r"\S+", text)]


def text_side(text: str, spans: Sequence[Span], *, first: str = "", last: str = "") -> Side:
    """A side of tokens at these places of a text, perhaps with special tokens at its ends."""
    numbers = token_to_word(spans, word_spans(text))
    tokens = [
        Token(text[start:end], start, end, word=number)
        for (start, end), number in zip(spans, numbers, strict=True)
    ]
    begin, end = (spans[0][0], spans[-1][1]) if spans else (0, len(text))
    before = [Token(first, begin, begin, special=True)] if first else []
    after = [Token(last, end, end, special=True)] if last else []
    return Side(text, (*before, *tokens, *after))


def named_side(names: Iterable[str]) -> Side:
    """A side that is no text, such as learned queries or experts."""
    return Side("", tuple(Token(name, special=True) for name in names))


def numbered_side(vectors: int) -> Side:
    """A side of vectors, which have a number each, from 1 on."""
    return Side("", tuple(Token(str(i + 1), word=i) for i in range(vectors)))


def decode_with_spans(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[str, list[Span]]:
    """The text of tokens that a model wrote, and where each stands in it.

    A text that is encoded again may have other tokens, so that places come from the text of the
    tokens up to each. Pieces of one character all stand at the character.
    """
    text = tokenizer.decode(ids)
    spans: list[Span] = []
    start = 0
    for i in range(len(ids)):
        end = _shared(tokenizer.decode(ids[: i + 1]), text)
        first, last = start, max(start, end)
        while last - first > 1 and text[first].isspace():
            first += 1
        if first == last or text[first:last].isspace():
            first, last = _piece(tokenizer, ids[i], text, first, last)
        spans.append((first, last))
        start = max(start, end)
    return text, spans


def _piece(tokenizer: Tokenizer, token: int, text: str, first: int, last: int) -> Span:
    """The place of a token that adds no letter: the character that it begins, or a blank."""
    if first < last and tokenizer.decode([token, token]).isspace():
        return first, last
    return last, min(last + 1, len(text))


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    most = min(len(one), len(other))
    return next((i for i in range(most) if one[i] != other[i]), most)
