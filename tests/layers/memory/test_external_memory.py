"""The memory over several steps against the papers' equations, head after head."""

from collections.abc import Callable

import jaxtyping
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck

from regard.attention import scores
from regard.layers.memory.dnc import DNCState
from regard.layers.memory.external_memory import Memory

B, K, W = 2, 7, 5


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the shape checks of the tests, which are slow, or would answer first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def cosine(u: Tensor, v: Tensor) -> Tensor:
    return u.dot(v) / (u.norm() * v.norm())


def controls(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def make(kind: str, **options: object) -> Memory:
    heads = {"read_heads": 2, "write_heads": 3} if kind == "ntm" else {"read_heads": 2}
    return Memory(K, W, 11, **heads, addressing=kind, **options).double()


def oneplus(x: Tensor) -> Tensor:
    return 1 + (1 + x.exp()).log()


def ntm_by_hand(memory: Memory, sequence: Tensor) -> tuple[list[Tensor], Tensor]:
    """One sequence [t c] through the NTM, head after head: readings and the final memory."""
    cells = torch.zeros(K, W, dtype=torch.float64)
    previous = [F.one_hot(torch.tensor(0), K).double() for _ in range(5)]
    readings = []
    for control in sequence:
        vector = memory.interface.weight @ control + memory.interface.bias
        sizes = [5 * W, 5, 5, 5 * 3, 5, 3 * W, 3 * W]
        keys, beta, gate, moves, gamma, erase, add = vector.split(sizes)

        def address(
            head: int,
            cells: Tensor,
            keys: Tensor = keys,
            beta: Tensor = beta,
            gate: Tensor = gate,
            moves: Tensor = moves,
            gamma: Tensor = gamma,
        ) -> Tensor:
            key, strength = keys.view(5, W)[head], (1 + beta[head].exp()).log()
            fit = [strength * (cosine(key, cell) if cell.norm() > 0 else 0.0) for cell in cells]
            content = torch.stack(fit).exp() / torch.stack(fit).exp().sum()
            g = gate[head].sigmoid()
            gated = g * content + (1 - g) * previous[head]
            s = moves.view(5, 3)[head].exp() / moves.view(5, 3)[head].exp().sum()
            shifted = torch.stack(
                [
                    gated[(i + 1) % K] * s[0] + gated[i] * s[1] + gated[i - 1] * s[2]
                    for i in range(K)
                ]
            )
            powers = shifted ** oneplus(gamma[head])
            previous[head] = powers / powers.sum()
            return previous[head]

        writes = [address(2 + head, cells) for head in range(3)]
        for head, weights in enumerate(writes):
            cells = cells * (1 - torch.outer(weights, erase.view(3, W)[head].sigmoid()))
        for head, weights in enumerate(writes):
            cells = cells + torch.outer(weights, add.view(3, W)[head])
        readings.append(torch.cat([address(head, cells) @ cells for head in range(2)]))
    return readings, cells


def dnc_by_hand(memory: Memory, sequence: Tensor) -> tuple[list[Tensor], Tensor]:
    """One sequence [t c] through the DNC's equations, in the order of the paper."""
    cells = torch.zeros(K, W, dtype=torch.float64)
    usage = precedence = write = torch.zeros(K, dtype=torch.float64)
    links = torch.zeros(K, K, dtype=torch.float64)
    reads = [torch.zeros(K, dtype=torch.float64)] * 2
    readings = []

    def content(key: Tensor, strength: Tensor, cells: Tensor) -> Tensor:
        fit = [strength * (cosine(key, cell) if cell.norm() > 0 else 0.0) for cell in cells]
        return torch.stack(fit).exp() / torch.stack(fit).exp().sum()

    for control in sequence:
        vector = memory.interface.weight @ control + memory.interface.bias
        sizes = [2 * W, 2, 2 * 3, W, 1, W, W, 2, 1, 1]
        key_r, beta_r, modes, key_w, beta_w, erase, add, free, g_a, g_w = vector.split(sizes)
        psi = (1 - free[0].sigmoid() * reads[0]) * (1 - free[1].sigmoid() * reads[1])
        usage = (usage + write - usage * write) * psi
        order = usage.argsort(stable=True).tolist()
        allocated, product = [torch.zeros(())] * K, torch.ones((), dtype=torch.float64)
        for slot in order:
            allocated[slot] = (1 - usage[slot]) * product
            product = product * usage[slot]
        searched = content(key_w, oneplus(beta_w[0]), cells)
        mixed = g_a.sigmoid() * torch.stack(allocated) + (1 - g_a.sigmoid()) * searched
        write = g_w.sigmoid() * mixed
        cells = cells * (1 - torch.outer(write, erase.sigmoid())) + torch.outer(write, add)
        links = (1 - write[:, None] - write[None, :]) * links + torch.outer(write, precedence)
        links = links * (1 - torch.eye(K, dtype=torch.float64))
        precedence = (1 - write.sum()) * precedence + write
        turned = []
        for head in range(2):
            pi = modes.view(2, 3)[head].exp() / modes.view(2, 3)[head].exp().sum()
            found = content(key_r.view(2, W)[head], oneplus(beta_r[head]), cells)
            turned.append(
                pi[0] * links.t() @ reads[head] + pi[1] * found + pi[2] * links @ reads[head]
            )
        reads = turned
        readings.append(torch.cat([weights @ cells for weights in reads]))
    return readings, cells


@pytest.mark.parametrize(("kind", "by_hand"), [("ntm", ntm_by_hand), ("dnc", dnc_by_hand)])
def test_values_and_gradients_over_steps_equal_the_papers_equations(
    kind: str, by_hand: Callable[[Memory, Tensor], tuple[list[Tensor], Tensor]]
) -> None:
    memory = make(kind, score="cosine")
    sequences = controls(4, B, 11).requires_grad_()
    state, ours = memory.initial(B), []
    for control in sequences:
        read, state, _ = memory(control, state)
        ours.append(read)
    rows = [by_hand(memory, sequences[:, row]) for row in range(B)]
    theirs = torch.stack([torch.stack(readings) for readings, _ in rows], 1)
    torch.testing.assert_close(torch.stack(ours), theirs)
    torch.testing.assert_close(state.memory, torch.stack([cells for _, cells in rows]))
    inputs = (sequences, *memory.parameters())
    direction = torch.randn_like(theirs)
    for a, b in zip(
        torch.autograd.grad((torch.stack(ours) * direction).sum(), inputs),
        torch.autograd.grad((theirs * direction).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("kind", ["ntm", "dnc"])
def test_gradcheck_through_two_steps(kind: str) -> None:
    memory = Memory(3, 2, 3, 1, addressing=kind).double()

    def run(first: Tensor, second: Tensor, *parameters: Tensor) -> Tensor:
        named = dict(zip(dict(memory.named_parameters()), parameters, strict=True))
        _, state, _ = torch.func.functional_call(memory, named, (first, memory.initial(2)))
        read, state, weights = torch.func.functional_call(memory, named, (second, state))
        return torch.cat([part.flatten() for part in (read, *state, *weights.values())])

    inputs = [controls(2, 3).requires_grad_() for _ in range(2)]
    assert gradcheck(run, (*inputs, *memory.parameters()), fast_mode=True)


@settings(deadline=None, max_examples=12)
@given(st.sampled_from(["ntm", "dnc"]), st.integers(0, 2**31), st.floats(0.1, 60))
def test_weights_are_shares_whatever_the_controller_says(
    kind: str, seed: int, scale: float
) -> None:
    torch.manual_seed(seed)
    memory = make(kind).float()
    state = memory.initial(B)
    for _ in range(4):
        read, state, weights = memory(scale * torch.randn(B, 11), state)
        assert read.isfinite().all()
        assert weights["read"].shape == (B, 2, K)
        assert weights["write"].shape == (B, 3 if kind == "ntm" else 1, K)
        for rows in weights.values():
            assert (rows >= 0).all()
            assert (rows.sum(-1) <= 1 + 1e-5).all()
            if kind == "ntm":
                torch.testing.assert_close(rows.sum(-1), torch.ones(rows.shape[:2]))
        if isinstance(state, DNCState):
            assert ((state.usage >= 0) & (state.usage <= 1)).all()
            assert (state.links.diagonal(dim1=1, dim2=2) == 0).all()
            assert (state.links >= 0).all()
            assert (state.links.sum(1) <= 1 + 1e-5).all()
            assert (state.links.sum(2) <= 1 + 1e-5).all()
            assert (state.precedence.sum(1) <= 1 + 1e-5).all()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("kind", ["ntm", "dnc"])
def test_gradients_in_float32_are_those_of_float64(kind: str) -> None:
    memory = make(kind)
    with torch.no_grad():
        memory.interface.weight *= 5
    sequence, gradients = torch.randn(9, B, 11), []
    for dtype in (torch.float32, torch.float64):
        memory, inputs = memory.to(dtype), sequence.to(dtype).requires_grad_()
        state, total = memory.initial(B), torch.zeros((), dtype=dtype)
        for control in inputs:
            read, state, _ = memory(control, state)
            total = total + read.sin().sum()
        gradients.append(torch.autograd.grad(total, inputs)[0].double())
    ours, exact = gradients
    assert ((ours - exact).norm() / exact.norm()).item() < 1e-3


@pytest.mark.parametrize("kind", ["ntm", "dnc"])
@pytest.mark.parametrize(
    "score",
    [*scores.SCORES, lambda query, key: -torch.cdist(query, key)],
)
def test_every_score_can_address(
    kind: str, score: str | Callable[[Tensor, Tensor], Tensor]
) -> None:
    memory = make(kind, score=score)
    state, total = memory.initial(B), torch.zeros((), dtype=torch.float64)
    for control in controls(3, B, 11):
        read, state, weights = memory(control, state)
        total = total + read.sum()
        assert (weights["read"].sum(-1) <= 1 + 1e-9).all()
    total.backward()
    for parameter in memory.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()


@pytest.mark.parametrize("kind", ["ntm", "dnc"])
def test_batch_equals_single_and_nothing_is_remembered(kind: str) -> None:
    memory = make(kind)
    sequences = controls(4, 3, 11)

    def run(inputs: Tensor) -> Tensor:
        state, reads = memory.initial(inputs.shape[1]), []
        for control in inputs:
            read, state, _ = memory(control, state)
            reads.append(read)
        return torch.stack(reads)

    together = run(sequences)
    for row in range(3):
        torch.testing.assert_close(run(sequences[:, row : row + 1])[:, 0], together[:, row])
    torch.testing.assert_close(run(sequences), together, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["ntm", "dnc"])
def test_autocast_keeps_the_state_in_its_own_dtype(kind: str) -> None:
    memory = make(kind).float()
    state = memory.initial(B)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        read, state, _ = memory(torch.randn(B, 11), state)
    assert read.dtype == torch.float32
    assert all(tensor.dtype == torch.float32 for tensor in state)


def test_initial_takes_device_and_dtype() -> None:
    state = make("dnc").initial(2, "meta", torch.float16)
    assert all(tensor.device.type == "meta" for tensor in state)
    assert all(tensor.dtype == torch.float16 for tensor in state)


@pytest.mark.usefixtures("unchecked")
def test_wrong_use_is_named() -> None:
    memory = make("dnc")
    with pytest.raises(ValueError, match=r"controller must be \[batch, 11\], got shape \[2, 5\]"):
        memory(controls(2, 5), memory.initial(2))
    with pytest.raises(ValueError, match=r"state.memory must have shape \[2, 7, 5\], got \[3, 7"):
        memory(controls(2, 11), memory.initial(3))
    with pytest.raises(ValueError, match=r"state.write must have shape \[2, 1, 7\]"):
        memory(controls(2, 11), make("ntm").initial(2))
    with pytest.raises(ValueError, match="one write head, got 2"):
        Memory(K, W, 11, write_heads=2, addressing="dnc")
    with pytest.raises(ValueError, match="unknown addressing 'dcn': did you mean 'dnc'"):
        Memory(K, W, 11, addressing="dcn")
    with pytest.raises(ValueError, match="slots must be at least 1, got 0"):
        Memory(0, W, 11)
    with pytest.raises(ValueError, match="reach must not be negative, got -1"):
        Memory(K, W, 11, reach=-1)


@pytest.mark.parametrize("addressing", ["ntm", "dnc"])
def test_a_fresh_head_looks_for_what_would_be_written(addressing):
    memory = Memory(5, 3, 7, read_heads=2, addressing=addressing)
    shapes, weight = memory.mechanism.shapes, memory.interface.weight
    sizes = [torch.Size(shape).numel() for shape in shapes.values()]
    parts = dict(zip(shapes, weight.split(sizes), strict=True))
    sought = parts["key" if addressing == "ntm" else "read_key"]
    for head in sought.split(3):
        assert torch.equal(head, parts["add"])
