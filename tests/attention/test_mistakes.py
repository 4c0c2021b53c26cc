"""Bad input to `attend`: each mistake is a ValueError that finishes the diagnosis."""

import pytest
import torch

from regard.attention import attend, normalizers, positions, scores
from regard.attention.worked_example import early_bird

pytestmark = pytest.mark.usefixtures("shapes_unchecked")


def vectors(*shape):
    return torch.randn(*shape)


GOOD = vectors(2, 5, 8), vectors(2, 7, 8), vectors(2, 7, 3)
MISTAKES = [
    (
        (vectors(2, 5, 8), vectors(2, 7, 9), vectors(2, 7, 3)),
        {},
        r"scaled_dot needs query and key of the same size; got query \[2, 5, 8\] and "
        r"key \[2, 7, 9\]",
    ),
    (
        (vectors(2, 5, 8), vectors(2, 7, 8), vectors(2, 6, 3)),
        {},
        r"7 keys in \[2, 7, 8\] and 6 values in \[2, 6, 3\]",
    ),
    (
        (vectors(6, 5, 8), vectors(2, 7, 8), vectors(2, 7, 3)),
        {},
        r"query \[6, 5, 8\], key \[2, 7, 8\] and value \[2, 7, 3\] have no common batch",
    ),
    (
        (vectors(1, 5, 3, 8), vectors(1, 2, 7, 8), vectors(1, 2, 7, 3)),
        {},
        r"5 query heads cannot share 2 key heads and 2 value heads: got query \[1, 5, 3, 8\]",
    ),
    ((vectors(8), vectors(2, 7, 8), vectors(2, 7, 3)), {}, r"query needs at least two axes.*\[8\]"),
    (
        (vectors(2, 5, 8).long(), *GOOD[1:]),
        {},
        "query must hold floating-point numbers; got torch.int64",
    ),
    (GOOD, {"mask": torch.ones(5, 7)}, r"True = may attend; got torch.float32.* go to bias="),
    (GOOD, {"mask": torch.ones(5, 7).long()}, "True = may attend; got torch.int64"),
    (GOOD, {"mask": "causal"}, "True = may attend; got str"),
    (
        GOOD,
        {"mask": torch.ones(5, 6, dtype=torch.bool)},
        r"mask of shape \[5, 6\] does not broadcast with scores of shape \[2, 5, 7\]",
    ),
    (GOOD, {"mask": torch.ones(7, 5, dtype=torch.bool)}, r"mask of shape \[7, 5\] does not"),
    (GOOD, {"bias": torch.zeros(5, 6)}, r"bias of shape \[5, 6\] does not broadcast"),
    (
        GOOD,
        {"bias": torch.ones(5, 7, dtype=torch.bool)},
        "bias .* a floating-point tensor; got torch.bool",
    ),
    (GOOD, {"score": "scaled_dott"}, "unknown score 'scaled_dott': did you mean 'scaled_dot'?"),
    (GOOD, {"score": "additive"}, r"score 'additive' has weights .* scores.make_score\('additive'"),
    (GOOD, {"normalize": "sofmax"}, "unknown normalizer 'sofmax': did you mean 'softmax'?"),
    (
        GOOD,
        {"score": scores.Bilinear(9, 8)},
        r"made for a query of size 9; got one of .*\[2, 5, 8\]",
    ),
    (GOOD, {"score": scores.Additive(8, 9)}, r"made for a key of size 9; got one of .*\[2, 7, 8\]"),
    (
        GOOD,
        {"score": scores.Location(8, 6)},
        r"location was made for 6 positions, but there are 7 keys",
    ),
    (
        GOOD,
        {"score": lambda q, k: q @ q.mT},
        r"the score returned \[2, 5, 5\] .* expected scores of shape \[2, 5, 7\]",
    ),
    (GOOD, {"score": lambda q, k: None}, "the score returned NoneType"),
    (GOOD, {"dropout": 1.0}, "dropout must be a probability .* got 1.0"),
    (GOOD, {"softcap": 0.0}, "softcap must be a positive number; got 0.0"),
]


@pytest.mark.parametrize(
    ("inputs", "options", "words"), MISTAKES, ids=[m[2][:40] for m in MISTAKES]
)
@pytest.mark.parametrize("need_weights", [True, False])
def test_mistakes_are_named(inputs, options, words, need_weights):
    with pytest.raises(ValueError, match=words):
        attend(*inputs, need_weights=need_weights, **options)


def test_unknown_names_and_numbers():
    with pytest.raises(ValueError, match="unknown score 'bilinaer': did you mean 'bilinear'"):
        scores.make_score("bilinaer", 3, 3)
    with pytest.raises(ValueError, match=r"top_k\(0\): expected a whole number of at least 1"):
        normalizers.top_k(0)
    with pytest.raises(ValueError, match="even"):
        positions.sinusoids(3, 5)


def test_the_early_bird_by_hand():
    """Weights of “bird”: exp(score) over their sum, with the scores of the lectures' formula."""
    example = early_bird()
    query, key, value = example.project()
    got = attend(query, key, value)
    row = example.words.index("bird")
    terms = [2.718281828459045 ** (float(query[row] @ k) / 2.0) for k in key]
    for weight, term in zip(got.weights[row].tolist(), terms, strict=True):
        assert weight == pytest.approx(term / sum(terms), abs=1e-6)
    read = sum(term / sum(terms) * v for term, v in zip(terms, value, strict=True))
    torch.testing.assert_close(got.output[row], read)
