"""The six tokenizers, built with the `tokenizers` package: how each splits and rejoins text.

`bpe` merges frequent pairs of bytes (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909, over
bytes as Radford et al. 2019); `unigram` keeps the pieces that make the text most probable (Kudo
2018, https://arxiv.org/abs/1804.10959); `word`, `character` and `bytes` are what they say;
`whitespace` takes words as they stand between blanks, for text that comes tokenized. Bytes
carry any text and give it back exactly; words and characters that training never saw are `<unk>`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from regard.data.tokenizers.words import DIGIT, LETTER, MARK, UNSPACED
from regard.errors import RegardError, unknown
from regard.progress import stage

SPECIAL = ("<pad>", "<unk>", "<bos>", "<eos>")
PAD, UNK, BOS, EOS = range(4)
NEVER_GENERATED = (PAD, BOS)
"""Tokens that no model generates, however probable: they stand for no text."""
TOKENIZERS = ("bpe", "unigram", "word", "whitespace", "character", "bytes")
WORD_LEVEL = ("word", "whitespace")
"""Tokenizers with one token per word, which keep given words whole."""
IMPORTED = {"WordPiece": "wordpiece", "BPE": "imported_bpe", "Unigram": "imported_unigram"}
"""Kinds of tokenizers of pretrained models, by their models."""
HIDDEN = "\ue000"
"""Ends the name of a token that no text encodes to, but that a pretrained model may write."""
GLUE = "\uffed"
"""Marks where two words touch without a space, on the side of the punctuation."""

LONGEST_RUN = 64
"""Letters, marks or blanks in a row beyond which bpe and unigram tokenizers split a word: training
takes time in the square of the longest word, and DNA or Chinese text has no blanks."""
MAX_LONG_RUNS = 2**19
"""Letters of longer runs that a unigram tokenizer learns from. Nearly every piece of 64 of them is
another word, so that each of its many passes over all words reads nearly all of the text again."""
_LONG_RUN = re.compile(rf"[^\W\d_]{{{LONGEST_RUN + 1},}}")
_RUN = f"{{1,{LONGEST_RUN}}}"
# No piece holds both a sign and a letter, so that no text can spell <eos> in one piece.
_PIECE = rf" ?{LETTER}{_RUN}| ?{DIGIT}{{1,3}}| ?{MARK}{_RUN}|\s{_RUN}(?!\S)|\s"
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


def text_normalizer(lowercase: bool) -> normalizers.Normalizer:
    """What is applied to every text first: Unicode normal form C, and lower case if chosen."""
    parts: list[normalizers.Normalizer] = [normalizers.NFC()]
    return normalizers.Sequence([*parts, normalizers.Lowercase()] if lowercase else parts)


def build_tokenizer(kind: str, model: models.Model, lowercase: bool) -> Tokenizer:
    """A tokenizer of one of the `TOKENIZERS`, around a model."""
    if kind not in TOKENIZERS:
        raise RegardError(unknown("tokenizer", kind, TOKENIZERS))
    tokenizer = Tokenizer(model)
    first: list[normalizers.Normalizer] = [normalizers.NFC()]
    if lowercase:
        first.append(normalizers.Lowercase())
    if kind == "word":
        tokenizer.normalizer = normalizers.Sequence([*first, *_glue()])
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    elif kind == "whitespace":
        tokenizer.normalizer = normalizers.Sequence([*first, _hide_special_tokens()])
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        tokenizer.decoder = decoders.WordPiece(prefix=GLUE, cleanup=False)
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


def word_decoder() -> decoders.Decoder:
    """Joins words with spaces, except where the glue says that they touch."""
    spaced = decoders.WordPiece(prefix=GLUE, cleanup=False)
    glue = [decoders.Replace(f"{GLUE} ", ""), decoders.Replace(GLUE, "")]
    return decoders.Sequence([spaced, decoders.Fuse(), *glue])


def recognize(tokenizer: Tokenizer) -> tuple[str, bool]:
    """Which of the `TOKENIZERS` this is, and whether it lower-cases."""
    return recipe_of(json.loads(tokenizer.to_str()))


def is_imported(state: Any) -> bool:
    """Whether a file holds the tokenizer of a pretrained model, as `import_tokenizer` writes it."""
    try:
        (first,) = state["normalizer"]["normalizers"]
        return bool(first["type"] == "Sequence")
    except (KeyError, TypeError, ValueError):
        return False


def recipe_of(state: Mapping[str, Any]) -> tuple[str, bool]:
    """Which of the `TOKENIZERS` a file holds, and whether it lower-cases."""
    if is_imported(state):
        return IMPORTED[state["model"]["type"]], False
    steps = [step["type"] for step in state["normalizer"]["normalizers"]]
    if state["model"]["type"] == "WordLevel":
        splitter = state["pre_tokenizer"]["type"]
        # the glue of `word` has several replacements, `whitespace` one
        separated = "whitespace" if steps.count("Replace") == 1 else "word"
        kind = separated if splitter == "WhitespaceSplit" else "character"
    elif state["model"]["type"] == "Unigram":
        kind = "unigram"
    else:
        kind = "bpe" if "Prepend" in steps else "bytes"
    return kind, "Lowercase" in steps


def train_tokenizer(
    kind: str, texts: Iterable[str | Sequence[str]], size: int, lowercase: bool
) -> tuple[Tokenizer, int]:
    """A tokenizer of at most `size` tokens, and how many tokens the data allows.

    A text is a string, or a list of words, which `word` tokenizers keep whole.
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
        return build_tokenizer(kind, models.BPE(vocabulary, []), lowercase), len(vocabulary)
    if kind in (*WORD_LEVEL, "character"):
        empty = build_tokenizer(kind, models.WordLevel(), lowercase)
        counts = _count(empty, kind, lowercase, _check_not_blank(texts))
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        kept = [*SPECIAL, *ranked[: size - len(SPECIAL)]]
        vocabulary = {token: i for i, token in enumerate(kept)}
        model = models.WordLevel(vocabulary, unk_token=SPECIAL[UNK])
        return build_tokenizer(kind, model, lowercase), len(SPECIAL) + len(ranked)
    tokenizer = build_tokenizer(
        kind, models.BPE() if kind == "bpe" else models.Unigram(), lowercase
    )
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
    given = _check_not_blank(texts)
    with stage(f"learning the {kind} vocabulary"):
        tokenizer.train_from_iterator(given if kind == "bpe" else _limit_long_runs(given), trainer)
    tokenizer = _make_deterministic(tokenizer)
    return tokenizer, tokenizer.get_vocab_size()


