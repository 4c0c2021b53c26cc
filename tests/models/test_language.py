"""The language model against loops from the equations; texts in pieces against texts in one."""

from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.errors import RegardError
from regard.models import LanguageConfig, LanguageModel, LanguageState, detach_state
from regard.models.past_attention import PastAttention
from tests.models.catalogue import FEATURES, LANGUAGES, TARGET_WORDS, WIDTH, ids, language

LENGTH = 13


def read(model: LanguageModel, text: Tensor, state: LanguageState, *pieces: int) -> Any:
    logits, weights = [], []
    for part in text.split(list(pieces) or [text.shape[1]], 1):
        output, state = model(part, state, need_weights=True)
        logits.append(output.logits)
        weights.append(output.weights)
    return torch.cat(logits, 1), weights, state


def same_gradients(model: LanguageModel, ours: Tensor, theirs: Tensor) -> None:
    """Of a random sum of the logits, in all weights that count."""
    random = torch.randn_like(ours)
    parameters = [*model.body.parameters(), *model.embedding.parameters()]
    torch.testing.assert_close(
        torch.autograd.grad((ours * random).sum(), parameters),
        torch.autograd.grad((theirs * random).sum(), parameters),
    )


@pytest.mark.parametrize("name", LANGUAGES)
@pytest.mark.parametrize("pieces", [(1,) * LENGTH, (5, 1, 7), (2, 11)])
def test_a_text_in_pieces_is_the_text(name: str, pieces: tuple[int, ...]) -> None:
    model, text = language(**LANGUAGES[name]).double().eval(), ids(TARGET_WORDS, 3, LENGTH)
    whole, looks, end = read(model, text, model.start(3))
    parts, last, other = read(model, text, model.start(3), *pieces)
    torch.testing.assert_close(parts, whole)
    assert end.position == other.position == LENGTH
    for place, look in looks[0].items():
        end_of_look = last[-1][place]
        keys = end_of_look.shape[-1]
        torch.testing.assert_close(end_of_look, look[:, :, -pieces[-1] :, -keys:])
    for one, two in zip(end.cell, other.cell, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("pieces", [(1,) * LENGTH, (5, 1, 7), (2, 11)])
@pytest.mark.parametrize("reach", [1, 2, 5])
def test_a_transformer_reaches_back_so_far_and_no_further(
    pieces: tuple[int, ...], reach: int
) -> None:
    model = language(model="transformer", layers=1, max_length=reach).double().eval()
    text = ids(TARGET_WORDS, 3, LENGTH)
    whole, (looks,), _ = read(model, text, model.start(3))
    parts, _, state = read(model, text, model.start(3), *pieces)
    torch.testing.assert_close(parts, whole)
    assert state.caches[0].key.shape[-2] == reach - 1
    looks = looks["decoder.0.self"]
    distance = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)
    seen = (distance >= 0) & (distance < reach)
    assert ((looks > 0) == seen).all()


def test_location_in_a_transformer_refuses_what_it_does_not_know() -> None:
    model = language(model="transformer", attention="location", max_length=6)
    _, state = model(ids(TARGET_WORDS, 3, 5), model.start(3))
    _, state = model(ids(TARGET_WORDS, 3, 1), state)
    with pytest.raises(ValueError, match="location was made for 6 positions, but this text has 7"):
        model(ids(TARGET_WORDS, 3, 1), state)


def test_an_elman_network_is_its_equation() -> None:
    """h_t = tanh(W_h h_{t-1} + W_e x_t + b), softmax of E h_t; the first state is learned."""
    model = language(cell="elman", attention="none").double().eval()
    torch.nn.init.normal_(model.body.first)
    text = ids(TARGET_WORDS, 3, LENGTH)
    network, table = model.body.network.network, model.embedding.words.weight
    logits, _, _ = read(model, text, model.start(3))
    expected = torch.zeros_like(logits)
    for row in range(3):
        h = model.body.first[0, 0]
        for t in range(LENGTH):
            x = WIDTH**0.5 * table[text[row, t]]
            bias = network.bias_ih_l0 + network.bias_hh_l0
            h = (network.weight_hh_l0 @ h + network.weight_ih_l0 @ x + bias).tanh()
            expected[row, t] = table @ h + model.words.bias
    torch.testing.assert_close(logits, expected)
    same_gradients(model, logits, expected)


@pytest.mark.parametrize("window", [1, 3, 50])
def test_attention_over_past_states_is_its_equation(window: int) -> None:
    """c_t = Σ softmax(h_t · hᵢ) hᵢ over i in t-n … t-1; tanh(W [h_t; c_t] + b); c_1 = 0."""
    model = language(attention="dot", window=window).double().eval()
    text = ids(TARGET_WORDS, 3, LENGTH)
    logits, (looks,), _ = read(model, text, model.start(3))
    table, join = model.embedding.words.weight, model.body.look.join
    states, _ = model.body.network(WIDTH**0.5 * table[text], None, model.start(3).cell)
    expected, weights = torch.zeros_like(logits), torch.zeros(3, LENGTH, LENGTH).double()
    for row in range(3):
        for t in range(LENGTH):
            h, c = states[row, t], torch.zeros(WIDTH).double()
            past = range(max(0, t - window), t)
            fit = {i: (h @ states[row, i]).exp() for i in past}
            for i in past:
                share = fit[i] / sum(fit.values())
                weights[row, t, i] = share.detach()
                c = c + share * states[row, i]
            joined = (join.weight @ torch.cat([h, c]) + join.bias).tanh()
            expected[row, t] = table @ joined + model.words.bias
    torch.testing.assert_close(logits, expected)
    torch.testing.assert_close(looks["past"][:, 0], weights)
    same_gradients(model, logits, expected)


