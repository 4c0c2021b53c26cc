"""The tagger: its loss against other people's, characters, and what a scheme allows."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from regard.errors import RegardError
from regard.models.characters import BUCKETS, CharacterFeatures, NgramVectors, ngram_rows
from tests.models.catalogue import LABELS, SOURCE, inputs, tagger


def test_without_a_crf_the_loss_is_cross_entropy_a_word() -> None:
    model, batch = tagger(crf=False).double(), inputs()
    tags = torch.randint(LABELS, batch["source"].shape)
    logits = model(batch["source"], batch["lengths"], batch["characters"]).logits
    real = [(row, t) for row, n in enumerate(batch["lengths"].tolist()) for t in range(n)]
    expected = sum(cross_entropy(logits[row, t], tags[row, t]) for row, t in real) / len(real)
    torch.testing.assert_close(model.loss(logits, tags, batch["lengths"]), expected)


@pytest.mark.parametrize("crf", [True, False])
def test_padding_changes_no_loss(crf: bool) -> None:
    model, batch = tagger(crf=crf).double(), inputs()
    tags = torch.randint(LABELS, batch["source"].shape)
    logits = model(batch["source"], batch["lengths"], batch["characters"]).logits
    loss = model.loss(logits, tags, batch["lengths"])
    for row, n in enumerate(batch["lengths"].tolist()):
        tags[row, n:] = 0
        logits = logits.detach().clone()
        logits[row, n:] = 9.0
    torch.testing.assert_close(model.loss(logits, tags, batch["lengths"]), loss.detach())


def test_labels_that_may_not_follow_are_never_chosen() -> None:
    from tests.models import catalogue

    allowed = torch.ones(LABELS, LABELS, dtype=torch.bool)
    allowed[:, 1] = False
    start = torch.ones(LABELS, dtype=torch.bool)
    start[1] = False
    config = catalogue.TaggerConfig(width=10, heads=2, characters=0)
    model = catalogue.Tagger(config, 23, LABELS, allowed=allowed, allowed_start=start)
    batch = inputs()
    logits = torch.zeros(3, SOURCE, LABELS)
    logits[..., 1] = 5.0
    found = model.decode(logits, batch["lengths"])
    assert [len(row) for row in found] == batch["lengths"].tolist()
    assert not any(1 in row for row in found)


def test_features_of_characters_are_a_convolution_and_a_maximum() -> None:
    layer = CharacterFeatures(13, 5, 6).double()
    words = torch.randint(1, 13, (2, 3, 4))
    words[0, 1, 2:] = 0
    words[1, 2] = 0
    features, weight = layer(words), layer.convolution.weight
    for b, t in [(b, t) for b in range(2) for t in range(3)]:
        letters = [letter for letter in words[b, t].tolist() if letter]
        table = [
            torch.zeros(5).double(),
            *5**0.5 * layer.table.words.weight[letters],
            torch.zeros(5).double(),
        ]
        places = [
            sum(weight[:, :, i] @ table[place + i] for i in range(3)) + layer.convolution.bias
            for place in range(len(letters))
        ]
        expected = torch.stack(places).amax(0).relu() if places else torch.zeros(6).double()
        torch.testing.assert_close(features[b, t], expected)


def hashed(text: str) -> int:
    """By hand: a polynomial of the letters."""
    number = len(text)
    for letter in text:
        number = (number * 1_000_003 + {"^": 1, "$": 2}.get(letter, ord(letter) - 94)) % (2**31 - 1)
    return 1 + number % BUCKETS


def test_ngrams_are_those_of_the_word_with_its_borders() -> None:
    """Letters a, b, c have the numbers 1, 2, 3."""
    words = torch.tensor([[1, 2, 3, 0], [2, 0, 0, 0], [0, 0, 0, 0], [3, 2, 1, 1]])
    for row, spelt in zip(ngram_rows(words), ["^abc$", "^b$", "", "^cbaa$"], strict=True):
        grams = [spelt[i : i + n] for n in (2, 3, 4, 5) for i in range(len(spelt) - n + 1)]
        assert sorted(row[row > 0].tolist()) == sorted(hashed(gram) for gram in grams)
    wider = torch.nn.functional.pad(words, (0, 7))
    for narrow, wide in zip(ngram_rows(words), ngram_rows(wider), strict=True):
        assert narrow[narrow > 0].tolist() == wide[wide > 0].tolist()


def test_a_word_is_the_sum_of_its_ngrams() -> None:
    layer = NgramVectors(6, word_dropout=0.9, dropout=0.5).double().eval()
    words = torch.randint(1, 13, (2, 3, 4))
    words[0, 1, 2:] = 0
    words[1, 2] = 0
    found = layer(words)
    for b, t in [(b, t) for b in range(2) for t in range(3)]:
        rows = ngram_rows(words[b, t][None])[0]
        vectors = layer.table.weight[rows[rows > 0]]
        expected = vectors.sum(0) / max(1, len(vectors)) ** 0.5
        torch.testing.assert_close(found[b, t], expected)
    assert not found[1, 2].any()
    found.sum().backward()
    assert layer.table.weight.grad is not None
    touched = layer.table.weight.grad.abs().sum(1).nonzero().flatten().tolist()
    assert touched == sorted(set(ngram_rows(words.flatten(0, 1)).unique().tolist()) - {0})


def test_some_ngrams_are_forgotten_in_training_alone() -> None:
    layer, words = NgramVectors(6, word_dropout=0.5), torch.randint(1, 13, (2, 3, 4))
    assert torch.equal(layer.eval()(words), layer(words))
    layer.train()
    assert not torch.equal(layer(words), layer(words))


def test_characters_are_asked_for_where_they_count() -> None:
    batch = inputs()
    with pytest.raises(ValueError, match="pass characters="):
        tagger()(batch["source"], batch["lengths"])
    tagger(characters=0)(batch["source"], batch["lengths"])
    with pytest.raises(RegardError, match="did you mean 'transformer'"):
        tagger(encoder="transfomer")