def _hide_special_tokens() -> normalizers.Normalizer:
    """A text that spells a special token gets the unknown word, as corpora mean with `<unk>`."""
    spelled = "|".join(special.strip("<>") for special in SPECIAL)
    return normalizers.Replace(Regex(rf"(?<!\S)<(?:{spelled})>(?!\S)"), SPECIAL[UNK])


def _glue() -> list[normalizers.Normalizer]:
    return [
        normalizers.Replace(GLUE, "■"),
        normalizers.Replace(Regex(rf"(?<=\S)(?={MARK})"), f" {GLUE}"),
        normalizers.Replace(Regex(rf"(?<={MARK})(?=\p{{L}}|{DIGIT})"), f"{GLUE} "),
        normalizers.Replace(Regex(_TOUCHING), f" {GLUE}"),
    ]


def _check_not_blank(texts: Iterable[str | Sequence[str]]) -> Iterator[str | list[str]]:
    """The texts; an error at the end if all of them are blank."""
    has_text = False
    for text in texts:
        has_text = has_text or any(part and not part.isspace() for part in text)
        yield text if isinstance(text, str) else list(text)
    if not has_text:
        raise RegardError("no text to learn a vocabulary from: all texts are blank")


def _limit_long_runs(texts: Iterable[str | list[str]]) -> Iterator[str | list[str]]:
    """The texts without what exceeds `MAX_LONG_RUNS` in all of them together."""
    left = MAX_LONG_RUNS

    def limited(run: re.Match[str]) -> str:
        nonlocal left
        kept = run[0][:left]
        left -= len(kept)
        return kept

    for text in texts:
        if isinstance(text, str):
            yield _LONG_RUN.sub(limited, text)
        else:
            yield [_LONG_RUN.sub(limited, word) for word in text]


def _count(
    tokenizer: Tokenizer, kind: str, lowercase: bool, texts: Iterable[str | Sequence[str]]
) -> Counter[str]:
    counts: Counter[str] = Counter()
    pieces: Counter[str] = Counter()  # no word reaches beyond a space
    whole_words, with_glue = text_normalizer(lowercase), tokenizer.normalizer
    for text in texts:
        if kind == "character":
            joined = text if isinstance(text, str) else "".join(text)
            counts.update(whole_words.normalize_str(joined))
        elif isinstance(text, str):
            pieces.update(text.split(" "))
        else:
            counts.update(whole_words.normalize_str(word) for word in text)
    for piece, count in pieces.items():
        for word in with_glue.normalize_str(piece).split():
            counts[word] += count
    for never in (*SPECIAL, ""):
        counts.pop(never, None)
    return counts


def _make_deterministic(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer without chance in its scores, and without text that encodes to a special token.

    The trainers register the special tokens as strings to search for in the text. The unigram
    trainer sums in varying order, and scores the bytes that it never saw in hash-table order:
    rounding and one common score for these bytes make the result the same every time.
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
