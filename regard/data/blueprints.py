"""The five kinds of tokenizer, as parts of the `tokenizers` package: how each cuts and rejoins.

`bpe` merges frequent pairs of bytes (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909, over
bytes as Radford et al. 2019); `unigram` keeps the pieces that make the text most probable (Kudo
2018, https://arxiv.org/abs/1804.10959); `word`, `character` and `bytes` are what they say. Bytes
carry any text and give it back exactly; words and characters that training never saw are `<unk>`.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from regard.data.words import DIGIT, LETTER, MARK, UNSPACED
from regard.errors import RegardError, unknown

SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>")
PAD, UNK, BOS, EOS = range(4)
UNWRITTEN = (PAD, BOS)
"""What no model writes, however likely it holds it to be: they stand for nothing in a text."""
KINDS = ("bpe", "unigram", "word", "character", "bytes")
GLUE = "\uffed"
"""Stands where two words of the text touch, on the side of the punctuation."""

# No piece holds both a sign and a letter, so that no text can spell <eos> in one piece.
_PIECE = rf" ?{LETTER}+| ?{DIGIT}{{1,3}}| ?{MARK}+|\s+(?!\S)|\s"
_TOUCHING = "|".join(
    [
        rf"(?<={DIGIT})(?=\p{{L}})",
        rf"(?<={LETTER})(?={DIGIT}|\p{{Han}})",
        r"(?<=\p{Han})(?=\p{L})",
        rf"(?<={UNSPACED})(?=[{UNSPACED}&&\p{{L}}])",
        r"(?<=\p{Hiragana})(?=\p{Katakana})",
        r"(?<=\p{Katakana})(?=\p{Hiragana})",
    ]
)


def plain(lowercase: bool) -> normalizers.Normalizer:
    """What happens to every text first: Unicode normal form C, and lower case if asked."""
    parts: list[normalizers.Normalizer] = [normalizers.NFC()]
    return normalizers.Sequence([*parts, normalizers.Lowercase()] if lowercase else parts)


def build(kind: str, model: models.Model, lowercase: bool) -> Tokenizer:
    """A tokenizer of some kind around a model."""
    if kind not in KINDS:
        raise RegardError(unknown("tokenizer", kind, KINDS))
    tokenizer = Tokenizer(model)
    first: list[normalizers.Normalizer] = [normalizers.NFC()]
    if lowercase:
        first.append(normalizers.Lowercase())
    if kind == "word":
        tokenizer.normalizer = normalizers.Sequence([*first, *_glue()])
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    elif kind == "character":
        tokenizer.normalizer = normalizers.Sequence(first)
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        tokenizer.decoder = decoders.Fuse()
    else:
        byte = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.normalizer = normalizers.Sequence(first)
        tokenizer.pre_tokenizer = byte
        tokenizer.decoder = decoders.ByteLevel()
        if kind != "bytes":
            # A word is the same piece at the start of a text as after a space.
            tokenizer.normalizer = normalizers.Sequence([*first, normalizers.Prepend(" ")])
            pieces = pre_tokenizers.Split(Regex(_PIECE), "isolated")
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pieces, byte])
            joined = [decoders.ByteLevel(), decoders.Strip(" ", 1, 0)]
            tokenizer.decoder = decoders.Sequence(joined)
    return tokenizer


def unglued() -> decoders.Decoder:
    """Words with spaces between them, but for the marks that are glued to one."""
    spaced = decoders.WordPiece(prefix=GLUE, cleanup=False)
    glue = [decoders.Replace(f"{GLUE} ", ""), decoders.Replace(GLUE, "")]
    return decoders.Sequence([spaced, decoders.Fuse(), *glue])


def recognise(tokenizer: Tokenizer) -> tuple[str, bool]:
    """Of which kind a tokenizer is, and whether it ignores case: all that its file tells."""
    state = json.loads(tokenizer.to_str())
    steps = [step["type"] for step in state["normalizer"]["normalizers"]]
    if state["model"]["type"] == "WordLevel":
        cut = state["pre_tokenizer"]["type"]
        kind = "word" if cut == "WhitespaceSplit" else "character"
    elif state["model"]["type"] == "Unigram":
        kind = "unigram"
    else:
        kind = "bpe" if "Prepend" in steps else "bytes"
    return kind, "Lowercase" in steps


def train(
    kind: str, texts: Iterable[str | Sequence[str]], size: int, lowercase: bool
) -> tuple[Tokenizer, int]:
    """A tokenizer of at most `size` tokens, and how many the data would have given at most.

    A text is a string, or a list of words that are to stay whole where the kind allows it.
    """
    least = len(SPECIAL) + (256 if kind in ("bpe", "unigram", "bytes") else 1)
    if size < least:
        raise RegardError(
            f"a vocabulary of {size} is too small: {kind} needs at least {least} "
            f"({len(SPECIAL)} special tokens{' and 256 bytes' if least > 256 else ''})"
        )
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if kind == "bytes":
        vocabulary = {token: i for i, token in enumerate([*SPECIAL, *alphabet])}
        return build(kind, models.BPE(vocabulary, []), lowercase), len(vocabulary)
    if kind in ("word", "character"):
        empty = build(kind, models.WordLevel(), lowercase)
        counts = _count(empty, kind, lowercase, _something(texts))
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        kept = [*SPECIAL, *ranked[: size - len(SPECIAL)]]
        vocabulary = {token: i for i, token in enumerate(kept)}
        model = models.WordLevel(vocabulary, unk_token=SPECIAL[UNK])
        return build(kind, model, lowercase), len(SPECIAL) + len(ranked)
    tokenizer = build(kind, models.BPE() if kind == "bpe" else models.Unigram(), lowercase)
    common: dict[str, Any] = {
        "vocab_size": size,
        "show_progress": False,
        "initial_alphabet": alphabet,
    }
    trainer: trainers.Trainer
    if kind == "bpe":
        trainer = trainers.BpeTrainer(
            min_frequency=2, special_tokens=list(SPECIAL), max_token_length=64, **common
        )
    else:
        trainer = trainers.UnigramTrainer(
            special_tokens=list(SPECIAL), unk_token=SPECIAL[UNK], max_piece_length=32, **common
        )
    tokenizer.train_from_iterator(_something(texts), trainer)
    tokenizer = _settled(tokenizer)
    return tokenizer, tokenizer.get_vocab_size()


def _glue() -> list[normalizers.Normalizer]:
    return [
        normalizers.Replace(GLUE, "■"),
        normalizers.Replace(Regex(rf"(?<=\S)(?={MARK})"), f" {GLUE}"),
        normalizers.Replace(Regex(rf"(?<={MARK})(?=\p{{L}}|{DIGIT})"), f"{GLUE} "),
        normalizers.Replace(Regex(_TOUCHING), f" {GLUE}"),
    ]


def _something(texts: Iterable[str | Sequence[str]]) -> Iterator[str | list[str]]:
    """The texts; that there is nothing in any of them is an error."""
    found = False
    for text in texts:
        found = found or any(part and not part.isspace() for part in text)
        yield text if isinstance(text, str) else list(text)
    if not found:
        raise RegardError("no text to make a vocabulary from")


def _count(
    tokenizer: Tokenizer, kind: str, lowercase: bool, texts: Iterable[str | Sequence[str]]
) -> Counter[str]:
    counts: Counter[str] = Counter()
    whole, cut = plain(lowercase), tokenizer.normalizer
    for text in texts:
        if kind == "character":
            joined = text if isinstance(text, str) else "".join(text)
            counts.update(whole.normalize_str(joined))
        elif isinstance(text, str):
            counts.update(cut.normalize_str(text).split())
        else:
            counts.update(whole.normalize_str(word) for word in text)
    for never in (*SPECIAL, ""):
        counts.pop(never, None)
    return counts


def _settled(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer with nothing left to chance, and no text that means a special token.

    The trainers register the special tokens as strings to be found in the text, and the unigram
    trainer sums in varying order and scores the bytes it never saw in the order of a hash table.
    """
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = []
    if state["model"]["type"] == "Unigram":
        pieces = state["model"]["vocab"][len(SPECIAL) :]
        lowest = min(score for _, score in pieces)
        unseen = lowest + 1e-4 * 256
        settled = [
            [piece, round(lowest if len(piece) == 1 and score < unseen else score, 5)]
            for piece, score in pieces
        ]
        settled.sort(key=lambda entry: (-entry[1], entry[0]))
        state["model"]["vocab"][len(SPECIAL) :] = settled
    return Tokenizer.from_str(json.dumps(state))
