"""Each kind of model learns a handful of examples by heart, with a plain optimizer."""

from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from regard.search import greedy
from tests.models.catalogue import (
    CHARACTERS,
    LABELS,
    SOURCE_WORDS,
    TARGET_WORDS,
    classifier,
    ids,
    language,
    tagger,
    translator,
)

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

BOS, EOS = 2, 3
SIZES = {"width": 24, "heads": 2}


def learn(model: torch.nn.Module, loss: Any, steps: int) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"attention": "none", "cell": "lstm"},
        {"order": "luong", "input_feeding": True, "attention": "bilinear", "cell": "elman"},
        {"local": "p"},
        {"model": "transformer", "layers": 1},
        {"model": "transformer", "layers": 1, "experts": 3, "norm": "post"},
        {"encoder": "transformer", "layers": 1, "order": "luong", "attention": "dot"},
        {"decoder": "transformer", "layers": 1},
    ],
    ids=str,
)
def test_a_translator_writes_what_it_was_taught(config: dict[str, Any]) -> None:
    model = translator(**(SIZES | config))
    source, lengths = ids(SOURCE_WORDS, 6, 5), torch.tensor([5, 3, 4, 5, 2, 4])
    target = torch.randint(4, TARGET_WORDS, (6, 4))
    start, end = torch.full((6, 1), BOS), torch.full((6, 1), EOS)
    given, wanted = torch.cat([start, target], 1), torch.cat([target, end], 1)

    def loss() -> torch.Tensor:
        return cross_entropy(model(source, lengths, given).logits.mT, wanted)

    learn(model, loss, 100)
    with torch.no_grad():
        begun = model.start(model.encode(source, lengths))
        written = greedy(model.step, begun, bos=BOS, eos=EOS, limit=6)
    tokens = [list(hypothesis.tokens)[:4] for hypothesis in written]
    assert tokens == target.tolist()


@pytest.mark.parametrize(
    "config",
    [
        {"cell": "elman"},
        {"cell": "lstm", "attention": "additive"},
        {"cell": "gru", "attention": "dot", "split": True},
        {"model": "transformer", "layers": 1},
    ],
    ids=str,
)
def test_a_language_model_tells_texts_apart_by_their_label(config: dict[str, Any]) -> None:
    model = language(**(SIZES | config))
    text = ids(TARGET_WORDS, 3, 8)
    text[:, 0] = BOS  # all begin alike: the label alone says what follows
    labels = torch.tensor([0, 1, 2])

    def loss() -> torch.Tensor:
        output, _ = model(text[:, :-1], model.start(3, label=labels))
        return cross_entropy(output.logits.mT, text[:, 1:])

    learn(model, loss, 100)
    words, state = text[:, :1], model.start(3, label=labels)
    for t in range(1, 8):
        output, state = model(words, state)
        words = output.logits.argmax(-1)
        assert torch.equal(words[:, 0], text[:, t])


@pytest.mark.parametrize(
    "config",
    [
        *({"pooling": pooling} for pooling in ("sum", "mean", "max", "weighted", "fixed", "self")),
        {"pooling": "self", "encoder": "none"},
        {"encoder": "transformer"},
        {"encoder": "none", "experts": 3},
    ],
    ids=str,
)
def test_a_classifier_knows_its_texts(config: dict[str, Any]) -> None:
    model = classifier(**(SIZES | config))
    words, lengths = ids(SOURCE_WORDS, 8, 5), torch.tensor([5, 3, 4, 5, 2, 4, 5, 5])
    classes = torch.randint(LABELS, (8,))
    learn(model, lambda: cross_entropy(model(words, lengths).logits, classes), 60)
    assert torch.equal(model(words, lengths).logits.argmax(-1), classes)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"crf": False, "cell": "elman"},
        {"encoder": "self"},
        {"encoder": "transformer"},
    ],
    ids=str,
)
def test_a_tagger_knows_its_sentences(config: dict[str, Any]) -> None:
    model = tagger(**(SIZES | config))
    words, lengths = ids(SOURCE_WORDS, 5, 6), torch.tensor([6, 3, 4, 6, 2])
    spelt = ids(CHARACTERS, 5, 6, 4)
    tags = torch.randint(LABELS, (5, 6))
    learn(model, lambda: model.loss(model(words, lengths, spelt).logits, tags, lengths), 60)
    found = model.decode(model(words, lengths, spelt).logits, lengths)
    assert found == [row[:n] for row, n in zip(tags.tolist(), lengths.tolist(), strict=True)]
