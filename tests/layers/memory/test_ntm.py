"""An NTM driven by hand: it writes along the slots and finds its way back."""

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.layers.memory.addressing import similarity
from regard.layers.memory.ntm import NTM, Heads, NTMInterface, NTMState

K, W = 7, 5


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def constant(value: float, *shape: int) -> Tensor:
    return torch.full(shape, value, dtype=torch.float64)


def reading(state: NTMState) -> Tensor:
    return (state.read @ state.memory)[0, 0]


def test_ntm_writes_a_sequence_by_moving_on_and_reads_it_back() -> None:
    ntm = NTM(K, W, 1, 1)
    state = ntm.initial(1, torch.device("cpu"), torch.float64)
    words = normal(4, W)

    def heads(move: int, gate: float = 0.0, key: Tensor | None = None) -> Heads:
        return Heads(
            key=torch.ones(1, 1, W, dtype=torch.float64) if key is None else key[None, None],
            strength=constant(100, 1, 1),
            gate=constant(gate, 1, 1),
            distances=F.one_hot(torch.tensor([[move + 1]]), 3).double(),
            sharpness=constant(1, 1, 1),
        )

    for step, word in enumerate(words):
        said = NTMInterface(
            heads(0), heads(1 if step else 0), constant(1, 1, 1, W), word[None, None]
        )
        state = ntm.step(said, state, similarity)
    torch.testing.assert_close(state.memory[0, :4], words)
    nothing = constant(0, 1, 1, W)
    for step, word in enumerate(words):
        said = NTMInterface(heads(1 if step else 0), heads(0), nothing, nothing)
        state = ntm.step(said, state, similarity)
        torch.testing.assert_close(reading(state), word)
    found_then_next = NTMInterface(heads(1, 1.0, words[1]), heads(0), nothing, nothing)
    state = ntm.step(found_then_next, state, similarity)
    torch.testing.assert_close(reading(state), words[2], rtol=1e-3, atol=1e-3)
