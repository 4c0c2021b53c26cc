"""Words of a text, as a reader would point at them, whatever tokens a model sees."""

from bisect import bisect_right
from collections.abc import Sequence

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

LETTER, DIGIT = r"[\p{L}\p{M}]", r"\p{N}"
MARK = r"[^\s\p{L}\p{M}\p{N}]"
"""What is neither blank nor letter nor digit: punctuation, signs, symbols."""

UNSPACED = r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
"""Scripts that put no space between words: a letter and its marks count as one word, for want of
a dictionary. Each Chinese character does, and each run of Hiragana or of Katakana."""

_WORD = "|".join(
    [
        r"\p{Han}\p{M}*",
        r"[\p{Hiragana}ー]+",
        r"[\p{Katakana}ー]+",
        rf"[{UNSPACED}&&\p{{L}}]\p{{M}}*",
        rf"(?:(?!\p{{Han}}|\p{{Hiragana}}|\p{{Katakana}}|{UNSPACED}){LETTER})+",
        r"\p{N}[\p{N}\p{M}]*",
        r"\s+",
        r"(.)\1*\p{M}*",
    ]
)


def word_offsets(text: str) -> list[tuple[int, int]]:
    """Start and end of each word; punctuation stands by itself.

    >>> text = "l'homme, 東京..."
    >>> [text[start:end] for start, end in word_offsets(text)]
    ['l', "'", 'homme', ',', '東', '京', '...']
    """
    pieces = Split(Regex(_WORD), "isolated").pre_tokenize_str(text)
    return [place for piece, place in pieces if not piece.isspace()]


def token_to_word(
    tokens: Sequence[tuple[int, int]], word_spans: Sequence[tuple[int, int]]
) -> list[int | None]:
    """The word in which each token lies (in which most of it lies); None for blanks and marks.

    Both are given as spans of one text.

    >>> token_to_word([(0, 2), (2, 4), (4, 4), (5, 9)], [(0, 4), (5, 8), (8, 9)])
    [0, 0, None, 1]
    """
    starts = [start for start, _ in word_spans]
    found: list[int | None] = []
    for start, end in tokens:
        best, most = None, 0
        for i in range(max(bisect_right(starts, start) - 1, 0), len(word_spans)):
            if word_spans[i][0] >= end:
                break
            shared = min(end, word_spans[i][1]) - max(start, word_spans[i][0])
            if shared > most:
                best, most = i, shared
        found.append(best)
    return found
