"""MemoryAttention against loops from the equations, local forms included."""

import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from regard.attention import masks
from regard.layers import MemoryAttention

B, Q, K, QUERY, MEMORY, HIDDEN = 3, 5, 11, 7, 2, 13


def double(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def fit(reading: MemoryAttention, query: Tensor, key: Tensor) -> Tensor:
    """One query and one key, with the weights of an additive score."""
    score = reading.score
    return score.weight @ (score.query(query) + score.key.weight @ key).tanh()


def by_hand(
    reading: MemoryAttention, query: Tensor, memory: Tensor, lengths: list[int], position: int
) -> tuple[Tensor, Tensor]:
    outputs, rows = [], []
    for b in range(B):
        for q in range(Q):
            fits = [fit(reading, query[b, q], memory[b, k]) for k in range(lengths[b])]
            open_ = list(range(lengths[b]))
            if reading.local == "m":
                open_ = [k for k in open_ if abs(k - position - q) <= reading.width]
            if reading.local == "p":
                predict = reading.predict
                inner = predict.centre.weight[0] @ (predict.hidden.weight @ query[b, q]).tanh()
                centre = lengths[b] / (1 + (-inner).exp())
                open_ = [k for k in open_ if abs(k - centre) <= reading.width]
                deviation = reading.width / 2
                fits = [f - (k - centre) ** 2 / (2 * deviation**2) for k, f in enumerate(fits)]
            total = sum((fits[k].exp() for k in open_), start=torch.zeros(()).double())
            row = [fits[k].exp() / total if k in open_ else 0 * total for k in range(K)]
            rows.append(torch.stack(row))
            outputs.append(sum(row[k] * memory[b, k] for k in range(K)))
    return torch.stack(outputs).unflatten(0, (B, Q)), torch.stack(rows).unflatten(0, (B, Q))


@pytest.mark.parametrize("position", [0, 2])
@pytest.mark.parametrize("local", ["none", "m", "p"])
def test_equals_a_loop(local: str, position: int) -> None:
    reading = MemoryAttention(QUERY, MEMORY, hidden=HIDDEN, local=local, width=2).double()
    query, memory, lengths = double(B, Q, QUERY), double(B, K, MEMORY), [K, 4, 1]
    found = reading(query, reading.prepare(memory, torch.tensor(lengths)), position=position)
    output, weights = by_hand(reading, query, memory, lengths, position)
    assert_close(found.output, output)
    assert_close(found.weights, weights)
    direction = torch.randn_like(output)
    variables = [query, memory, *reading.parameters()]
    for ours, theirs in zip(
        torch.autograd.grad((found.output * direction).sum(), variables),
        torch.autograd.grad((output * direction).sum(), variables),
        strict=True,
    ):
        assert_close(ours, theirs)


@pytest.mark.parametrize("local", ["none", "m", "p"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_queries_at_once_equal_one_at_a_time(local: str, need_weights: bool) -> None:
    reading = MemoryAttention(QUERY, MEMORY, local=local, width=3).double()
    query = double(B, Q, QUERY)
    memory = reading.prepare(double(B, K, MEMORY), torch.tensor([K, 0, 5]))
    whole = reading(query, memory, need_weights=need_weights).output
    for q in range(Q):
        one = reading(query[:, q : q + 1], memory, position=q)
        assert_close(one.output[:, 0], whole[:, q])


@pytest.mark.parametrize("score", ["additive", "bilinear", "mlp"])
def test_preparing_the_keys_changes_neither_values_nor_gradients(score: str) -> None:
    reading = MemoryAttention(QUERY, MEMORY, score=score).double()
    query, memory = double(B, Q, QUERY), double(B, K, MEMORY)
    prepared = reading.prepare(memory)
    direct = prepared._replace(score=reading.score, key=memory)
    ours, theirs = reading(query, prepared), reading(query, direct)
    assert_close(ours.weights, theirs.weights)
    variables = [query, memory, *reading.parameters()]
    for found, correct in zip(
        torch.autograd.grad(ours.output.square().sum(), variables),
        torch.autograd.grad(theirs.output.square().sum(), variables),
        strict=True,
    ):
        assert correct.any()
        assert_close(found, correct)


def test_masks_of_every_form() -> None:
    reading = MemoryAttention(QUERY, MEMORY).double()
    query, states = double(B, Q, QUERY), double(B, K, MEMORY)
    lengths = torch.tensor([K, 0, 5])
    expected = reading(query, reading.prepare(states, lengths))
    memory = reading.prepare(states)
    real = torch.arange(K) < lengths[:, None]
    for mask in (masks.lengths(lengths), real, real[:, None], real[:, None].expand(B, Q, K)):
        found = reading(query, memory, mask)
        assert torch.equal(found.weights, expected.weights)
    odd = torch.arange(K) % 2 == 1
    both = reading(query, reading.prepare(states, lengths), odd.expand(B, K)).weights
    assert torch.equal(both > 0, (real & odd)[:, None].expand(B, Q, K))


def test_a_mask_of_as_many_examples_as_queries_is_one_of_examples() -> None:
    reading = MemoryAttention(QUERY, MEMORY)
    real = torch.arange(K) < torch.tensor([[1], [2], [3]])
    found = reading(torch.randn(3, 3, QUERY), reading.prepare(torch.randn(3, K, MEMORY)), real)
    assert torch.equal(found.weights > 0, real[:, None].expand(3, 3, K))


def test_beyond_the_reach_of_local_attention_nothing_is_read() -> None:
    reading = MemoryAttention(QUERY, MEMORY, local="m", width=1)
    found = reading(
        torch.randn(1, 1, QUERY), reading.prepare(torch.randn(1, K, MEMORY)), position=K + 1
    )
    assert not found.weights.any()
    assert not found.output.any()


def test_local_m_stays_exact_at_far_positions_in_half_precision() -> None:
    keys = 1000
    reading = MemoryAttention(QUERY, MEMORY, score="bilinear", local="m", width=1).bfloat16()
    memory = reading.prepare(torch.randn(1, keys, MEMORY).bfloat16())
    weights = reading(torch.randn(1, 1, QUERY).bfloat16(), memory, position=777).weights
    assert weights[0, 0].nonzero().flatten().tolist() == [776, 777, 778]


def test_local_p_prefers_what_is_near_its_centre() -> None:
    reading = MemoryAttention(
        QUERY, MEMORY, score=lambda q, k: 0 * (q.sum(-1, True) + k.sum(-1)[:, None])
    )
    near = MemoryAttention(QUERY, MEMORY, score=reading.score, local="p", width=4)
    memory = near.prepare(torch.randn(1, K, MEMORY))
    with torch.no_grad():
        near.predict.centre.weight.zero_()
    weights = near(torch.randn(1, 1, QUERY), memory).weights[0, 0]
    expected = [
        math.exp(-((k - K / 2) ** 2) / (2 * 2**2)) if abs(k - K / 2) <= 4 else 0.0 for k in range(K)
    ]
    assert_close(weights, torch.tensor(expected) / sum(expected))


class Unhashable:
    """A user's own score, which compares by value and so has no hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unhashable)

    __hash__ = None

    def __call__(self, query: Tensor, key: Tensor) -> Tensor:
        return query[..., :1] * key.sum(-1)[..., None, :]


def test_a_score_need_not_be_hashable() -> None:
    reading = MemoryAttention(QUERY, MEMORY, score=Unhashable())
    found = reading(torch.randn(B, Q, QUERY), reading.prepare(torch.randn(B, K, MEMORY)))
    assert found.weights.shape == (B, Q, K)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"score": "dot"},
            "score 'dot' compares vectors of the same size; .* size 7 and .* size 2",
        ),
        ({"score": "aditive"}, "unknown score 'aditive': did you mean 'additive'?"),
        ({"local": "q"}, "unknown local attention 'q'"),
        ({"normalize": "sofmax"}, "unknown normalizer 'sofmax': did you mean 'softmax'?"),
    ],
)
def test_a_wrong_layer_is_refused_when_it_is_made(options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MemoryAttention(QUERY, MEMORY, **options)


@pytest.mark.usefixtures("shapes_unchecked")
def test_wrong_inputs_are_named_with_their_shapes() -> None:
    reading = MemoryAttention(QUERY, MEMORY)
    query, memory = torch.randn(B, Q, QUERY), reading.prepare(torch.randn(B, K, MEMORY))
    with pytest.raises(ValueError, match=r"memory of shape \[3, 11, 3\] ends in 3; .* size 2"):
        reading.prepare(torch.randn(B, K, 3))
    with pytest.raises(ValueError, match=r"query of shape \[3, 5, 2\] ends in 2; .* size 7"):
        reading(query[..., :2], memory)
    with pytest.raises(ValueError, match=r"mask of shape \[2, 1, 11\] does not broadcast"):
        reading(query, memory, torch.ones(2, K, dtype=torch.bool))
    with pytest.raises(
        ValueError, match=r"lengths of shape \[2\] .* one number per example, \[3\]"
    ):
        reading.prepare(memory.value, torch.tensor([1, 2]))
