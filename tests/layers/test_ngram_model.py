"""The n-gram model beside a dictionary, and its mixture with a network."""

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
import safetensors.numpy
import torch

from regard.data import kneser_ney
from regard.data.kneser_ney import KneserNey
from regard.errors import RegardError
from regard.layers.ngram_model import NGramModel

WORDS = 11


def sample_text(seed: int, size: int = 700) -> np.ndarray:
    """Words of a skewed distribution, so that there are n-grams of every count."""
    random = np.random.default_rng(seed)
    return random.choice(WORDS - 1, size, p=np.arange(WORDS - 1, 0, -1) / 55)


def model_of(tables: KneserNey) -> NGramModel:
    arrays = (tables.keys, tables.shares, tables.backoffs, tables.words)
    return NGramModel(*arrays, tables.longest)


def counts_of(text: list[int], longest: int) -> dict[int, Counter]:
    """Kneser-Ney counts: of the longest n-grams how often, of others after how many words."""
    found = {}
    for n in range(1, longest + 1):
        if n == longest:
            found[n] = Counter(tuple(text[i : i + n]) for i in range(len(text) - n + 1))
        else:
            longer = {tuple(text[i : i + n + 1]) for i in range(len(text) - n)}
            found[n] = Counter(ngram[1:] for ngram in longer)
    return found


def by_dictionary(text: list[int], longest: int, context: tuple[int, ...], word: int) -> float:
    """Interpolated Kneser-Ney with three discounts, as in the paper."""
    probability = 1 / WORDS
    for n, counts in counts_of(text, longest).items():
        n1, n2, n3, n4 = (sum(c == k for c in counts.values()) for k in (1, 2, 3, 4))
        discounts = {1: 0.5, 2: 1.0, 3: 1.5}  # too few words to estimate them
        if min(n1, n2, n3, n4):
            y = n1 / (n1 + 2 * n2)
            discounts = {1: 1 - 2 * y * n2 / n1, 2: 2 - 3 * y * n3 / n2, 3: 3 - 4 * y * n4 / n3}
            discounts = {k: min(max(d, 0), k) for k, d in discounts.items()}
        if len(context) < n - 1:
            break
        before = context[len(context) - n + 1 :]
        after = {ngram: c for ngram, c in counts.items() if ngram[:-1] == before}
        total = sum(after.values())
        if not total:
            break
        own = after.get((*before, word), 0)
        left = sum(discounts[min(c, 3)] for c in after.values())
        kept = own - discounts[min(own, 3)] if own else 0.0
        probability = kept / total + left / total * probability
    return probability


@pytest.mark.parametrize("longest", [2, 3])
def test_probabilities_are_those_of_a_dictionary(longest):
    text = sample_text(1)
    model = model_of(KneserNey.of(text, WORDS, longest))
    read = torch.tensor(sample_text(2, 9)[None])
    contexts = model.contexts(torch.zeros(1, 0, dtype=torch.long), read)
    table = model(contexts)[0]
    for i in range(read.shape[1]):
        context = tuple(read[0, max(0, i + 2 - longest) : i + 1].tolist())
        for word in range(WORDS):
            expected = by_dictionary(text.tolist(), longest, context, word)
            assert float(table[i, word]) == pytest.approx(expected, rel=1e-5)


def test_targets_are_those_of_the_whole_distribution_also_in_pieces():
    model = model_of(KneserNey.of(sample_text(1), WORDS, 4))
    read = torch.tensor(np.stack([sample_text(seed, 13) for seed in (3, 4, 5)]))
    read[:, 5] = WORDS - 1  # a word that training has not seen
    nothing = read[:, :0]
    contexts = model.contexts(nothing, read)
    table = model(contexts)
    torch.testing.assert_close(table.sum(-1), torch.ones(3, 13))
    targets = read.roll(-1, 1)
    own = table.gather(2, targets[:, :, None])[:, :, 0]
    torch.testing.assert_close(model.of(contexts, targets), own)
    pieces = [model.contexts(nothing, read[:, :7]), model.contexts(read[:, 5:7], read[:, 7:])]
    assert torch.equal(torch.cat(pieces, 1), contexts)
    assert model.order(contexts)[0, 5] == 0
    assert model.order(contexts).max() == 3


