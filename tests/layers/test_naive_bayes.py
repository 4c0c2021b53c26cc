"""Votes of n-grams against scikit-learn's naive Bayes, and against counts by hand."""

from collections import Counter
from math import log

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.data.ngram_counts import NGramCounts
from regard.errors import RegardError
from regard.layers import NaiveBayes, NGramEvidence

WORDS, FIRST, LABELS = 13, 4, 3
RANDOM = np.random.default_rng(5)
TEXTS = [
    (RANDOM.integers(FIRST - 1, WORDS, RANDOM.integers(1, 9)), RANDOM.integers(0, LABELS, 1))
    for _ in range(31)
]


def grams(words, n):
    """The n-grams that end at each word, or None where there is none."""
    words = [int(w) for w in words]
    found = [tuple(words[i - n + 1 : i + 1]) if i + 1 >= n else None for i in range(len(words))]
    return [g if g and min(g) >= FIRST else None for g in found]


def layer(texts=TEXTS, longest=2, labels=LABELS):
    counted = NGramCounts.of(texts, WORDS, longest, labels)
    evidence = NGramEvidence(
        counted.keys, counted.counts, vocabulary=WORDS, longest=longest, first_word=FIRST
    )
    return NaiveBayes(evidence)


def padded(texts):
    lengths = torch.tensor([len(words) for words, _ in texts])
    rows = torch.zeros(len(texts), int(lengths.max()), dtype=torch.long)
    for row, (words, _) in zip(rows, texts, strict=True):
        row[: len(words)] = torch.from_numpy(words)
    return rows, lengths


@pytest.mark.parametrize("n", [1, 2])
def test_two_labels_differ_as_in_the_naive_bayes_of_scikit_learn(n):
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.naive_bayes import MultinomialNB

    texts = [(words, labels % 2) for words, labels in TEXTS]
    bags = [Counter(str(g) for g in grams(words, n) if g) for words, _ in texts]
    vectorizer = DictVectorizer()
    foreign = MultinomialNB(fit_prior=False).fit(
        vectorizer.fit_transform(bags), [int(labels[0]) for _, labels in texts]
    )
    likely = foreign.predict_joint_log_proba(vectorizer.transform(bags))
    own = layer(texts, 2, 2)
    with torch.no_grad():
        own.weight.zero_()
        own.weight[n - 1] = 0.1
    words, lengths = padded(texts)
    logits = own(words, lengths).double() * lengths[:, None].sqrt()
    expected = torch.from_numpy(likely[:, 1] - likely[:, 0])
    assert_close(logits[:, 1] - logits[:, 0], expected, atol=1e-4, rtol=1e-4)


def test_a_text_in_training_is_judged_by_the_others():
    own = layer()
    words, lengths = padded(TEXTS)
    labels = torch.nn.functional.one_hot(torch.tensor([int(y[0]) for _, y in TEXTS]), LABELS)
    found = own(words, lengths, labels.float()).detach()
    for i, (text, _) in enumerate(TEXTS):
        others = [TEXTS[j] for j in range(len(TEXTS)) if j != i]
        for y in range(LABELS):
            expected = 0.0
            for n, weight in ((1, 2.0), (2, 1.0)):
                size = len({g for words, _ in TEXTS for g in grams(words, n) if g})
                with_y = Counter(g for w, z in others if z[0] == y for g in grams(w, n) if g)
                without = Counter(g for w, z in others if z[0] != y for g in grams(w, n) if g)
                for g in grams(text, n):
                    if g and with_y[g] + without[g]:
                        favour = log((with_y[g] + 1) / (with_y.total() + size))
                        against = log((without[g] + 1) / (without.total() + size))
                        expected += weight * (favour - against) / 2
            assert float(found[i, y]) == pytest.approx(expected / len(text) ** 0.5, abs=1e-4)


def test_unknown_ngrams_padding_and_empty_texts_have_no_votes():
    own = layer()
    words, lengths = padded(TEXTS)
    wider = torch.cat([words, torch.zeros(len(words), 5, dtype=torch.long)], 1)
    assert_close(own(wider, lengths), own(words, lengths))
    assert_close(own(words[:1, : lengths[0]], lengths[:1]), own(words, lengths)[:1])
    assert not own(torch.tensor([[1, 2, 3]]), torch.tensor([3])).any()
    assert not own(torch.zeros(1, 1, dtype=torch.long), torch.tensor([0])).any()
    nothing = layer([(np.array([1]), np.array([0]))])
    assert not nothing(words, lengths).any()


def test_votes_of_words_sum_to_the_logits_and_are_gradients_times_inputs():
    own = layer(longest=3)
    for words, _ in TEXTS[:7]:
        text, lengths = torch.from_numpy(words), torch.tensor([len(words)])
        votes = own.votes(text)
        assert_close(votes.sum(0), own(text[None], lengths)[0])
        ngrams = own.votes_of_ngrams(text)
        assert_close(torch.tensor([v for *_, v in ngrams]).sum(0), votes.detach().sum(0))
        assert {(a, b) for a, b, _ in ngrams} <= {
            (i + 1 - n, i + 1) for n in (1, 2, 3) for i, g in enumerate(grams(words, n)) if g
        }
        present = torch.ones(1, len(words), 1, requires_grad=True)
        hook = own.evidence.presence.register_forward_hook(lambda *_, given=present: given)
        for label, column in enumerate(votes.unbind(1)):
            (gradient,) = torch.autograd.grad(own(text[None], lengths)[0, label], present)
            assert_close(gradient[0, :, 0], column)
        hook.remove()


