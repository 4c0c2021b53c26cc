"""Decoder steps against loops from the equations: Bahdanau looks before, Luong after."""

import itertools

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from regard.attention import masks
from regard.layers import BahdanauStep, LuongStep, MemoryAttention

B, T, K, WORD, HIDDEN, MEMORY = 3, 4, 7, 5, 2, 11
STEPS = [BahdanauStep, LuongStep]
Step = BahdanauStep | LuongStep


def double(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def gated(step: Step, x: Tensor, state: list[Tensor]) -> list[Tensor]:
    """One step of the cell for one example, from its equations."""
    weights = step.cell.step
    inner = weights.weight_ih @ x + weights.bias_ih
    outer = weights.weight_hh @ state[0] + weights.bias_hh
    if step.cell.kind == "elman":
        return [(inner + outer).tanh()]
    if step.cell.kind == "gru":
        (r, z, n), (hr, hz, hn) = inner.chunk(3), outer.chunk(3)
        reset, update = (r + hr).sigmoid(), (z + hz).sigmoid()
        return [(1 - update) * (n + reset * hn).tanh() + update * state[0]]
    i, f, g, o = (inner + outer).chunk(4)
    memory = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return [o.sigmoid() * memory.tanh(), memory]


def looked(step: Step, query: Tensor, source: Tensor, length: int, t: int) -> tuple:
    """Context and weights of one query, word after word, with an additive score."""
    score, width = step.reading.score, step.reading.width
    fits = {}
    for k in range(length):
        fit = score.weight @ (score.query(query) + score.key.weight @ source[k]).tanh()
        centre = torch.tensor(float(t)).double()
        if step.reading.local == "p":
            predict = step.reading.predict
            inner = predict.centre.weight[0] @ (predict.hidden.weight @ query).tanh()
            centre = length * inner.sigmoid()
            fit = fit - (k - centre) ** 2 / (2 * (width / 2) ** 2)
        if step.reading.local == "none" or abs(k - centre.detach()) <= width:
            fits[k] = fit
    total = sum(fit.exp() for fit in fits.values())
    zero = torch.zeros((), dtype=torch.float64)
    weights = torch.stack([fits[k].exp() / total if k in fits else zero for k in range(K)])
    return sum(weights[k] * source[k] for k in range(K)), weights


def by_hand(
    step: Step, words: Tensor, hidden: Tensor, source: Tensor, lengths: list[int]
) -> tuple[Tensor, Tensor]:
    """Outputs and weights of all steps, for one example after the other."""
    outputs, rows = [], []
    for b in range(B):
        state = [hidden[b]] * (2 if step.cell.kind == "lstm" else 1)
        fed = [torch.zeros(HIDDEN).double()] if step.input_feeding else []
        for t in range(T):
            word = words[b, t]
            if isinstance(step, BahdanauStep):
                context, weights = looked(step, state[0], source[b], lengths[b], t)
                state = gated(step, torch.cat([word, context, *fed]), state)
                output = step.output(torch.cat([state[0], context, word])).tanh()
            else:
                state = gated(step, torch.cat([word, *fed]), state)
                context, weights = looked(step, state[0], source[b], lengths[b], t)
                output = step.output(torch.cat([context, state[0]])).tanh()
            fed = [output] if step.input_feeding else []
            outputs.append(output)
            rows.append(weights)
    return torch.stack(outputs).unflatten(0, (B, T)), torch.stack(rows).unflatten(0, (B, T))


def run(step: Step, words: Tensor, hidden: Tensor, source: Tensor, lengths: list[int]) -> tuple:
    prepared = step.reading.prepare(source, torch.tensor(lengths))
    state = step.initial(hidden)
    outputs, rows = [], []
    for word in words.unbind(1):
        output, state, weights = step(word, state, prepared)
        outputs.append(output)
        rows.append(weights)
    assert state.position == T
    return torch.stack(outputs, 1), torch.stack(rows, 1)


@pytest.mark.parametrize(
    ("make", "cell", "feeding", "local"),
    [
        *itertools.product(STEPS, ["elman", "gru", "lstm"], [False, True], ["none"]),
        *itertools.product(STEPS, ["gru"], [True], ["m", "p"]),
    ],
)
def test_steps_equal_a_loop(make: type, cell: str, feeding: bool, local: str) -> None:
    reading = MemoryAttention(HIDDEN, MEMORY, hidden=13, local=local, width=2)
    step = make(WORD, reading, cell=cell, input_feeding=feeding).double()
    words, hidden, source = double(B, T, WORD), double(B, HIDDEN), double(B, K, MEMORY)
    lengths = [K, 3, 2]
    outputs, weights = run(step, words, hidden, source, lengths)
    expected, expected_weights = by_hand(step, words, hidden, source, lengths)
    assert_close(outputs, expected)
    assert_close(weights, expected_weights)
    direction = torch.randn_like(expected)
    variables = [words, hidden, source, *step.parameters()]
    for ours, theirs in zip(
        torch.autograd.grad((outputs * direction).sum(), variables),
        torch.autograd.grad((expected * direction).sum(), variables),
        strict=True,
    ):
        assert_close(ours, theirs)


@pytest.mark.parametrize("make", STEPS)
def test_bahdanau_looks_before_the_word_and_luong_after(make: type) -> None:
    step = make(WORD, MemoryAttention(HIDDEN, MEMORY))
    source = step.reading.prepare(torch.randn(1, K, MEMORY))
    state = step.initial(torch.randn(1, HIDDEN))
    first, second = (step(torch.randn(1, WORD), state, source).weights for _ in range(2))
    assert torch.equal(first, second) == (make is BahdanauStep)


@pytest.mark.parametrize("make", STEPS)
def test_looking_batching_and_padding_change_nothing(make: type) -> None:
    step = make(WORD, MemoryAttention(HIDDEN, MEMORY), input_feeding=True).double()
    words, hidden, source = double(B, T, WORD), double(B, HIDDEN), double(B, K, MEMORY)
    lengths = [K, 3, 2]
    outputs, _ = run(step, words, hidden, source, lengths)
    for b, length in enumerate(lengths):
        prepared = step.reading.prepare(source[b : b + 1, :length])
        state = step.initial(hidden[b : b + 1])
        for t in range(T):
            stepped = step(words[b : b + 1, t], state, prepared, need_weights=False)
            assert stepped.weights is None
            assert_close(stepped.output[0], outputs[b, t])
            state = stepped.state


@pytest.mark.parametrize("make", STEPS)
def test_a_mask_is_one_of_words_and_adds_to_the_lengths(make: type) -> None:
    step = make(WORD, MemoryAttention(HIDDEN, MEMORY))
    word, state = torch.randn(B, WORD), step.initial(torch.randn(B, HIDDEN))
    states, lengths = torch.randn(B, K, MEMORY), torch.tensor([K, 0, 3])
    bare, prepared = step.reading.prepare(states), step.reading.prepare(states, lengths)
    real = torch.arange(K) < lengths[:, None]
    expected = step(word, state, prepared)
    assert torch.equal(expected.weights > 0, real)
    for mask in (real, masks.lengths(lengths)):
        found = step(word, state, bare, mask)
        assert torch.equal(found.weights, expected.weights)
        assert torch.equal(found.output, expected.output)
    odd = (torch.arange(K) % 2 == 1).expand(B, K)
    assert torch.equal(step(word, state, prepared, odd).weights > 0, real & odd)


@pytest.mark.parametrize("make", STEPS)
def test_an_empty_source_reads_zeros(make: type) -> None:
    step = make(WORD, MemoryAttention(HIDDEN, MEMORY)).double()
    source = double(1, K, MEMORY)
    prepared = step.reading.prepare(source, torch.tensor([0]))
    word, state = double(1, WORD), step.initial(double(1, HIDDEN))
    stepped = step(word, state, prepared)
    assert not stepped.weights.any()
    stepped.output.sum().backward()
    assert not source.grad.any()
    assert all(p.grad is None or p.grad.isfinite().all() for p in step.parameters())


def test_an_lstm_begins_with_the_memory_that_is_given() -> None:
    step = LuongStep(WORD, MemoryAttention(HIDDEN, MEMORY), cell="lstm")
    hidden, memory = torch.randn(B, HIDDEN), torch.randn(B, HIDDEN)
    state = step.initial(hidden, memory)
    assert state.cell == (hidden, memory)
    assert torch.equal(state.fed, torch.zeros(B, HIDDEN))
    assert step.initial(hidden).cell == (hidden, hidden)


@pytest.mark.parametrize("make", STEPS)
def test_the_same_state_gives_the_same_step(make: type) -> None:
    step = make(WORD, MemoryAttention(HIDDEN, MEMORY), cell="lstm")
    other = make(WORD, MemoryAttention(HIDDEN, MEMORY), cell="lstm")
    other.load_state_dict(step.state_dict())
    words, source = torch.randn(2, B, WORD), torch.randn(B, K, MEMORY)
    first = step.initial(torch.randn(B, HIDDEN))
    prepared = step.reading.prepare(source)
    expected = step(words[0], first, prepared).output
    step(words[1], step(words[1], first, prepared).state, prepared)
    assert torch.equal(step(words[0], first, prepared).output, expected)
    assert torch.equal(other(words[0], first, other.reading.prepare(source)).output, expected)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("make", STEPS)
def test_wrong_inputs_are_named_with_their_shapes(make: type) -> None:
    step = make(WORD, MemoryAttention(HIDDEN, MEMORY))
    prepared, state = step.reading.prepare(torch.randn(B, K, MEMORY)), torch.zeros(B, HIDDEN)
    with pytest.raises(ValueError, match=r"input of shape \[3, 4\] ends in 4; .* size 5"):
        step(torch.randn(B, 4), step.initial(state), prepared)
    with pytest.raises(ValueError, match=r"hidden vector of shape \[3, 5\] ends in 5; .* size 2"):
        step.initial(torch.zeros(B, 5))
    with pytest.raises(ValueError, match=r"unknown cell 'grue': did you mean 'gru'\?"):
        make(WORD, MemoryAttention(HIDDEN, MEMORY), cell="grue")
