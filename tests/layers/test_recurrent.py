"""Cells from their equations, and the encoder against torch on one unpadded sequence at a time."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.testing import assert_close

from regard.layers import Cell, Encoder
from regard.layers.recurrent import SEQUENCES, StackedCell

B, T, WIDTH, HIDDEN = 5, 7, 3, 2
KINDS = ["elman", "gru", "lstm"]


def double(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def by_hand(cell: Cell, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The equations, in the order in which torch stacks its gates."""
    weights = cell.step
    inner = x @ weights.weight_ih.T + weights.bias_ih
    outer = state[0] @ weights.weight_hh.T + weights.bias_hh
    if cell.kind == "elman":
        return ((inner + outer).tanh(),)
    if cell.kind == "gru":
        (r, z, n), (hr, hz, hn) = inner.chunk(3, -1), outer.chunk(3, -1)
        reset, update = (r + hr).sigmoid(), (z + hz).sigmoid()
        return ((1 - update) * (n + reset * hn).tanh() + update * state[0],)
    i, f, g, o = (inner + outer).chunk(4, -1)
    memory = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * memory.tanh(), memory


@pytest.mark.parametrize("kind", KINDS)
def test_cells_from_their_equations(kind: str) -> None:
    cell = Cell(WIDTH, HIDDEN, kind).double()
    x, hidden = double(B, WIDTH), double(B, HIDDEN)
    state = cell.initial(hidden)
    found, expected = cell(x, state), by_hand(cell, x, state)
    assert len(found) == len(expected) == (2 if kind == "lstm" else 1)
    variables = [x, hidden, *cell.parameters()]
    for part, correct in zip(found, expected, strict=True):
        assert_close(part, correct)
    for part, correct in zip(
        torch.autograd.grad(found[-1].square().sum(), variables, allow_unused=True),
        torch.autograd.grad(expected[-1].square().sum(), variables, allow_unused=True),
        strict=True,
    ):
        assert_close(part, correct)


def test_an_lstm_may_begin_with_a_memory_of_its_own() -> None:
    cell = Cell(WIDTH, HIDDEN, "lstm")
    hidden, memory = torch.randn(B, HIDDEN), torch.randn(B, HIDDEN)
    assert cell.initial(hidden) == (hidden, hidden)
    assert cell.initial(hidden, memory) == (hidden, memory)
    with pytest.raises(ValueError, match="only an lstm has a memory cell; this is gru"):
        Cell(WIDTH, HIDDEN, "gru").initial(hidden, memory)


def alone(encoder: Encoder, inputs: Tensor, length: int, state: tuple | None, row: int) -> tuple:
    """Torch's own network on one sequence without padding; the state if there is nothing in it."""
    layers, directions = encoder.layers, encoder.directions
    before = state or [torch.zeros(B, layers, encoder.size).double()] * (
        2 if encoder.network.mode == "LSTM" else 1
    )
    parts = [part[row] for part in before]
    if length == 0:
        return torch.zeros(0, encoder.size).double(), parts
    first = [part.reshape(layers * directions, 1, HIDDEN) for part in parts]
    states, last = encoder.network(
        inputs[row : row + 1, :length], tuple(first) if len(first) > 1 else first[0]
    )
    last = last if isinstance(last, tuple) else (last,)
    return states[0], [part.reshape(layers, encoder.size) for part in last]


