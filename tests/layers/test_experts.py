"""Experts against a loop over tokens and experts, the sparse path against its dense twin."""

from collections.abc import Callable
from math import exp

import jaxtyping
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention import attend, scores
from regard.layers.experts import Experts, Mixture, balance_loss

WIDTH, HIDDEN, EXPERTS, OUTPUT = 5, 7, 3, 2
TOP_K = [None, 1, 2, 3]


def layer(top_k: int | None, **options: object) -> Experts:
    return Experts(WIDTH, HIDDEN, EXPERTS, output_size=OUTPUT, top_k=top_k, **options).double()


def expert(experts: Experts, number: int, token: Tensor) -> Tensor:
    hidden = F.relu(token @ experts.inner_weight[number] + experts.inner_bias[number])
    return hidden @ experts.outer_weight[number] + experts.outer_bias[number]


def by_hand(experts: Experts, token: Tensor) -> tuple[Tensor, Tensor]:
    """Output and weights of one token, expert after expert."""
    fit = [token @ key for key in experts.keys]
    order = sorted(range(EXPERTS), key=lambda number: -fit[number].item())
    kept = order[: experts.top_k or EXPERTS]
    among = range(EXPERTS) if experts.top_k == 1 else kept
    total = torch.stack([fit[number].exp() for number in among]).sum()
    zero = token.new_zeros(())
    weights = [fit[n].exp() / total if n in kept else zero for n in range(EXPERTS)]
    output = torch.stack([weights[n] * expert(experts, n, token) for n in kept]).sum(0)
    return output, torch.stack(weights)


