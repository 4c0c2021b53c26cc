"""Pooling against sums by hand, one set and one word at a time, in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from regard.attention import masks
from regard.layers import Pooling

B, T, WIDTH, QUERIES, HIDDEN = 3, 7, 5, 2, 11
KINDS = ["sum", "mean", "max", "weighted", "fixed", "fixed mlp"]


def make(kind: str) -> Pooling:
    if kind == "fixed":
        return Pooling(WIDTH, "fixed", queries=QUERIES).double()
    if kind == "fixed mlp":
        return Pooling(WIDTH, "fixed", queries=QUERIES, score="mlp", hidden=HIDDEN).double()
    return Pooling(WIDTH, kind).double()


def mixed(fits: list[Tensor], words: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Σᵢ exp(sᵢ) xᵢ / Σⱼ exp(sⱼ)."""
    total = sum(fit.exp() for fit in fits)
    shares = [fit.exp() / total for fit in fits]
    return sum(share * word for share, word in zip(shares, words, strict=True)), shares


def by_hand(pooling: Pooling, kind: str, words: list[Tensor]) -> tuple[Tensor, list[list[Tensor]]]:
    """The pooled vector of one set, and a row of shares a query."""
    one, number = torch.ones((), dtype=torch.float64), len(words)
    if kind == "sum":
        return sum(words), [[one] * number]
    if kind == "mean":
        return sum(words) / number, [[one / number] * number]
    if kind == "max":
        winners = [max(range(number), key=lambda i: words[i][f].item()) for f in range(WIDTH)]
        best = torch.stack([words[winner][f] for f, winner in enumerate(winners)])
        return best, [[one * winners.count(i) / WIDTH for i in range(number)]]
    if kind == "weighted":
        query = pooling.context(sum(words) / number)
        score = pooling.score
        hidden = [(score.query(query) + score.key.weight @ word).tanh() for word in words]
        output, shares = mixed([score.weight @ vector for vector in hidden], words)
        return output, [shares]
    outputs, rows = [], []
    for theta in pooling.queries:
        keys = words
        if kind == "fixed mlp":
            layer = pooling.score.hidden
            keys = [(layer.weight @ word + layer.bias).tanh() for word in words]
        fits = [theta @ key for key in keys]
        output, shares = mixed(fits, words)
        outputs.append(output)
        rows.append(shares)
    return torch.cat(outputs), rows


@pytest.mark.parametrize("form", ["tensor", "lazy"])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_a_sum_by_hand(kind: str, form: str) -> None:
    pooling, lengths = make(kind), torch.tensor([4, T, 1])
    states = torch.randn(B, T, WIDTH, dtype=torch.float64, requires_grad=True)
    lazy = masks.lengths(lengths)
    found = pooling(states, lazy if form == "lazy" else torch.arange(T) < lengths[:, None])
    rows = [by_hand(pooling, kind, list(states[i, :n])) for i, n in enumerate(lengths.tolist())]
    output = torch.stack([row[0] for row in rows])
    assert_close(found.output, output)
    assert found.output.shape == (B, pooling.size)
    for row, (_, shares) in enumerate(rows):
        expected = torch.stack([torch.stack(of_query) for of_query in shares])
        assert_close(found.weights[row, :, : len(shares[0])], expected)
        assert not found.weights[row, :, len(shares[0]) :].any()
    direction = torch.randn_like(output)
    variables = [states, *pooling.parameters()]
    for ours, theirs in zip(
        torch.autograd.grad((found.output * direction).sum(), variables),
        torch.autograd.grad((output * direction).sum(), variables),
        strict=True,
    ):
        assert_close(ours, theirs)