def test_the_gradient_of_the_weights():
    own = layer().double()
    words, lengths = padded(TEXTS[:5])

    def logits(weight):
        return torch.func.functional_call(own, {"weight": weight}, (words, lengths))

    assert torch.autograd.gradcheck(logits, own.weight)


def test_counts_are_those_of_a_counter_also_in_chunks(monkeypatch):
    whole = NGramCounts.of(TEXTS, WORDS, 2, LABELS)
    expected = Counter(
        (sum(w * WORDS ** (len(g) - 1 - i) for i, w in enumerate(g)), column)
        for words, labels in TEXTS
        for n in (1, 2)
        for g in grams(words, n)
        if g
        for column in (int(labels[0]), LABELS)
    )
    table = {
        (int(key), column): int(count)
        for key, row in zip(whole.keys, whole.counts, strict=True)
        for column, count in enumerate(row)
        if count
    }
    assert table == expected
    monkeypatch.setattr("regard.data.ngram_counts.CHUNK", 3)
    chunked = NGramCounts.of(TEXTS, WORDS, 2, LABELS)
    np.testing.assert_array_equal(chunked.keys, whole.keys)
    np.testing.assert_array_equal(chunked.counts, whole.counts)


def test_of_too_many_ngrams_the_most_frequent_are_kept(monkeypatch):
    whole = NGramCounts.of(TEXTS, WORDS, 2, LABELS)
    monkeypatch.setattr("regard.data.ngram_counts.MOST_NUMBERS", 9 * (LABELS + 1))
    few = NGramCounts.of(TEXTS, WORDS, 2, LABELS)
    assert len(few.keys) == 9
    places = np.searchsorted(whole.keys, few.keys)
    np.testing.assert_array_equal(whole.counts[places], few.counts)
    left_out = np.delete(whole.counts[:, -1], places)
    assert few.counts[:, -1].min() >= left_out.max()


def test_counts_are_saved_and_damage_is_named(tmp_path):
    path = tmp_path / "ngrams.safetensors"
    whole = NGramCounts.of(TEXTS, WORDS, 2, LABELS)
    whole.save(path)
    again = NGramCounts.load(path, 2, LABELS)
    np.testing.assert_array_equal(again.keys, whole.keys)
    np.testing.assert_array_equal(again.counts, whole.counts)
    with pytest.raises(RegardError, match=r"expected int64 keys \[n\] and float32 counts \[n, 6\]"):
        NGramCounts.load(path, 2, LABELS + 2)
    NGramCounts(whole.keys[::-1].copy(), whole.counts, 2).save(path)
    with pytest.raises(RegardError, match="ascending keys"):
        NGramCounts.load(path, 2, LABELS)
    path.write_bytes(b"x")
    with pytest.raises(RegardError, match="cannot be read"):
        NGramCounts.load(path, 2, LABELS)


def test_ngrams_that_cannot_be_numbered_are_refused():
    with pytest.raises(RegardError, match="choose a smaller word_ngrams"):
        NGramCounts.of(TEXTS, 10**7, 3, LABELS)


def test_texts_of_one_word_that_all_have_a_label():
    own = layer([(np.array([5]), np.array([0])), (np.array([6]), np.array([0]))], longest=2)
    words, lengths = torch.tensor([[5, 0], [6, 7]]), torch.tensor([1, 2])
    labels = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    for found in (own(words, lengths), own(words, lengths, labels)):
        assert found.isfinite().all()


@pytest.mark.parametrize("scale", [0.1, 1.0, 300.0])
def test_weights_are_fitted_where_no_other_weights_have_a_smaller_loss(scale):
    from scipy.optimize import minimize

    votes, labels = layer(), torch.tensor([int(own[0]) for _, own in TEXTS])
    evidence = votes.evidence_of_texts(*padded(TEXTS), torch.eye(LABELS)[labels]) * scale

    def loss(logits):
        return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")

    def penalized(weight):
        weight = torch.tensor(weight)
        logits = torch.einsum("bnc,n->bc", evidence.double(), weight)
        return float(loss(logits) + weight.square().sum() / 8)

    votes.fit(evidence, loss)
    fitted = (votes.weight * 10).detach().double()
    best = minimize(penalized, np.array([2.0, 1.0]))
    assert penalized(fitted.numpy()) <= best.fun + 1e-4 * abs(best.fun)


def test_evidence_that_is_not_finite_changes_no_weight():
    votes = layer()
    before = votes.weight.detach().clone()
    votes.fit(torch.full((4, 2, LABELS), torch.nan), lambda logits: logits.logsumexp(1).sum())
    assert_close(votes.weight.detach(), before)