@pytest.mark.parametrize("top_k", TOP_K)
def test_values_and_gradients_equal_a_loop(top_k: int | None) -> None:
    experts = layer(top_k)
    tokens = torch.randn(11, WIDTH, dtype=torch.float64, requires_grad=True)
    ours = experts(tokens)
    rows = [by_hand(experts, token) for token in tokens]
    output, weights = (torch.stack(part) for part in zip(*rows, strict=True))
    torch.testing.assert_close(ours.output, output)
    torch.testing.assert_close(ours.weights, weights)
    inputs = (tokens, *experts.parameters())
    direction = torch.randn_like(output)
    for a, b in zip(
        torch.autograd.grad((ours.output * direction).sum(), inputs),
        torch.autograd.grad((output * direction).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_sparse_equals_the_dense_twin_with_zeroed_gates(top_k: int) -> None:
    experts = layer(top_k)
    tokens = torch.randn(2, 13, WIDTH, dtype=torch.float64, requires_grad=True)
    flat = tokens.flatten(0, 1)
    sparse = experts(tokens).output
    dense = experts._mix_all(flat, experts.route(flat)).unflatten(0, (2, 13))
    torch.testing.assert_close(sparse, dense)
    inputs = (tokens, *experts.parameters())
    direction = torch.randn_like(dense)
    for a, b in zip(
        torch.autograd.grad((sparse * direction).sum(), inputs),
        torch.autograd.grad((dense * direction).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


def test_soft_mixture_is_attend() -> None:
    experts = layer(None)
    tokens = torch.randn(11, WIDTH, dtype=torch.float64)
    made = torch.stack([expert(experts, number, tokens) for number in range(EXPERTS)], 1)
    attended = attend(tokens[:, None], experts.keys, made, score="dot")
    mixture = experts(tokens)
    torch.testing.assert_close(mixture.output, attended.output[:, 0])
    torch.testing.assert_close(mixture.weights, attended.weights[:, 0])


@pytest.mark.parametrize("top_k", [1, 2])
def test_only_the_chosen_experts_are_computed(top_k: int) -> None:
    seen: list[int] = []

    def counting(hidden: Tensor) -> Tensor:
        seen.append(len(hidden))
        return F.relu(hidden)

    experts = layer(top_k, activation=counting)
    experts(torch.randn(17, WIDTH, dtype=torch.float64))
    assert sum(seen) == 17 * top_k


def test_an_expert_that_nobody_chooses_gets_zero_gradients() -> None:
    experts = layer(1)
    with torch.no_grad():
        experts.keys.copy_(torch.eye(EXPERTS, WIDTH) * torch.tensor([[9.0], [-9.0], [-9.0]]))
    tokens = torch.rand(7, WIDTH, dtype=torch.float64) + 0.5
    mixture = experts(tokens)
    assert (mixture.weights[:, 1:] == 0).all()
    mixture.output.sum().backward()
    assert experts.inner_weight.grad is not None
    assert (experts.inner_weight.grad[1:] == 0).all()
    assert experts.inner_weight.grad[0].abs().sum() > 0


@pytest.mark.parametrize("top_k", TOP_K)
def test_gradcheck(top_k: int | None) -> None:
    experts = Experts(3, 2, 3, top_k=top_k, activation=torch.tanh).double()
    tokens = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)

    def mixed(tokens: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        named = dict(zip(dict(experts.named_parameters()), parameters, strict=True))
        return tuple(torch.func.functional_call(experts, named, (tokens,)))

    assert torch.autograd.gradcheck(mixed, (tokens, *experts.parameters()))


@pytest.mark.parametrize("top_k", TOP_K)
@pytest.mark.parametrize("leading", [(), (4,), (2, 3), (2, 1, 3), (0,), (2, 0)])
def test_any_leading_axes(top_k: int | None, leading: tuple[int, ...]) -> None:
    experts = layer(top_k)
    tokens = torch.randn(*leading, WIDTH, dtype=torch.float64)
    mixture = experts(tokens)
    assert mixture.output.shape == (*leading, OUTPUT)
    assert mixture.weights.shape == (*leading, EXPERTS)
    assert mixture.balance.isfinite()
    flat = experts(tokens.reshape(-1, WIDTH))
    torch.testing.assert_close(mixture.output.reshape(-1, OUTPUT), flat.output)


@pytest.mark.parametrize("top_k", TOP_K)
def test_padding_changes_nothing_even_nan(top_k: int | None) -> None:
    experts = layer(top_k)
    tokens = torch.randn(2, 5, WIDTH, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([[5], [2]])
    poisoned = tokens.masked_fill(~mask[..., None], torch.nan).requires_grad_()
    padded, alone = experts(poisoned, mask), experts(tokens[mask])
    torch.testing.assert_close(padded.output[mask], alone.output)
    torch.testing.assert_close(padded.weights[mask], alone.weights)
    torch.testing.assert_close(padded.balance, alone.balance)
    assert (padded.output[~mask] == 0).all()
    assert (padded.weights[~mask] == 0).all()
    (padded.output.sum() + padded.balance).backward()
    assert poisoned.grad is not None
    assert (poisoned.grad[~mask] == 0).all()
    assert all(parameter.grad.isfinite().all() for parameter in experts.parameters())


@pytest.mark.parametrize("top_k", TOP_K)
def test_nothing_but_padding_gives_zeros(top_k: int | None) -> None:
    mixture = layer(top_k)(
        torch.randn(2, 3, WIDTH, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.bool)
    )
    assert (mixture.output == 0).all()
    assert mixture.balance == 0


def test_balance_loss_by_hand() -> None:
    sent = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    probabilities = torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
    expected = 2 * (2 / 3 * (0.9 + 0.6 + 0.3) / 3 + 1 / 3 * (0.1 + 0.4 + 0.7) / 3)
    assert balance_loss(sent, probabilities).item() == pytest.approx(expected)
    everything = torch.tensor([[0.0, 1.0]] * 5)
    assert balance_loss(everything, everything) == 2
    importance = probabilities.sum(0)
    variation = importance.var(correction=0) / importance.mean() ** 2
    assert balance_loss(probabilities, probabilities).item() == pytest.approx(1 + variation.item())


@pytest.mark.parametrize("top_k", TOP_K)
def test_balance_of_the_layer_counts_the_choices(top_k: int | None) -> None:
    experts = layer(top_k)
    tokens = torch.randn(19, WIDTH, dtype=torch.float64)
    counts, mass = [0.0] * EXPERTS, [0.0] * EXPERTS
    for token in tokens:
        fit = [(token @ key).item() for key in experts.keys]
        shares = [exp(f) / sum(map(exp, fit)) for f in fit]
        best = sorted(range(EXPERTS), key=lambda n: -fit[n])[: top_k or EXPERTS]
        for number in range(EXPERTS):
            mass[number] += shares[number] / 19
            if top_k is None:
                counts[number] += shares[number] / 19
            elif number in best:
                counts[number] += 1 / top_k / 19
    expected = EXPERTS * sum(f * p for f, p in zip(counts, mass, strict=True))
    assert experts(tokens).balance.item() == pytest.approx(expected)


@pytest.mark.parametrize("top_k", [None, 1, 2])
def test_minimising_the_balance_loss_evens_the_load(top_k: int | None) -> None:
    experts = layer(top_k)
    with torch.no_grad():
        experts.keys[0] += 2.0
    tokens = torch.randn(64, WIDTH, dtype=torch.float64) + 0.5
    before = experts(tokens).balance.item()
    optimizer = torch.optim.Adam([experts.keys], lr=0.05)
    for _ in range(40):
        optimizer.zero_grad()
        experts(tokens).balance.backward()
        optimizer.step()
    after = experts(tokens).balance.item()
    assert before > 1.15
    assert after < 1.05


def test_noise_in_training_alone_and_by_its_formula() -> None:
    experts = layer(2, noise=True)
    assert experts.noise is not None
    torch.nn.init.normal_(experts.noise.weight)
    tokens = torch.randn(7, WIDTH, dtype=torch.float64)
    torch.manual_seed(3)
    ours = experts.route(tokens).probabilities
    torch.manual_seed(3)
    epsilon = torch.randn(7, EXPERTS, dtype=torch.float64)
    spread = (1 + (tokens @ experts.noise.weight.t()).exp()).log()
    fit = tokens @ experts.keys.t() + epsilon * spread
    torch.testing.assert_close(ours, fit.exp() / fit.exp().sum(-1, keepdim=True))
    experts(tokens).output.sum().backward()
    assert experts.noise.weight.grad is not None
    assert experts.noise.weight.grad.abs().sum() > 0
    experts.eval()
    torch.testing.assert_close(
        experts.route(tokens).probabilities, (tokens @ experts.keys.t()).softmax(-1)
    )


@pytest.mark.parametrize("top_k", [None, 1, 2])
@pytest.mark.parametrize(
    "score",
    [*scores.SCORES, lambda query, key: -torch.cdist(query, key)],
)
def test_every_score_can_be_the_gate(
    top_k: int | None, score: str | Callable[[Tensor, Tensor], Tensor]
) -> None:
    experts = layer(top_k, score=score)
    tokens = torch.randn(2, 7, WIDTH, dtype=torch.float64)
    mixture = experts(tokens)
    torch.testing.assert_close(mixture.weights.sum(-1) <= 1 + 1e-9, torch.ones(2, 7).bool())
    mixture.output.sum().backward()
    if score != "location":
        assert experts.keys.grad is not None
        assert experts.keys.grad.abs().sum() > 0
    for parameter in getattr(experts.score, "parameters", list)():
        assert parameter.grad is not None


def test_bfloat16_autocast() -> None:
    for top_k in TOP_K:
        experts = Experts(WIDTH, HIDDEN, EXPERTS, top_k=top_k)
        tokens = torch.randn(4, 3, WIDTH)
        exact = experts(tokens).output
        with torch.autocast("cpu", dtype=torch.bfloat16):
            mixture = experts(tokens)
        torch.testing.assert_close(mixture.output.float(), exact, rtol=0.1, atol=0.05)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(0, 12), st.integers(0, 2**31), st.floats(0.1, 30))
def test_weights_are_shares_and_permuting_tokens_permutes_them(
    count: int, tokens: int, seed: int, scale: float
) -> None:
    torch.manual_seed(seed)
    top_k = None if seed % 3 == 0 else 1 + seed % count
    experts = Experts(WIDTH, HIDDEN, count, top_k=top_k)
    inputs = scale * torch.randn(tokens, WIDTH)
    mixture: Mixture = experts(inputs)
    assert (mixture.weights >= 0).all()
    sums = mixture.weights.sum(-1)
    assert (sums <= 1 + 1e-5).all()
    if top_k != 1:
        torch.testing.assert_close(sums, torch.ones(tokens))
    assert ((mixture.weights > 0).sum(-1) <= (top_k or count)).all()
    order = torch.randperm(tokens)
    torch.testing.assert_close(experts(inputs[order]).output, mixture.output[order])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"top_k": 4}, "top_k must be from 1 to the 3 experts, got 4"),
        ({"top_k": 0}, "top_k must be from 1 to the 3 experts, got 0"),
        ({"score": "dto"}, "unknown score 'dto': did you mean 'dot'"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Experts(WIDTH, HIDDEN, EXPERTS, **arguments)


def test_wrong_shapes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    experts = Experts(WIDTH, HIDDEN, EXPERTS)
    with pytest.raises(ValueError, match=r"tokens must be \[.., 5\], got shape \[2, 4\]"):
        experts(torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"bool tensor .* of shape \[2\], got .* shape \[3\]"):
        experts(torch.zeros(2, WIDTH), torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"bool tensor .*got torch.float32"):
        experts(torch.zeros(2, WIDTH), torch.ones(2))
    with pytest.raises(ValueError, match="experts must be at least 1, got 5, 7, 0"):
        Experts(WIDTH, HIDDEN, 0)
    crooked = Experts(WIDTH, HIDDEN, EXPERTS, score=lambda query, key: query)
    with pytest.raises(ValueError, match=r"score returned \[2, 5\] .* expected \[2, 3\]"):
        crooked(torch.zeros(2, WIDTH))
