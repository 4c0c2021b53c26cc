"""A DNC driven by hand: allocation, links, content and freeing do what they are for."""

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.layers.memory.addressing import similarity
from regard.layers.memory.dnc import DNC, DNCInterface, DNCState

K, W = 7, 5


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def constant(value: float, *shape: int) -> Tensor:
    return torch.full(shape, value, dtype=torch.float64)


def dnc_says(**parts: Tensor) -> DNCInterface:
    """One head, one sequence: silent unless told otherwise."""
    silent = DNCInterface(
        read_key=torch.zeros(1, 1, W, dtype=torch.float64),
        read_strength=constant(100, 1, 1),
        read_modes=torch.tensor([[[0.0, 1.0, 0.0]]], dtype=torch.float64),
        write_key=torch.zeros(1, 1, W, dtype=torch.float64),
        write_strength=constant(100, 1, 1),
        erase=constant(1, 1, 1, W),
        add=torch.zeros(1, 1, W, dtype=torch.float64),
        free_gates=constant(0, 1, 1),
        allocation_gate=constant(1, 1, 1),
        write_gate=constant(0, 1, 1),
    )
    return silent._replace(**parts)


BACKWARD = torch.tensor([[[1.0, 0.0, 0.0]]], dtype=torch.float64)
FORWARD = torch.tensor([[[0.0, 0.0, 1.0]]], dtype=torch.float64)


def dnc_with(words: Tensor) -> tuple[DNC, DNCState]:
    """A DNC that has written these words, each to a free slot."""
    dnc = DNC(K, W, 1)
    state = dnc.initial(1, torch.device("cpu"), torch.float64)
    for word in words:
        said = dnc_says(add=word[None, None], write_gate=constant(1, 1, 1))
        state = dnc.step(said, state, similarity)
    return dnc, state


def reading(state: DNCState) -> Tensor:
    return (state.read @ state.memory)[0, 0]


def test_dnc_writes_a_sequence_and_reads_it_back_in_order_and_in_reverse() -> None:
    words = F.normalize(normal(5, W), dim=-1)
    dnc, state = dnc_with(words)
    torch.testing.assert_close(state.memory[0, :5], words)
    state = dnc.step(dnc_says(read_key=words[None, :1]), state, similarity)
    torch.testing.assert_close(reading(state), words[0], rtol=0, atol=1e-6)
    for word in words[1:]:
        state = dnc.step(dnc_says(read_modes=FORWARD), state, similarity)
        torch.testing.assert_close(reading(state), word, rtol=0, atol=1e-6)
    for word in words[:-1].flip(0):
        state = dnc.step(dnc_says(read_modes=BACKWARD), state, similarity)
        torch.testing.assert_close(reading(state), word, rtol=0, atol=1e-6)


def test_dnc_links_are_the_order_of_writing() -> None:
    _, state = dnc_with(normal(4, W))
    expected = torch.zeros(K, K, dtype=torch.float64)
    for slot in range(3):
        expected[slot + 1, slot] = 1
    torch.testing.assert_close(state.links[0], expected)
    assert state.precedence[0].argmax() == 3


def test_dnc_retrieves_by_content_from_a_damaged_key() -> None:
    words = torch.eye(W, dtype=torch.float64)
    dnc, state = dnc_with(words)
    damaged = words[3] + 0.3 * words[1]
    state = dnc.step(dnc_says(read_key=damaged[None, None]), state, similarity)
    torch.testing.assert_close(reading(state), words[3], rtol=0, atol=1e-6)


def test_dnc_frees_what_it_has_read_and_uses_it_again() -> None:
    words = torch.eye(W, dtype=torch.float64)
    dnc, state = dnc_with(words)
    state = dnc.step(dnc_says(read_key=words[None, 2:3]), state, similarity)
    said = dnc_says(
        free_gates=constant(1, 1, 1), add=constant(9, 1, 1, W), write_gate=constant(1, 1, 1)
    )
    state = dnc.step(said, state, similarity)
    assert state.write[0, 0].argmax() == 2
    torch.testing.assert_close(state.memory[0, 2], constant(9, W), rtol=0, atol=1e-6)
    torch.testing.assert_close(state.memory[0, [0, 1, 3, 4]], words[[0, 1, 3, 4]])


def test_dnc_with_a_closed_write_gate_changes_nothing() -> None:
    dnc, state = dnc_with(normal(3, W))
    after = dnc.step(dnc_says(add=constant(9, 1, 1, W)), state, similarity)
    for name in ("memory", "links", "precedence"):
        torch.testing.assert_close(getattr(after, name), getattr(state, name))
