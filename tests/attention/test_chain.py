"""Chain-structured attention against an enumeration of all paths in float64."""

from itertools import product

import pytest
import torch
from torch import Tensor

from regard.attention.chain import ChainPosteriors, chain_attention

EMPTY = 0.2


def sequence(seed: int, queries: int, keys: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)

    def positive(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, dtype=torch.float64) + 0.01

    return positive(queries, keys), positive(queries), positive(keys, keys), positive(keys)


def attend_one(emissions: Tensor, empty: Tensor, moves: Tensor, starts: Tensor) -> ChainPosteriors:
    queries, keys = emissions.shape
    lengths = torch.tensor([queries]), torch.tensor([keys])
    return chain_attention(emissions[None], empty[None], moves, starts, *lengths, EMPTY)


def enumerate_paths(
    emissions: Tensor, empty: Tensor, moves: Tensor, starts: Tensor
) -> tuple[Tensor, Tensor, Tensor, float]:
    """Posteriors, expected moves and the likelihood, as a sum over all paths.

    A state is a key and whether the query attends to it; an empty query keeps the key.
    """
    queries, keys = emissions.shape
    weights, none = torch.zeros(queries, keys).double(), torch.zeros(queries).double()
    counts, total = torch.zeros(keys, keys).double(), 0.0
    for path in product(product(range(keys), (True, False)), repeat=queries):
        probability, before = 1.0, None
        steps = []
        for q, (key, attends) in enumerate(path):
            if before is None:
                probability *= float(starts[key] / starts.sum())
            elif attends:
                probability *= float(moves[before, key] / moves[before].sum())
                steps.append((before, key))
            elif key != before:
                probability = 0.0
            emitted = (1 - EMPTY) * emissions[q, key] if attends else EMPTY * empty[q]
            probability *= float(emitted)
            before = key
        total += probability
        for q, (key, attends) in enumerate(path):
            if attends:
                weights[q, key] += probability
            else:
                none[q] += probability
        for step in steps:
            counts[step] += probability
    return weights / total, none / total, counts / total, total


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 3), (3, 1), (4, 3), (3, 4)])
def test_enumeration(queries: int, keys: int) -> None:
    given = sequence(queries * 10 + keys, queries, keys)
    weights, none, counts, total = enumerate_paths(*given)
    found = attend_one(*given)
    torch.testing.assert_close(found.weights[0], weights)
    torch.testing.assert_close(found.empty[0], none)
    torch.testing.assert_close(found.moves, counts)
    assert float(found.log_likelihood[0].exp()) == pytest.approx(total)


def test_rows_sum_to_one_with_the_empty_key() -> None:
    found = attend_one(*sequence(3, 11, 7))
    torch.testing.assert_close(found.weights.sum(-1) + found.empty, torch.ones(1, 11).double())


def test_batched_is_single_and_padding_has_no_influence() -> None:
    sizes = [(5, 3), (2, 7), (1, 1), (5, 7)]
    given = [sequence(seed, *size) for seed, size in enumerate(sizes)]
    _, _, moves, starts = sequence(9, 5, 7)
    emissions, empty = torch.full((4, 5, 7), 0.7).double(), torch.full((4, 5), 0.3).double()
    for row, ((queries, keys), one) in enumerate(zip(sizes, given, strict=True)):
        emissions[row, :queries, :keys], empty[row, :queries] = one[0], one[1]
    lengths = torch.tensor([q for q, _ in sizes]), torch.tensor([k for _, k in sizes])
    batch = chain_attention(emissions, empty, moves, starts, *lengths, EMPTY)
    counts = torch.zeros_like(moves)
    for row, ((queries, keys), one) in enumerate(zip(sizes, given, strict=True)):
        single = attend_one(one[0], one[1], moves[:keys, :keys], starts[:keys])
        expected = torch.zeros(5, 7).double()
        expected[:queries, :keys] = single.weights[0]
        torch.testing.assert_close(batch.weights[row], expected)
        torch.testing.assert_close(batch.empty[row, :queries], single.empty[0])
        torch.testing.assert_close(batch.log_likelihood[row], single.log_likelihood[0])
        assert not batch.empty[row, queries:].any()
        counts[:keys, :keys] += single.moves
    torch.testing.assert_close(batch.moves, counts)


def test_posteriors_are_gradients_of_the_log_likelihood() -> None:
    emissions, empty, moves, starts = sequence(4, 5, 3)
    logs = emissions.log().requires_grad_()
    found = attend_one(logs.exp(), empty, moves, starts)
    found.log_likelihood.sum().backward()
    torch.testing.assert_close(logs.grad, found.weights[0].detach())


def test_impossible_emissions_give_zeros() -> None:
    _, empty, moves, starts = sequence(5, 3, 2)
    found = attend_one(torch.zeros(3, 2).double(), empty, moves, starts)
    assert not found.weights.any()
    torch.testing.assert_close(found.empty, torch.ones(1, 3).double())


def test_without_emissions_of_any_kind_there_is_no_nan() -> None:
    _, empty, moves, starts = sequence(6, 3, 2)
    found = attend_one(torch.zeros(3, 2).double(), empty * 0, moves, starts)
    assert not found.weights.isnan().any()
    assert not found.empty.isnan().any()
