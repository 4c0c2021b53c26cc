"""Tokenizers: round trips, offsets that point at the text, nothing that spells a special token."""

import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.tokenizers.recipes import TOKENIZERS
from regard.data.tokenizers.tokenizer import EOS, PAD, SPECIAL, UNK, Tokenizer
from regard.data.tokenizers.words import token_to_word, word_offsets
from regard.errors import RegardError

TEXTS = [
    "The early bird catches the worm, doesn't it?",
    "Ein Haus, zwei Häuser: 3.5 Meter (hoch)!",
    "l'homme n'a pas <unk> le chien <eos> <eos> <eos>",
    "東京は大きい。 हिन्दी में",
    "the bird, the worm; the early <pad> bird",
]


@pytest.fixture(scope="module", params=[k for k in TOKENIZERS if k != "whitespace"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer.train(request.param, TEXTS, size=400)


@pytest.fixture(scope="module")
def exact() -> list[Tokenizer]:
    return [Tokenizer.train(kind, TEXTS, size=300) for kind in ("bpe", "unigram", "bytes")]


def test_the_training_text_comes_back(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode_batch(tokenizer.ids(TEXTS)) == TEXTS
    assert [tokenizer.encode(t).ids for t in TEXTS] == tokenizer.ids(TEXTS)


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_bytes_bring_any_text_back(exact: list[Tokenizer], text: str) -> None:
    for tokenizer in exact:
        encoded = tokenizer.encode(text)
        assert tokenizer.decode(encoded.ids) == unicodedata.normalize("NFC", text)
        assert all(i >= len(SPECIAL) for i in encoded.ids)


@settings(deadline=None)
@given(st.lists(st.sampled_from([*SPECIAL, " ", "a", ".", "é", "<", "e\u0301", "東"]), max_size=9))
def test_no_text_spells_a_special_token(parts: list[str]) -> None:
    text = "".join(parts)
    for kind in TOKENIZERS:
        tokenizer = Tokenizer.train(kind, [text + "x", text] * 3, size=300)
        for encoded in (tokenizer.encode(text), tokenizer.encode_words(text.split())):
            assert not {PAD, 2, EOS} & set(encoded.ids)
            if kind not in ("word", "whitespace"):
                assert UNK not in encoded.ids


@settings(deadline=None)
@given(st.text(st.sampled_from("ab .,'<3é\u0301東のカक्\nΣİ"), max_size=25))
def test_offsets_point_at_the_text(exact: list[Tokenizer], text: str) -> None:
    whole = [Tokenizer.train(k, ["a b"], size=10) for k in ("word", "character")]
    for tokenizer in [*exact, *whole]:
        encoded = tokenizer.encode(text)
        assert len(encoded.ids) == len(encoded.offsets) == len(encoded.tokens)
        covered = {i for start, end in encoded.offsets for i in range(start, end)}
        assert covered >= {i for i, letter in enumerate(text) if not letter.isspace()}
        for (start, end), token in zip(encoded.offsets, encoded.tokens, strict=True):
            assert 0 <= start < end <= len(text)
            assert token == text[start:end]
        starts = [start for start, _ in encoded.offsets]
        assert starts == sorted(starts)


def test_tokens_as_they_look(tokenizer: Tokenizer) -> None:
    text = "the worm, (bird)"
    encoded = tokenizer.encode(text)
    spans = word_offsets(text)
    assert [text[a:b] for a, b in spans] == ["the", "worm", ",", "(", "bird", ")"]
    place = token_to_word(encoded.offsets, spans)
    for (start, end), word in zip(encoded.offsets, place, strict=True):
        if not text[start:end].isspace():
            assert word is not None
            assert spans[word][0] <= start < end <= spans[word][1]
    if tokenizer.kind == "word":
        assert encoded.tokens == ["the", "worm", ",", "(", "bird", ")"]


def test_given_words_keep_their_numbers(tokenizer: Tokenizer) -> None:
    given_words = ["the", "worm,", "", "<eos>", "bird"]
    encoded = tokenizer.encode_words(given_words)
    assert sorted(set(encoded.words)) == [0, 1, 2, 3, 4]
    assert encoded.words == sorted(encoded.words)
    assert EOS not in encoded.ids
    for token, number, (start, end) in zip(
        encoded.tokens, encoded.words, encoded.offsets, strict=True
    ):
        assert token == given_words[number][start:end]
    assert tokenizer.encode_words_batch([given_words, ["the"]])[0] == encoded
    assert tokenizer.encode_words([]).ids == []


def test_words_that_are_given_whole_stay_whole() -> None:
    tokenizer = Tokenizer.train("word", [["R.H.", "Saunders"], ["R.H."]], size=50)
    assert tokenizer.encode_words(["R.H.", "r.h.", "Saunders"]).ids == [4, UNK, 5]
    lower = Tokenizer.train("word", [["R.H.", "Saunders"], ["R.H."]], size=50, lowercase=True)
    assert lower.encode_words(["R.H.", "r.h.", "Saunders"]).ids == [4, 4, 5]


def test_lower_case_keeps_offsets(tokenizer: Tokenizer) -> None:
    lower = Tokenizer.train(tokenizer.kind, TEXTS, size=400, lowercase=True)
    assert lower.lowercase
    assert lower.decode(lower.encode("THE Worm").ids) == "the worm"
    encoded = lower.encode("THE")
    assert {i for start, end in encoded.offsets for i in range(start, end)} == {0, 1, 2}
    assert all(token.isupper() for token in encoded.tokens)


def test_saved_and_loaded_it_is_the_same(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    again.save(tmp_path / "again.json")
    first, second = (tmp_path / n for n in ("tokenizer.json", "again.json"))
    assert first.read_bytes() == second.read_bytes()
    assert (again.kind, again.size, again.lowercase) == (tokenizer.kind, tokenizer.size, False)
    assert again.fingerprint == tokenizer.fingerprint
    assert again.ids(TEXTS) == tokenizer.ids(TEXTS)
    assert again.encode_words(["<eos>"]).ids == tokenizer.encode_words(["<eos>"]).ids


def test_what_is_no_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(RegardError, match="cannot be read"):
        Tokenizer.load(path)
    for content in ("", "{}", '{"version": "1.0", "model": {"type": "BPE"}}', "\u00e9"):
        path.write_text(content, "utf-8")
        with pytest.raises(RegardError, match="not a tokenizer of Regard"):
            Tokenizer.load(path)


def test_the_same_texts_give_the_same_tokenizer() -> None:
    """In another process too, where hash tables are ordered otherwise."""
    program = (
        "import sys; from regard.data.tokenizers.tokenizer import Tokenizer\n"
        "texts = ['a man saw the dog %d times .' % (i % 40) for i in range(400)]\n"
        "made = [Tokenizer.train(kind, texts, 330).fingerprint for kind in sys.argv[1:]]"
    )
    names: dict[str, list[str]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["", *TOKENIZERS])
        exec(program, names)
    command = [sys.executable, "-c", f"{program}\nprint(*made)", *TOKENIZERS]
    other = subprocess.run(command, capture_output=True, check=True, text=True)
    assert other.stdout.split() == names["made"]
    assert len(names["made"]) == len(TOKENIZERS)


def test_sizes_that_the_data_does_not_allow() -> None:
    for kind in ("bpe", "unigram", "word", "whitespace", "character"):
        few = Tokenizer.train(kind, ["a b c"], size=5000)
        assert few.size < 5000
        assert "not 5,000: the data has no more" in few.note
    full = Tokenizer.train("word", ["a b c d e"], size=7)
    assert (full.size, full.note) == (7, "")
    with pytest.raises(RegardError, match="vocabulary of 100 is too small: bpe needs at least 260"):
        Tokenizer.train("bpe", ["a"], size=100)
    with pytest.raises(RegardError, match="word needs at least 5"):
        Tokenizer.train("word", ["a"], size=4)
    with pytest.raises(RegardError, match="unknown tokenizer 'bep': did you mean 'bpe'"):
        Tokenizer.train("bep", ["a"], size=400)
    for kind in ("bpe", "unigram", "word", "whitespace", "character"):
        with pytest.raises(RegardError, match="no text to learn a vocabulary from"):
            Tokenizer.train(kind, ["", " "], size=400)


def test_the_vocabulary_is_readable() -> None:
    tokenizer = Tokenizer.train("word", ["Haus , Haus, (é)"], size=50)
    assert tokenizer.vocabulary()[:4] == list(SPECIAL)
    assert sorted(tokenizer.vocabulary()[4:]) == ["(", ")", ",", ",", "Haus", "é"]
    assert " bird" in Tokenizer.train("bpe", ["the bird"] * 9, size=300).vocabulary()


def test_words_of_scripts_without_spaces() -> None:
    for text, expected in {
        "日本語のテキスト": ["日", "本", "語", "の", "テキスト"],
        "ดีครับ": ["ดี", "ค", "รั", "บ"],
        "हिन्दी में": ["हिन्दी", "में"],
        "a_b 3.5x ...": ["a", "_", "b", "3", ".", "5", "x", "..."],
    }.items():
        assert [text[a:b] for a, b in word_offsets(text)] == expected


def test_whitespace_takes_words_as_they_stand_and_special_spellings_as_unknown(tmp_path):
    texts = ["the <unk> , i.e. the end", "the cat @-@ like <unk>"]
    tokenizer = Tokenizer.train("whitespace", texts, size=100)
    tokenizer.save(tmp_path / "t.json")
    loaded = Tokenizer.load(tmp_path / "t.json")
    assert loaded.kind == "whitespace"
    encoded = loaded.encode("the  i.e. <unk> <pad> <eos> @-@ new")
    assert encoded.tokens == ["the", "i.e.", "<unk>", "<pad>", "<eos>", "@-@", "new"]
    assert [i == UNK for i in encoded.ids] == [False, False, True, True, True, False, True]
    assert loaded.decode(loaded.encode("the cat , i.e. like @-@").ids) == "the cat , i.e. like @-@"
    assert loaded.encode_words(["i.e.", "<bos>"]).ids[1] == UNK


@pytest.mark.parametrize("kind", ["word", "whitespace", "bpe", "unigram"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_tokens_piece_by_piece_are_those_of_the_whole_text(kind: str, lowercase: bool) -> None:
    learned = ["The cat, 'sat' on 12mats .", "Ünï ΑΣ Σ <unk> \u4f60\u597d \u3042\u30a2 a\u0301b"]
    tokenizer = Tokenizer.train(kind, learned, 1000, lowercase)
    signs = st.sampled_from("aTΣ\u0301\u0308\u4f60\u3042\u30a21,.'<>-é  \t\n\x1c\u00a0\u3000")
    words = st.sampled_from(["The", "cat,", "<unk>", "<pad>", "12mats", " "])

    @given(st.lists(st.one_of(signs, words, st.text(max_size=3)), max_size=12).map("".join))
    @settings(max_examples=150)
    def check(text: str) -> None:
        assert tokenizer.ids([text, text[::-1]])[0] == tokenizer.encode(text).ids

    check()


@pytest.mark.parametrize("kind", ["word", "bpe"])
def test_a_tokenizer_remembers_a_bounded_number_of_short_pieces(kind, monkeypatch) -> None:
    monkeypatch.setattr("regard.data.tokenizers.tokenizer.MAX_KNOWN", 5)
    tokenizer = Tokenizer.train(kind, ["a b c d e f g h"], 300)
    text = "a b c d e f g h " + "z" * 100
    for part in (text, "a b", "h g f e d", text):
        assert tokenizer.ids([part])[0] == tokenizer.encode(part).ids
        assert len(tokenizer._known) <= 9
        assert all(len(piece) < 100 for piece in tokenizer._known)
