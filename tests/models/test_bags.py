"""Classifiers without an encoder pool a text at once, with the result of the way over its words."""

import pytest
import torch

from regard.models import Classifier, ClassifierConfig

WORDS, LABELS = 23, 3


def make(pooling, **options):
    torch.manual_seed(1)
    config = ClassifierConfig(encoder="none", pooling=pooling, width=7, dropout=0.0, **options)
    return Classifier(config, WORDS, LABELS)


def make_texts():
    torch.manual_seed(2)
    lengths = torch.tensor([5, 0, 11, 1, 2])
    words = torch.randint(4, WORDS, (5, 11))
    return words.masked_fill(torch.arange(11) >= lengths[:, None], 0), lengths


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize("options", [{}, {"word_size": 5}, {"experts": 2}])
@pytest.mark.parametrize("sparse", [False, True])
def test_values_and_gradients_are_those_of_pooled_words(pooling, options, sparse):
    model, (words, lengths) = make(pooling, **options), make_texts()
    upstream, results = torch.randn(5, LABELS), []
    for weights in (True, False):
        model.zero_grad()
        model.inputs.sparse = sparse and not weights
        logits = model(words, lengths, need_weights=weights).logits
        logits.backward(upstream)
        results.append([logits, *(p.grad.to_dense() for p in model.parameters())])
    for plain, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, atol=1e-5, rtol=1e-5)


def test_a_text_has_the_same_logits_in_every_batch():
    model, (words, lengths) = make("mean"), make_texts()
    together = model(words, lengths).logits
    for row, length in enumerate(lengths):
        torch.testing.assert_close(
            model(words[row : row + 1, : max(1, length)], lengths[row : row + 1]).logits[0],
            together[row],
        )


@pytest.mark.parametrize("part", ["inputs", "encoder", "pooling", "weights"])
def test_who_watches_or_changes_the_parts_is_not_passed_by(part):
    model, texts = make("mean"), make_texts()
    calls = []
    if part == "weights":
        before = model.pooling.normalize
        model.pooling.normalize = lambda scores, mask: calls.append(1) or before(scores, mask)
    else:
        getattr(model, part).register_forward_hook(lambda *_: calls.append(1))
    model(*texts)
    assert calls


@pytest.mark.parametrize("pooling", ["sum", "mean", "max", "weighted", "fixed", "self"])
def test_only_sums_and_means_of_word_vectors_have_lazy_tables(pooling):
    for encoder in ("none", "self"):
        config = ClassifierConfig(encoder=encoder, pooling=pooling, width=8)
        expected = encoder == "none" and pooling in ("sum", "mean")
        assert Classifier(config, WORDS, LABELS).inputs.lazy == expected