@pytest.mark.parametrize("begin", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_padded_equals_one_at_a_time(
    kind: str, bidirectional: bool, layers: int, begin: bool
) -> None:
    encoder = Encoder(WIDTH, HIDDEN, cell=kind, layers=layers, bidirectional=bidirectional).double()
    inputs, lengths = double(B, T, WIDTH), torch.tensor([4, 0, 7, 1, 2])
    state = None
    if begin:
        state = tuple(double(B, layers, encoder.size) for _ in range(2 if kind == "lstm" else 1))
    found = encoder(inputs, lengths, state)
    states = torch.zeros(B, T, encoder.size).double()
    last = [[] for _ in found.last]
    for row, length in enumerate(lengths.tolist()):
        of_row, last_of_row = alone(encoder, inputs, length, state, row)
        states = states.index_put((torch.tensor(row), torch.arange(length)), of_row)
        for parts, part in zip(last, last_of_row, strict=True):
            parts.append(part)
    assert_close(found.states, states)
    for part, parts in zip(found.last, last, strict=True):
        assert_close(part, torch.stack(parts))
    variables = [inputs, *encoder.parameters(), *(state or ())]
    loss = found.states.square().sum() + found.last[-1].pow(3).sum()
    correct = states.square().sum() + torch.stack(last[-1]).pow(3).sum()
    for ours, theirs in zip(
        torch.autograd.grad(loss, variables), torch.autograd.grad(correct, variables), strict=True
    ):
        assert_close(ours, theirs)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_flipped_equals_packed(kind: str, bidirectional: bool) -> None:
    """The twins, from the same state: values and gradients, in the precision of training."""
    encoder = Encoder(13, 11, cell=kind, layers=2, bidirectional=bidirectional)
    inputs, lengths = torch.randn(B, T, 13, requires_grad=True), torch.tensor([4, 3, 7, 1, 2])
    parts = 2 if kind == "lstm" else 1
    state = tuple(torch.randn(B, 2, encoder.size, requires_grad=True) for _ in range(parts))
    variables = [inputs, *state, *encoder.parameters()]
    results = []
    for run in (encoder._run_flipped, encoder._run_packed):
        states, last = run(inputs, lengths, state)
        loss = states.square().sum() + sum(part.pow(3).sum() for part in last)
        results.append([states, *last, *torch.autograd.grad(loss, variables)])
    for flipped, packed in zip(*results, strict=True):
        assert_close(flipped, packed, rtol=1e-4, atol=1e-5)


def test_gradients_of_gradients() -> None:
    encoder = Encoder(WIDTH, HIDDEN, cell="elman").double()
    inputs, lengths = double(2, 3, WIDTH), torch.tensor([3, 2])
    assert torch.autograd.gradgradcheck(lambda x: encoder(x, lengths).states, inputs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_with_gradients_and_without(kind: str) -> None:
    encoder = Encoder(WIDTH, HIDDEN, cell=kind, layers=2)
    inputs, lengths = torch.randn(B, T, WIDTH), torch.tensor([4, 0, 7, 1, 2])
    with_gradients = encoder(inputs, lengths)
    with torch.no_grad():
        without = encoder(inputs, lengths)
    assert_close(with_gradients.states, without.states)
    for part, correct in zip(with_gradients.last, without.last, strict=True):
        assert_close(part, correct)


def test_the_last_state_of_both_directions_are_at_both_ends() -> None:
    encoder = Encoder(WIDTH, HIDDEN).double()
    states, (last,) = encoder(double(2, T, WIDTH), torch.tensor([T, 4]))
    assert_close(last[0, 0], torch.cat([states[0, T - 1, :HIDDEN], states[0, 0, HIDDEN:]]))
    assert_close(last[1, 0], torch.cat([states[1, 3, :HIDDEN], states[1, 0, HIDDEN:]]))


@pytest.mark.parametrize("kind", KINDS)
def test_going_on_from_a_state_equals_one_long_run(kind: str) -> None:
    encoder = Encoder(WIDTH, HIDDEN, cell=kind, layers=2, bidirectional=False).double()
    inputs = double(B, T, WIDTH)
    whole = encoder(inputs)
    first = encoder(inputs[:, :3])
    second = encoder(inputs[:, 3:], None, first.last)
    assert_close(torch.cat([first.states, second.states], 1), whole.states)
    for part, correct in zip(second.last, whole.last, strict=True):
        assert_close(part, correct)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_step_by_step_equals_the_encoder(kind: str) -> None:
    encoder = Encoder(WIDTH, HIDDEN, cell=kind, bidirectional=False).double()
    cell = Cell(WIDTH, HIDDEN, kind).double()
    cell.step.load_state_dict({k[:-3]: v for k, v in encoder.network.state_dict().items()})
    inputs = double(B, T, WIDTH)
    state = cell.initial(torch.zeros(B, HIDDEN).double())
    for t in range(T):
        state = cell(inputs[:, t], state)
    assert_close(state[0], encoder(inputs).last[0][:, 0])


@given(st.lists(st.integers(0, T), min_size=1, max_size=4), st.sampled_from(KINDS))
@settings(max_examples=10, deadline=None)
def test_the_batch_changes_nothing(numbers: list[int], kind: str) -> None:
    encoder, lengths = Encoder(WIDTH, HIDDEN, cell=kind, layers=2).double(), torch.tensor(numbers)
    inputs = double(len(numbers), T, WIDTH)
    together = encoder(inputs, lengths)
    for row in range(len(numbers)):
        by_itself = encoder(inputs[row : row + 1], lengths[row : row + 1])
        assert_close(together.states[row], by_itself.states[0])
        assert_close(together.last[-1][row], by_itself.last[-1][0])


@given(st.lists(st.integers(0, T), min_size=1, max_size=4), st.sampled_from(KINDS))
@settings(max_examples=10, deadline=None)
def test_what_stands_in_the_padding_changes_nothing(numbers: list[int], kind: str) -> None:
    encoder, lengths = Encoder(WIDTH, HIDDEN, cell=kind, layers=2), torch.tensor(numbers)
    padding = torch.arange(T)[:, None] >= lengths[:, None, None]
    inputs = torch.randn(len(numbers), T, WIDTH)
    clean = encoder(inputs.masked_fill(padding, 0.0), lengths)
    poisoned = encoder(inputs.masked_fill(padding, float("nan")), lengths)
    assert torch.equal(clean.states, poisoned.states)
    assert torch.equal(clean.last[0], poisoned.last[0])
    assert not poisoned.states.masked_select(padding).any()
    (poisoned.states.sum() + poisoned.last[0].sum()).backward()
    assert all(parameter.grad.isfinite().all() for parameter in encoder.parameters())


@pytest.mark.parametrize(("batch", "time"), [(0, T), (B, 0)])
def test_nothing_to_read(batch: int, time: int) -> None:
    encoder = Encoder(WIDTH, HIDDEN, layers=3)
    lengths = torch.zeros(batch, dtype=torch.int64)
    for found in (
        encoder(torch.randn(batch, time, WIDTH)),
        encoder(torch.randn(batch, time, WIDTH), lengths),
    ):
        assert found.states.shape == (batch, time, 2 * HIDDEN)
        assert torch.equal(found.last[0], torch.zeros(batch, 3, 2 * HIDDEN))


def test_dropout_falls_between_layers_in_training_alone() -> None:
    inputs = torch.randn(B, T, WIDTH)
    deep, flat = (Encoder(WIDTH, 31, layers=n, dropout=0.5) for n in (2, 1))
    assert not torch.equal(deep(inputs).states, deep(inputs).states)
    assert deep(inputs).states.ne(0).all()
    assert torch.equal(flat(inputs).states, flat(inputs).states)
    deep.eval()
    assert torch.equal(deep(inputs).states, deep(inputs).states)


def test_an_unknown_cell_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"unknown cell 'lsmt': did you mean 'lstm'\?"):
        Encoder(WIDTH, HIDDEN, cell="lsmt")
    with pytest.raises(ValueError, match="unknown cell 'rnn'; known: elman, gru, lstm"):
        Cell(WIDTH, HIDDEN, "rnn")


@pytest.mark.usefixtures("shapes_unchecked")
def test_wrong_inputs_are_named_with_their_shapes() -> None:
    encoder, cell = Encoder(WIDTH, HIDDEN), Cell(WIDTH, HIDDEN)
    inputs = torch.randn(B, T, WIDTH)
    with pytest.raises(ValueError, match=r"input of shape \[5, 7, 2\] ends in 2; .* size 3"):
        encoder(inputs[..., :2])
    with pytest.raises(ValueError, match=r"from 1 to 8 for inputs of shape \[5, 7, 3\]: .* 0 to 7"):
        encoder(inputs, torch.tensor([1, 2, 3, 4, 8]))
    with pytest.raises(ValueError, match=r"lengths from -1 to 4"):
        encoder(inputs, torch.tensor([1, 2, 3, 4, -1]))
    with pytest.raises(
        ValueError, match=r"lengths of shape \[2\] for .* one number per sequence, \[5\]"
    ):
        encoder(inputs, torch.tensor([1, 2]))
    with pytest.raises(ValueError, match=r"hidden vector of shape \[5, 3\] ends in 3"):
        cell.initial(torch.zeros(B, 3))
    with pytest.raises(ValueError, match=r"input of shape \[5, 5\] ends in 5; .* size 3"):
        cell(torch.zeros(B, 5), cell.initial(torch.zeros(B, HIDDEN)))


@pytest.mark.parametrize("kind", KINDS)
def test_stacked_cells_are_the_layers_of_torch(kind: str) -> None:
    layers = 3
    stacked = StackedCell(WIDTH, HIDDEN, kind, layers=layers).double()
    whole = SEQUENCES[kind](WIDTH, HIDDEN, layers, batch_first=True).double()
    for number, cell in enumerate(stacked.cells):
        for name, weight in cell.step.named_parameters():
            getattr(whole, f"{name}_l{number}").data.copy_(weight)
    x, hidden, memory = double(B, T, WIDTH), double(B, HIDDEN), double(B, HIDDEN)
    lstm = kind == "lstm"
    state = stacked.initial(hidden, memory if lstm else None)
    first = hidden.expand(layers, B, HIDDEN).contiguous()
    begin = (first, memory.expand(layers, B, HIDDEN).contiguous()) if lstm else first
    expected, last = whole(x, begin)
    outputs = []
    for word in x.unbind(1):
        state = stacked(word, state)
        outputs.append(state[0])
    found = torch.stack(outputs, 1)
    assert_close(found, expected)
    parts = last if lstm else (last,)
    order = [layers - 1, *range(layers - 1)]
    assert_close(torch.stack(state), torch.stack([part[i] for i in order for part in parts]))
    gradients = [torch.autograd.grad(out.sum(), [x, hidden]) for out in (found, expected)]
    for own, theirs in zip(*gradients, strict=True):
        assert_close(own, theirs)