def test_split_states_look_with_keys_and_predict_with_another_part() -> None:
    look = PastAttention(4, score="dot", split=True, window=50).double()
    states = torch.randn(1, 6, 4).double()
    joined, _, weights = look(states, states[:, :0], need_weights=True)
    keys, values, predict = (states[0] @ look.parts.weight.T + look.parts.bias).split(4, 1)
    for t in range(1, 6):
        fit = torch.stack([keys[t] @ keys[i] for i in range(t)]).softmax(0)
        torch.testing.assert_close(weights[0, t, :t], fit)
        c = sum(fit[i] * values[i] for i in range(t))
        expected = (look.join.weight @ torch.cat([predict[t], c]) + look.join.bias).tanh()
        torch.testing.assert_close(joined[0, t], expected)


def test_location_counts_back_from_the_query() -> None:
    look = PastAttention(4, score="location", window=3).double()
    states = torch.randn(1, 7, 4).double()
    _, _, weights = look(states, states[:, :0], need_weights=True)
    where = look.score.where.weight
    for t in range(1, 7):
        fit = torch.stack([where[back - 1] @ states[0, t] for back in range(1, min(t, 3) + 1)])
        expected = fit.softmax(0).flip(0)
        torch.testing.assert_close(weights[0, t, max(0, t - 3) : t], expected)


@pytest.mark.parametrize("name", LANGUAGES)
def test_what_it_is_to_write_about_makes_a_difference(name: str) -> None:
    model, text = language(**LANGUAGES[name]).eval(), ids(TARGET_WORDS, 1, 5).expand(3, 5)
    conditions = {
        "label": (torch.tensor([0, 1, 2]), torch.tensor([2, 1, 0])),
        "vector": (torch.randn(3, FEATURES), torch.randn(3, FEATURES)),
    }
    for what, (one, other) in conditions.items():
        first, _ = model(text, model.start(3, **{what: one}))
        second, _ = model(text, model.start(3, **{what: other}))
        difference = (first.logits - second.logits).abs().amax((1, 2))
        same = torch.tensor([torch.equal(a, b) for a, b in zip(one, other, strict=True)])
        assert torch.equal(difference == 0, same)
    parts, _, _ = read(model, text, model.start(3, label=torch.tensor([0, 1, 2])), 2, 3)
    whole, _, _ = read(model, text, model.start(3, label=torch.tensor([0, 1, 2])))
    torch.testing.assert_close(parts, whole, atol=1e-5, rtol=1e-4)


def test_nothing_to_be_conditioned_on() -> None:
    model = language(labels=0)
    with pytest.raises(ValueError, match="not built to be conditioned on a label"):
        model.start(3, label=torch.tensor([0, 1, 2]))


@pytest.mark.parametrize("name", LANGUAGES)
def test_back_propagation_ends_where_the_state_is_detached(name: str) -> None:
    model, text = language(**LANGUAGES[name]), ids(TARGET_WORDS, 3, 6)
    state = model.start(3, label=torch.tensor([0, 1, 2]))
    for part in text.split(2, 1):
        output, state = model(part, state)
        output.logits.sum().backward()  # a second pass through the first part would raise
        state = detach_state(state)
    leaves = [*state.cell, *(part for cache in state.caches for part in cache)]
    leaves += [part for part in (state.past, state.about) if part is not None]
    assert leaves
    assert not any(leaf.requires_grad for leaf in leaves)


def test_mistakes_are_named(shapes_unchecked) -> None:
    with pytest.raises(RegardError, match="did you mean 'recurrent'"):
        language(model="recurent")
    with pytest.raises(RegardError, match="did you mean 'zero'"):
        language(first="zeros")
    with pytest.raises(RegardError, match="window: expected 1 or more and at most 65536, got 0"):
        language(attention="dot", window=0)


def test_attention_to_past_states_makes_no_matrix_of_all_pairs(monkeypatch):
    """Its mask is a run of keys for each query, so that long texts take memory in their length."""
    attend, calls = import_module("regard.attention.attend"), []

    def spy(*arguments, **options):
        calls.append(options)
        return compute(*arguments, **options)

    compute = attend.additive_attention
    monkeypatch.setattr(attend, "additive_attention", spy)
    model = LanguageModel(LanguageConfig(width=8, window=3), 11)
    model(torch.randint(4, 11, (2, 9)), model.start(2))
    assert [(call["mask"], call["spans"] is None) for call in calls] == [(None, False)]
