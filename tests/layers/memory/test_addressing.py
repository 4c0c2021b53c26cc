"""The addressing equations against plain loops written from the papers."""

from collections.abc import Callable

import jaxtyping
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck

from regard.layers.memory import addressing

B, H, K, W = 2, 3, 7, 5


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the shape checks of the tests, which are slow, or would answer first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def shares(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64).softmax(-1)


def between(*shape: int) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64) * 0.9 + 0.05


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def loop(function: Callable[..., float], *shape: int) -> Tensor:
    """A tensor whose entry at each index is function(*index)."""
    result = torch.zeros(*shape, dtype=torch.float64)
    for index in torch.cartesian_prod(*(torch.arange(n) for n in shape)).tolist():
        result[tuple(index)] = function(*index)
    return result


def cosine(u: Tensor, v: Tensor) -> Tensor:
    return u.dot(v) / (u.norm() * v.norm())


def content_by_hand(key: Tensor, memory: Tensor, strength: Tensor) -> Tensor:
    """One head, one sequence: key [w], memory [k w]."""
    powers = torch.stack([(strength * cosine(key, slot)).exp() for slot in memory])
    return powers / powers.sum()


def differentiable(function: Callable[..., Tensor | tuple[Tensor, ...]], *inputs: Tensor) -> None:
    assert gradcheck(function, [tensor.detach().requires_grad_() for tensor in inputs])


@pytest.mark.usefixtures("unchecked")
def test_content_weights_equal_the_equation() -> None:
    key, memory, strength = normal(B, H, W), normal(B, K, W), between(B, H) * 5
    expected = loop(
        lambda b, h, k: content_by_hand(key[b, h], memory[b], strength[b, h])[k].item(), B, H, K
    )
    ours = addressing.content_weights(key, memory, strength, "cosine")
    torch.testing.assert_close(ours, expected)
    nearly = addressing.content_weights(key, memory, strength)
    torch.testing.assert_close(nearly, expected, rtol=0, atol=1e-4)
    differentiable(addressing.content_weights, key[:1, :2], memory[:1, :3], strength[:1, :2])


def test_similarity_is_the_cosine_and_fades_for_short_vectors() -> None:
    query, key = normal(B, H, W), normal(B, K, W)
    key[0, 0], key[1, 1] = 0, key[1, 1] * 1e-5

    def length(vector: Tensor) -> float:
        return (vector.dot(vector) + 1e-6).item() ** 0.5

    expected = loop(
        lambda b, h, k: (
            query[b, h].dot(key[b, k]).item() / (length(query[b, h]) * length(key[b, k]))
        ),
        B,
        H,
        K,
    )
    torch.testing.assert_close(addressing.similarity(query, key), expected)
    assert (expected[1, :, 1].abs() < 0.1).all()
    differentiable(addressing.similarity, query, key)


def test_interpolate_equals_the_equation() -> None:
    content, previous, gate = shares(B, H, K), shares(B, H, K), between(B, H)
    expected = loop(
        lambda b, h, k: gate[b, h] * content[b, h, k] + (1 - gate[b, h]) * previous[b, h, k],
        B,
        H,
        K,
    )
    torch.testing.assert_close(addressing.interpolate(content, previous, gate), expected)
    differentiable(addressing.interpolate, content, previous, gate)


@pytest.mark.parametrize("reach", [0, 1, 2, 5])
def test_shift_is_a_circular_convolution(reach: int) -> None:
    weights, distances = shares(B, H, K), shares(B, H, 2 * reach + 1)

    def convolved(b: int, h: int, i: int) -> float:
        full = torch.zeros(K, dtype=torch.float64)
        for move in range(-reach, reach + 1):
            full[move % K] += distances[b, h, move + reach]
        return sum((weights[b, h, j] * full[(i - j) % K]).item() for j in range(K))

    torch.testing.assert_close(addressing.shift(weights, distances), loop(convolved, B, H, K))
    differentiable(addressing.shift, weights, distances)


def test_shift_by_one_moves_to_the_next_slot() -> None:
    weights = F.one_hot(torch.tensor([[K - 1]]), K).double()
    onward = torch.tensor([[[0.0, 0.0, 1.0]]], dtype=torch.float64)
    assert addressing.shift(weights, onward).tolist() == [[[1, 0, 0, 0, 0, 0, 0]]]


def test_sharpen_equals_the_equation() -> None:
    weights, sharpness = shares(B, H, K), 1 + 3 * between(B, H)
    expected = loop(
        lambda b, h, k: (
            (weights[b, h, k] ** sharpness[b, h]).item()
            / sum((weights[b, h, j] ** sharpness[b, h]).item() for j in range(K))
        ),
        B,
        H,
        K,
    )
    torch.testing.assert_close(addressing.sharpen(weights, sharpness), expected)
    differentiable(addressing.sharpen, weights, sharpness)


