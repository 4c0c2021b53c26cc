"""Tables of words: loaded, frozen, tied; and vectors that come instead of words."""

import pytest
import torch

from regard.attention.positions import sinusoids
from regard.models import Classifier, ClassifierConfig, Tagger, TaggerConfig
from regard.models.embedding import Embedding, Unembedding, VectorInputs


@pytest.mark.parametrize("positions", ["none", "sinusoids"])
def test_loaded_vectors_come_out_as_they_went_in(positions: str) -> None:
    table, vectors = Embedding(11, 6, positions=positions), torch.randn(3, 6)
    before = table.words.weight.detach().clone()
    table.load(torch.tensor([2, 9, 4]), vectors)
    places = sinusoids(3, 6) if positions == "sinusoids" else 0.0
    torch.testing.assert_close(table(torch.tensor([[2, 9, 4]]))[0], vectors + places)
    others = [0, 1, 3, 5, 6, 7, 8, 10]
    assert torch.equal(table.words.weight[others], before[others])
    assert table.words.weight.requires_grad


@pytest.mark.parametrize("size", [64, 48])
def test_words_begin_with_features_of_variance_one_and_short_rows(size: int) -> None:
    table = Embedding(503, 64, size=size)
    assert table.words.weight[1:].norm(dim=1).mean().item() == pytest.approx(1, abs=0.05)
    if size == 64:
        assert table(torch.arange(1, 503)[None]).std().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("size", [6, 4])
def test_frozen_vectors_do_not_learn(size: int) -> None:
    table = Embedding(11, 6, size=size)
    table.load(torch.tensor([2, 9]), torch.randn(2, size), frozen=True)
    before = table.words.weight.clone()
    head = torch.nn.Linear(6, 2)
    learning = [p for p in [*table.parameters(), *head.parameters()] if p.requires_grad]
    assert len(learning) == (2 if size == 6 else 4)
    optimizer = torch.optim.AdamW(learning, lr=0.1)
    head(table(torch.tensor([[2, 9, 4]]))).sum().backward()
    optimizer.step()
    assert torch.equal(table.words.weight, before)


@pytest.mark.usefixtures("shapes_unchecked")
def test_vectors_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"vectors of shape \[2, 5\] for 2 words of size 6"):
        Embedding(11, 6).load(torch.tensor([2, 9]), torch.randn(2, 5))


def test_a_tied_table_serves_both_ways_and_gets_both_gradients() -> None:
    table = Embedding(7, 4)
    words = Unembedding(4, 7, table)
    states = torch.randn(3, 4)
    torch.testing.assert_close(words(states), states @ table.words.weight.T)
    assert list(dict(words.named_parameters())) == ["bias"]
    (table(torch.tensor([[1, 2]])).sum() + words(states)[:, 5].sum()).backward()
    moved = table.words.weight.grad.abs().sum(1) > 0
    assert moved.tolist() == [False, True, True, False, False, True, False]


def test_a_tie_needs_one_size() -> None:
    with pytest.raises(ValueError, match="words of size 4 and states of size 6"):
        Unembedding(6, 7, Embedding(7, 6, size=4))


def test_learned_positions_count_from_the_offset() -> None:
    table = Embedding(7, 4, positions="learned", max_length=9)
    words = torch.tensor([[1, 2, 3, 4]])
    torch.testing.assert_close(table(words)[:, 2:], table(words[:, 2:], offset=2))
    with pytest.raises(ValueError, match="learned up to 9; requested 10"):
        table(words, offset=6)


@pytest.mark.parametrize("encoder", ["none", "self", "recurrent", "transformer"])
def test_vectors_serve_where_words_do(encoder: str) -> None:
    lengths, frames = torch.tensor([7, 2]), torch.randn(2, 7, 5)
    sizes = {"encoder": encoder, "width": 8, "heads": 2, "dropout": 0.0}
    classifier = Classifier(ClassifierConfig(**sizes), None, 3, features=5)
    tagger = Tagger(TaggerConfig(**sizes), None, 3, features=5)
    assert classifier(frames, lengths).logits.shape == (2, 3)
    assert tagger(frames, lengths).logits.shape == (2, 7, 3)
    swapped = frames[:, [1, 0, 2, 3, 4, 5, 6]]
    same = torch.allclose(
        classifier(frames, lengths).logits, classifier(swapped, lengths).logits, atol=1e-6
    )
    assert same == (encoder in ("none", "self"))  # the others know the order


def test_words_and_features_are_one_or_the_other() -> None:
    for words, features in ((None, None), (5, 3)):
        with pytest.raises(ValueError, match="either words or features"):
            Classifier(ClassifierConfig(), words, 2, features=features)


def test_features_are_projected() -> None:
    layer = VectorInputs(3, 4, positions="sinusoids")
    frames = torch.randn(2, 5, 3)
    torch.testing.assert_close(layer(frames), layer.project(frames) + sinusoids(5, 4))