@pytest.mark.parametrize("length", [0, T])
@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_set_gives_zeros_without_gradient(kind: str, length: int) -> None:
    pooling = make(kind)
    states = torch.randn(B, length, WIDTH, dtype=torch.float64, requires_grad=True)
    mask = torch.zeros(B, length, dtype=torch.bool)
    found = pooling(states, mask)
    assert torch.equal(found.output, torch.zeros(B, pooling.size).double())
    assert not found.weights.any()
    found.output.sum().backward()
    assert not states.grad.any()
    for parameter in pooling.parameters():
        assert parameter.grad is None or not parameter.grad.any()
    if length == 0:
        assert torch.equal(pooling(states).output, found.output)


@pytest.mark.parametrize("kind", KINDS)
@given(order=st.permutations(range(T)), padding=st.integers(0, 3))
@settings(max_examples=5, deadline=None)
def test_order_and_padding_change_nothing(kind: str, order: list[int], padding: int) -> None:
    pooling = make(kind)
    states = torch.randn(B, T, WIDTH, dtype=torch.float64)
    straight = pooling(states)
    padded = torch.cat([states[:, order], torch.full((B, padding, WIDTH), 1e6).double()], 1)
    found = pooling(padded, masks.lengths([T] * B))
    assert_close(found.output, straight.output)
    assert_close(found.weights[..., :T], straight.weights[..., order])


def test_one_word_changes_the_weight_of_another_only_in_context() -> None:
    states = torch.randn(T, WIDTH, dtype=torch.float64)
    other = torch.cat([states[:-1], torch.randn(1, WIDTH).double()])

    def ratio(kind: str) -> float:
        pooling = make(kind)
        first, second = (pooling(words).weights[0] for words in (states, other))
        return (first[0] / first[1] - second[0] / second[1]).abs().item()

    assert ratio("weighted") > 1e-6
    assert ratio("fixed") < 1e-12


def test_any_leading_axes_and_none() -> None:
    pooling = make("fixed")
    states = torch.randn(2, 3, T, WIDTH, dtype=torch.float64)
    mask = torch.rand(2, 3, T) < 0.5
    whole = pooling(states, mask)
    assert whole.output.shape == (2, 3, QUERIES * WIDTH)
    assert_close(pooling(states[1, 2], mask[1, 2]).output, whole.output[1, 2])


def test_the_best_word_by_its_angle_to_theta() -> None:
    pooling = Pooling(2, "fixed", score="cosine")
    with torch.no_grad():
        pooling.queries.copy_(torch.tensor([[3.0, 3.0]]))
    words = torch.tensor([[9.0, 0.0], [0.1, 0.1], [-5.0, -5.0]])
    assert pooling(words).weights[0].argsort(descending=True).tolist() == [1, 0, 2]


def test_state_dict_round_trip() -> None:
    first, second = (make("fixed mlp") for _ in range(2))
    second.load_state_dict(first.state_dict())
    states = torch.randn(B, T, WIDTH, dtype=torch.float64)
    assert torch.equal(first(states).output, second(states).output)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("maen",), {}, "unknown pooling 'maen': did you mean 'mean'?"),
        (("mean",), {"queries": 2}, "mean pooling has one query; 2 need the kind 'fixed'"),
        (("fixed",), {"queries": 0}, "at least one query; got 0"),
        (("fixed",), {"score": "dott"}, "unknown score 'dott': did you mean 'dot'?"),
        (("fixed",), {"normalize": "max"}, "unknown normalizer 'max'"),
    ],
)
def test_a_wrong_layer_is_refused_when_it_is_made(
    arguments: tuple, options: dict, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Pooling(WIDTH, *arguments, **options)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_inputs_are_named_with_their_shapes(kind: str) -> None:
    pooling, states = make(kind), torch.randn(B, T, WIDTH, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"set of shape \[3, 7, 4\] ends in 4; .* size 5"):
        pooling(states[..., :4])
    with pytest.raises(ValueError, match=r"True = may attend; got torch\.float32"):
        pooling(states, torch.ones(B, T))
    with pytest.raises(ValueError, match=r"mask of shape \[3, 1, 6\] does not broadcast"):
        pooling(states, torch.ones(B, T - 1, dtype=torch.bool))