def test_sharpen_stays_finite_in_float32() -> None:
    weights = torch.tensor([[[1, 0, 0, 0], [0.25] * 4, [1e-30, 1e-30, 0, 1.0], [0] * 4]])
    weights = weights.float().requires_grad_()
    for value in (1.0, 1.5, 90.0, 1e4):
        sharpness = torch.full((1, 4), value, requires_grad=True)
        sharpened = addressing.sharpen(weights, sharpness)
        expected = torch.tensor([[[1, 0, 0, 0], [0.25] * 4, [0, 0, 0, 1], [0] * 4]])
        torch.testing.assert_close(sharpened, expected.float())
        gradients = torch.autograd.grad((sharpened * torch.arange(4)).sum(), (weights, sharpness))
        assert all(gradient.isfinite().all() for gradient in gradients)


def test_erase_and_add_equals_the_equation() -> None:
    memory, weights = normal(B, K, W), shares(B, H, K)
    erase, add = between(B, H, W), normal(B, H, W)

    def written(b: int, k: int, w: int) -> float:
        cell = memory[b, k, w].item()
        for h in range(H):
            cell *= 1 - (weights[b, h, k] * erase[b, h, w]).item()
        return cell + sum((weights[b, h, k] * add[b, h, w]).item() for h in range(H))

    torch.testing.assert_close(
        addressing.erase_and_add(memory, weights, erase, add), loop(written, B, K, W)
    )
    differentiable(addressing.erase_and_add, memory, weights, erase, add)


def test_retention_and_usage_equal_the_equations() -> None:
    free, read = between(B, H), shares(B, H, K)
    usage, write = between(B, K), shares(B, K)

    def retained(b: int, k: int) -> float:
        product = 1.0
        for h in range(H):
            product *= 1 - (free[b, h] * read[b, h, k]).item()
        return product

    psi = addressing.retention(free, read)
    torch.testing.assert_close(psi, loop(retained, B, K))
    torch.testing.assert_close(
        addressing.update_usage(usage, write, psi),
        loop(
            lambda b, k: (
                (usage[b, k] + write[b, k] - usage[b, k] * write[b, k]).item() * retained(b, k)
            ),
            B,
            K,
        ),
    )
    differentiable(addressing.retention, free, read)
    differentiable(addressing.update_usage, usage, write, psi)


def allocation_by_hand(usage: Tensor) -> list[float]:
    values = usage.tolist()
    order = sorted(range(len(values)), key=lambda k: values[k])
    weights, product = [0.0] * len(values), 1.0
    for k in order:
        weights[k] = (1 - values[k]) * product
        product *= values[k]
    return weights


def test_allocation_equals_the_equation() -> None:
    usage = between(B, K)
    usage[1, 2], usage[1, 4] = 0, 1
    expected = torch.tensor([allocation_by_hand(row) for row in usage], dtype=torch.float64)
    torch.testing.assert_close(addressing.allocation(usage), expected)
    differentiable(addressing.allocation, between(B, K))
    inner = usage[1].detach()[None].requires_grad_()
    (gradient,) = torch.autograd.grad(addressing.allocation(inner)[0, 2], inner)
    assert gradient[0, 2] == -1
    everything = addressing.allocation(torch.ones(1, K))
    assert (everything == 0).all()
    nothing = addressing.allocation(torch.zeros(1, K))
    assert nothing.tolist() == [[1, 0, 0, 0, 0, 0, 0]]


def test_allocation_of_many_slots_is_finite_in_float32() -> None:
    usage = torch.rand(3, 997) ** 8
    usage[0, :500] = 0
    usage.requires_grad_()
    weights = addressing.allocation(usage)
    exact = torch.tensor([allocation_by_hand(row) for row in usage.detach().double()])
    torch.testing.assert_close(weights, exact.float(), rtol=1e-4, atol=1e-7)
    (gradient,) = torch.autograd.grad((weights * torch.randn(3, 997)).sum(), usage)
    assert gradient.isfinite().all()


def test_precedence_and_links_equal_the_equations() -> None:
    links, precedence = 0.1 * between(B, K, K), 0.9 * shares(B, K)
    write = 0.8 * shares(B, K)

    def linked(b: int, i: int, j: int) -> float:
        if i == j:
            return 0.0
        decay = 1 - write[b, i] - write[b, j]
        return (decay * links[b, i, j] + write[b, i] * precedence[b, j]).item()

    torch.testing.assert_close(
        addressing.update_links(links, precedence, write), loop(linked, B, K, K)
    )
    torch.testing.assert_close(
        addressing.update_precedence(precedence, write),
        loop(lambda b, k: ((1 - write[b].sum()) * precedence[b, k] + write[b, k]).item(), B, K),
    )
    differentiable(addressing.update_links, links, precedence, write)
    differentiable(addressing.update_precedence, precedence, write)


def test_follow_links_equals_the_equations() -> None:
    links, read = between(B, K, K), shares(B, H, K)
    after, before = addressing.follow_links(links, read)
    torch.testing.assert_close(
        after,
        loop(lambda b, h, i: (links[b, i] * read[b, h]).sum().item(), B, H, K),
    )
    torch.testing.assert_close(
        before,
        loop(lambda b, h, j: (links[b, :, j] * read[b, h]).sum().item(), B, H, K),
    )
