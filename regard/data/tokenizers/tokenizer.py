"""Text to numbers and back, with offsets that point into the original text."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import tokenizers

from regard.atomic_files import write_text
from regard.data.tokenizers.recipes import (
    BOS,
    EOS,
    GLUE,
    HIDDEN,
    IMPORTED,
    LONGEST_RUN,
    NEVER_GENERATED,
    PAD,
    SPECIAL,
    UNK,
    WORD_LEVEL,
    recognize,
    text_normalizer,
    train_tokenizer,
    word_decoder,
)
from regard.data.tokenizers.tokenizer_file import read_tokenizer

__all__ = ["BOS", "EOS", "NEVER_GENERATED", "PAD", "SPECIAL", "UNK", "Encoded", "Tokenizer"]


MAX_KNOWN = 1 << 17
"""Pieces of texts whose tokens a word tokenizer remembers."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of a text: numbers, where each stands in the text, and what it looks like there.

    A token that is nothing but the space that begins every text points at the first letter.
    `words` says which of the given words each token is of, if the text was given in words; offsets
    are then those inside the word.
    """

    ids: list[int]
    offsets: list[tuple[int, int]]
    tokens: list[str]
    words: list[int]


class Tokenizer:
    """A trained tokenizer: `Tokenizer.train`, `Tokenizer.load`, then `encode` and `decode`.

    The numbers 0 to 3 are `<pad>`, `<unk>`, `<bos>` and `<eos>`; no text encodes to any of them,
    but for unknown words and characters, which are `<unk>`.

    >>> tokenizer = Tokenizer.train("word", ["the cat sat.", "the dog sat."], size=100)
    >>> encoded = tokenizer.encode("the dog, sat.")
    >>> encoded.tokens, encoded.offsets[-1]
    (['the', 'dog', ',', 'sat', '.'], (12, 13))
    >>> tokenizer.decode(encoded.ids)
    'the dog <unk> sat.'
    """

    def __init__(self, inner: tokenizers.Tokenizer, note: str = "") -> None:
        self._inner = inner
        self._vocabulary: dict[str, int] = inner.get_vocab(with_added_tokens=False)
        wrong = [s for i, s in enumerate(SPECIAL) if self._vocabulary.get(s) != i]
        if wrong:
            raise ValueError(f"{wrong[0]} is not token {SPECIAL.index(wrong[0])}")
        self.kind, self.lowercase = recognize(inner)
        if self.kind == "word":
            inner.decoder = word_decoder()  # here, since files of earlier versions lack it
        self.note = note
        self._normalizer = text_normalizer(self.lowercase)
        self._known: dict[str, list[int]] = {}
        self._words: dict[str, int] = {}

    @classmethod
    def train(
        cls,
        kind: str,
        texts: Iterable[str | Sequence[str]],
        size: int = 8000,
        lowercase: bool = False,
    ) -> "Tokenizer":
        """Learn at most `size` tokens (the 4 special ones included) from texts or lists of words.

        The same texts give the same tokenizer. If the data does not allow `size` tokens, there are
        fewer, and `note` says so.
        """
        inner, possible = train_tokenizer(kind, texts, size, lowercase)
        learned = inner.get_vocab_size(with_added_tokens=False)
        fewer = possible < size and kind != "bytes"
        note = f"{kind} vocabulary: {learned:,} tokens, not {size:,}: the data has no more"
        return cls(inner, note if fewer else "")

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return len(self._vocabulary)

    def encode(self, text: str) -> Encoded:
        """The tokens of one text."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[Encoded]:
        """The tokens of several texts, in parallel."""
        encodings = self._inner.encode_batch(list(texts), add_special_tokens=False)
        return [self._encoded(text, e) for text, e in zip(texts, encodings, strict=True)]

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers alone of several texts: the fast way, for training."""
        if self.kind in WORD_LEVEL:
            return self._ids_by_word(texts)
        if self.kind in ("bpe", "unigram"):
            return self._ids_by_piece(texts)
        # Sentences with several translations stand one after the other in many corpora.
        distinct = dict.fromkeys(texts)
        inner = self._inner  # its fast way leaves out the pieces
        encode = inner.encode_batch if self.kind == "imported_unigram" else inner.encode_batch_fast
        encodings = encode(list(distinct), add_special_tokens=False)
        known = {text: self._ids(e) for text, e in zip(distinct, encodings, strict=True)}
        return [list(known[text]) for text in texts]

    def _ids_by_piece(self, texts: Sequence[str]) -> list[list[int]]:
        """The same, since no token reaches beyond a space: each distinct word is read once.

        That is so where single spaces stand between words; other texts are read as a whole.
        """
        rows = [words if (words := text.split(" ")) == text.split() else [text] for text in texts]
        read = self._read_pieces(chain.from_iterable(rows))
        return [list(chain.from_iterable(map(read.__getitem__, row))) for row in rows]

    def _ids_by_word(self, texts: Sequence[str]) -> list[list[int]]:
        """The same for tokenizers most of whose tokens are whole words."""
        rows = [text.split(" ") for text in texts]
        numbers: list[list[Any]] = [list(map(self._words.get, row)) for row in rows]
        # Most pieces are one known token; the tokens of the others are put in their place.
        others = [
            (i, [place for place, number in enumerate(row) if number is None])
            for i, row in enumerate(numbers)
            if None in row
        ]
        read = self._read_pieces([rows[i][place] for i, places in others for place in places])
        for i, places in others:
            for place in reversed(places):
                numbers[i][place : place + 1] = read[rows[i][place]]
        return numbers

    def _read_pieces(self, pieces: Iterable[str]) -> dict[str, list[int]]:
        """The tokens of each of these pieces; those of short ones are remembered."""
        known = self._known
        new = [piece for piece in dict.fromkeys(pieces) if piece not in known]
        if not new:
            return known
        encodings = self._inner.encode_batch_fast(new, add_special_tokens=False)
        read = {piece: encoding.ids for piece, encoding in zip(new, encodings, strict=True)}
        if len(known) + len(read) > MAX_KNOWN:
            self._known, self._words = {}, {}
        for piece, ids in read.items():
            if len(piece) <= LONGEST_RUN:
                self._known[piece] = ids
                if len(ids) == 1:
                    self._words[piece] = ids[0]
        return known | read

    def encode_words(self, words: Sequence[str]) -> Encoded:
        """The tokens of a sentence given in words: at least one per word, with its number."""
        return self.encode_words_batch([words])[0]

    def encode_words_batch(self, sentences: Sequence[Sequence[str]]) -> list[Encoded]:
        """The tokens of several sentences given in words."""
        if self.kind in WORD_LEVEL:
            return [self._whole_words(words) for words in sentences]
        given = [list(words) for words in sentences]
        encodings = self._inner.encode_batch(given, is_pretokenized=True, add_special_tokens=False)
        return [self._of_words(words, e) for words, e in zip(given, encodings, strict=True)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some tokens; `<pad>`, `<bos>` and `<eos>` are left out."""
        shown = [int(i) for i in ids if int(i) not in (PAD, BOS, EOS)]
        text: str = self._inner.decode(shown, skip_special_tokens=False)
        return text.replace(HIDDEN, "") if self.kind in IMPORTED.values() else text

    def decode_batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The texts of several rows of tokens."""
        return [self.decode(row) for row in rows]

    def names(self) -> dict[str, int]:
        """The number of every token by its name in the file."""
        return dict(self._vocabulary)

    def vocabulary(self) -> list[str]:
        """Every token in order, as text; half characters are shown as U+FFFD."""
        names = sorted(self._vocabulary, key=self._vocabulary.__getitem__)
        if self.kind in IMPORTED.values():
            names = [name.replace(HIDDEN, "") for name in names]
        if self.kind in WORD_LEVEL:
            return [*SPECIAL, *(name.strip(GLUE) for name in names[len(SPECIAL) :])]
        if self.kind == "character":
            return names
        if self.kind in ("wordpiece", "imported_unigram"):
            return [*SPECIAL, *(name.replace("▁", " ") for name in names[len(SPECIAL) :])]
        if self.kind == "imported_bpe" and "ByteLevel" not in str(self._inner.decoder):
            return [*SPECIAL, *(name.replace("▁", " ") for name in names[len(SPECIAL) :])]
        byte = tokenizers.decoders.ByteLevel()
        return [*SPECIAL, *(byte.decode([name]) for name in names[len(SPECIAL) :])]

    def save(self, path: Path) -> None:
        """Write `tokenizer.json`, in the format of the `tokenizers` package."""
        write_text(path, self._inner.to_str(pretty=True) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read what `save` wrote, and nothing else."""
        return cls(read_tokenizer(path))

    @property
    def fingerprint(self) -> str:
        """A hash of all that decides how text is encoded."""
        return sha256(self._inner.to_str().encode()).hexdigest()

    def _encoded(self, text: str, encoding: Any) -> Encoded:
        offsets = self._trimmed(text, encoding.offsets)
        return Encoded(self._ids(encoding), offsets, [text[a:b] for a, b in offsets], [])

    def _ids(self, encoding: Any) -> list[int]:
        """The tokens of a text; a piece that is unknown on this side may be known on the other.

        Sides of a translator that number their pieces together are read so by `transformers`.
        """
        ids: list[int] = encoding.ids
        if self.kind == "imported_unigram" and UNK in ids:
            ids = [
                self._vocabulary.get(f"{piece}{HIDDEN}", UNK) if token == UNK else token
                for token, piece in zip(ids, encoding.tokens, strict=True)
            ]
        return self._plain(ids)

    def _plain(self, ids: list[int]) -> list[int]:
        """The tokens of a text, of which none is special but `<unk>`.

        A text that spells a special token cannot become it in a tokenizer of Regard; in one of a
        pretrained model it can.
        """
        if self.kind not in IMPORTED.values() or not {PAD, BOS, EOS}.intersection(ids):
            return ids
        return [UNK if token in (PAD, BOS, EOS) else token for token in ids]

    def _of_words(self, words: list[str], encoding: Any) -> Encoded:
        rows: list[list[tuple[int, tuple[int, int]]]] = [[] for _ in words]
        for token, span, number in zip(
            encoding.ids, encoding.offsets, encoding.word_ids, strict=True
        ):
            rows[number].append((token, span))
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        numbers: list[int] = []
        for number, (word, row) in enumerate(zip(words, rows, strict=True)):
            # A word that leaves nothing (an empty one) still needs its place.
            row = row or [(UNK, (0, len(word)))]
            ids += self._plain([token for token, _ in row])
            offsets += self._trimmed(word, [span for _, span in row])
            numbers += [number] * len(row)
        tokens = [words[n][a:b] for n, (a, b) in zip(numbers, offsets, strict=True)]
        return Encoded(ids, offsets, tokens, numbers)

    def _whole_words(self, words: Sequence[str]) -> Encoded:
        names = [self._normalizer.normalize_str(word) for word in words]
        ids = [UNK if n in SPECIAL else self._vocabulary.get(n, UNK) for n in names]
        spans = [(0, len(word)) for word in words]
        return Encoded(ids, spans, list(words), list(range(len(words))))

    def _trimmed(self, text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Spans as a reader would draw them: without the space before a word or the glue's letter,
        with the marks that were composed into their last letter."""
        starts = {start for start, _ in spans}
        trimmed: list[tuple[int, int]] = []
        last = 0
        for start, end in spans:
            if self.kind == "word":
                start = min(max(start, last), end)
            elif self.kind == "whitespace":  # a replaced word points at its last letter alone
                while start and not text[start - 1].isspace():
                    start -= 1
            elif self.kind in ("bpe", "unigram", *IMPORTED.values()):
                while end - start > 1 and text[start].isspace():
                    start += 1
            while end < len(text) and end not in starts and unicodedata.combining(text[end]):
                end += 1
            trimmed.append((start, end))
            last = end
        return trimmed