def test_the_weight_of_a_network_is_the_likeliest_one():
    model = model_of(KneserNey.of(sample_text(1), WORDS, 2))
    random = np.random.default_rng(7)
    network, ngrams = random.random((2, 4000)) ** 3
    order = random.integers(0, 2, 4000)
    model.fit(network, ngrams, order)
    for length in range(2):
        one, other = network[order == length], ngrams[order == length]
        grid = np.linspace(0.005, 0.995, 199)
        likelihoods = [np.log(w * one + (1 - w) * other).sum() for w in grid]
        best = grid[int(np.argmax(likelihoods))]
        assert float(model.network_weight[length]) == pytest.approx(best, abs=0.02)


def test_tables_are_saved_and_damage_is_named(tmp_path):
    tables = KneserNey.of(sample_text(1), WORDS, 3)
    path = tmp_path / "ngrams.safetensors"
    tables.save(path)
    loaded = KneserNey.load(path, WORDS, 3)
    assert np.array_equal(loaded.keys, tables.keys)
    assert np.array_equal(loaded.backoffs, tables.backoffs)
    with pytest.raises(RegardError, match=r"expected int64 keys \[m\]"):
        KneserNey.load(path, WORDS + 1, 3)
    arrays = safetensors.numpy.load_file(path)
    for name, damaged in (
        ("keys", arrays["keys"][::-1].copy()),
        ("keys", arrays["keys"] + (1 << 40)),
        ("shares", arrays["shares"] * 100),
        ("backoffs", np.full_like(arrays["backoffs"], np.nan)),
    ):
        path.write_bytes(safetensors.numpy.save({**arrays, name: damaged}))
        with pytest.raises(RegardError, match="expected ascending keys, and shares from 0 to 1"):
            KneserNey.load(path, WORDS, 3)
    path.write_bytes(b"no tensors")
    with pytest.raises(RegardError, match="the n-gram model cannot be read"):
        KneserNey.load(path, WORDS, 3)


def test_a_text_that_is_too_short_for_its_ngrams():
    model = model_of(KneserNey.of(np.array([3]), WORDS, 5))
    contexts = model.contexts(torch.zeros(1, 0, dtype=torch.long), torch.tensor([[3, 4]]))
    torch.testing.assert_close(model(contexts).sum(-1), torch.ones(1, 2))


def test_where_there_are_too_many_ngrams_they_are_shorter(monkeypatch):
    text = sample_text(1)
    shorter = KneserNey.of(text, WORDS, 2)
    monkeypatch.setattr(kneser_ney, "MOST_NGRAMS", len(shorter.keys) + 10)
    limited = KneserNey.of(text, WORDS, 5)
    assert limited.longest == 2
    for name in ("keys", "shares", "backoffs", "words"):
        assert np.array_equal(getattr(limited, name), getattr(shorter, name))


def test_the_end_of_a_long_text_is_not_counted(monkeypatch):
    text = sample_text(1)
    monkeypatch.setattr(kneser_ney, "MOST_WORDS", 300)
    limited, expected = KneserNey.of(text, WORDS, 3), KneserNey.of(text[:300], WORDS, 3)
    assert np.array_equal(limited.keys, expected.keys)
    assert np.array_equal(limited.shares, expected.shares)


def test_counts_are_those_of_the_definition():
    text = sample_text(5, 60).tolist()
    tables = KneserNey.of(np.array(text), WORDS, 2)
    pairs = defaultdict(set)
    for before, word in pairwise(text):
        pairs[before].add(word)
    for context, words in pairs.items():
        found = {int(key) % WORDS for key in tables.keys if int(key) // WORDS == context}
        assert found == words
