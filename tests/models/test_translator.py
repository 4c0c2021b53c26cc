"""The translator: teacher forcing against single steps, a loop from the equations, and sizes."""

import copy

import pytest
import torch

from regard.errors import RegardError
from regard.layers import LuongStep
from regard.models import Translator, TranslatorConfig
from regard.search import beam
from tests.models.catalogue import (
    SOURCE,
    SOURCE_WORDS,
    TARGET,
    TARGET_WORDS,
    TRANSLATORS,
    WIDTH,
    inputs,
    translator,
)

LOOKING = [name for name in TRANSLATORS if "blind" not in name and "local" not in name]


@pytest.mark.parametrize("name", TRANSLATORS)
def test_step_by_step_is_what_teacher_forcing_gives(name: str) -> None:
    model, batch = translator(**TRANSLATORS[name]).double().eval(), inputs()
    known = model(batch["source"], batch["lengths"], batch["target"], need_weights=True)
    state = model.start(model.encode(batch["source"], batch["lengths"]))
    for t, words in enumerate(batch["target"].unbind(1)):
        assert state.position == t
        quick = model.step(words, state, need_weights=False)
        log_probabilities, state, weights = model.step(words, state)
        assert not quick[2]
        torch.testing.assert_close(quick[0], log_probabilities)
        torch.testing.assert_close(log_probabilities, known.logits[:, t].log_softmax(-1))
        there = {place for place in known.weights if not place.startswith("encoder")}
        assert weights.keys() == there
        for place, look in weights.items():
            expected = known.weights[place][:, :, t, : look.shape[-1]]
            torch.testing.assert_close(look, expected)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_what_the_state_knows_of_the_source_never_changes(name: str) -> None:
    model, batch = translator(**TRANSLATORS[name]).eval(), inputs()
    begun = model.start(model.encode(batch["source"], batch["lengths"]))
    _, after, _ = model.step(batch["target"][:, 0], begun)
    assert after.source is begun.source


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_beam_can_search_it(name: str) -> None:
    model, batch = translator(**TRANSLATORS[name]).eval(), inputs()
    context = model.encode(batch["source"], batch["lengths"])
    found = beam(model.step, model.start(context), bos=2, eos=3, limit=4, width=3)
    assert len(found) == len(batch["source"])


@pytest.mark.parametrize("name", LOOKING)
def test_a_look_can_be_forced(name: str) -> None:
    model, batch = translator(**TRANSLATORS[name]).eval(), inputs()
    state = model.start(model.encode(batch["source"], batch["lengths"]))
    allowed = torch.zeros(len(batch["source"]), SOURCE, dtype=torch.bool)
    allowed[:, 0] = True
    _, _, weights = model.step(batch["target"][:, 0], state, allowed=allowed)
    for place, there in weights.items():
        if place.endswith("source"):
            torch.testing.assert_close(there[..., 0], torch.ones_like(there[..., 0]))


def test_the_future_of_the_target_changes_nothing() -> None:
    for config in TRANSLATORS.values():
        model, batch = translator(**config).double().eval(), inputs()
        before = model(batch["source"], batch["lengths"], batch["target"]).logits
        batch["target"][:, 3:] = 1
        after = model(batch["source"], batch["lengths"], batch["target"]).logits
        torch.testing.assert_close(before[:, :3], after[:, :3])


def test_without_attention_it_is_told_the_last_state_at_every_step() -> None:
    """s_0 = tanh(W h_T), c = h_T, s_t = g([y_{t-1}; c], s_{t-1}), with an Elman g, in a loop."""
    model = translator(attention="none", cell="elman").double().eval()
    batch = inputs()
    context = model.encode(batch["source"], batch["lengths"])
    half = WIDTH // 2
    for row, length in enumerate(batch["lengths"].tolist()):
        forward, backward = context.states[row, :, :half], context.states[row, :, half:]
        c = torch.cat([forward[length - 1], backward[0]])
        torch.testing.assert_close(context.last[0][row], c)
        start = model.start(context)
        torch.testing.assert_close(start.source.context[row], c)
        cell, output = model.decoder.one.cell.step, model.decoder.one.output
        s = (model.decoder.first.weight @ c + model.decoder.first.bias).tanh()
        logits = model(batch["source"], batch["lengths"], batch["target"]).logits[row]
        for t in range(TARGET):
            y = WIDTH**0.5 * model.target.words.weight[batch["target"][row, t]]
            inner = cell.weight_ih @ torch.cat([y, c]) + cell.bias_ih
            s = (inner + cell.weight_hh @ s + cell.bias_hh).tanh()
            o = (output.weight @ torch.cat([s, c, y]) + output.bias).tanh()
            expected = model.target.words.weight @ o + model.words.bias
            torch.testing.assert_close(logits[t], expected)


def test_an_lstm_begins_with_the_encoders_memory() -> None:
    model, batch = translator(cell="lstm").double().eval(), inputs()
    context = model.encode(batch["source"], batch["lengths"])
    hidden, memory = model.start(context).own.cell
    first, second = model.decoder.first, model.decoder.first_memory
    torch.testing.assert_close(hidden, (context.last[0] @ first.weight.T + first.bias).tanh())
    torch.testing.assert_close(memory, context.last[1] @ second.weight.T + second.bias)


def test_parameters_of_a_transformer_counted_by_hand() -> None:
    w, f, v, u = WIDTH, 2 * WIDTH, SOURCE_WORDS, TARGET_WORDS
    attention, norm = 4 * (w * w + w), 2 * w
    feed = (w * f + f) + (f * w + w)
    encoder = 2 * (attention + feed + 2 * norm) + norm
    decoder = 2 * (2 * attention + feed + 3 * norm) + norm
    tied = (v + u) * w + u
    assert _parameters(translator(model="transformer", layers=2)) == encoder + decoder + tied


def test_parameters_of_a_recurrent_translator_counted_by_hand() -> None:
    w, half = WIDTH, WIDTH // 2
    encoder = 2 * 3 * (half * w + half * half + 2 * half)
    score = (w * w + w) + w * w + w
    cell = 3 * (w * 2 * w + w * w + 2 * w)
    decoder = (w * w + w) + score + cell + (3 * w * w + w)
    tables = (SOURCE_WORDS + TARGET_WORDS) * w + TARGET_WORDS
    order = {"order": "bahdanau"}
    assert _parameters(translator(**order)) == encoder + decoder + tables
    assert (
        _parameters(translator(**order, tied=False))
        == encoder + decoder + tables + TARGET_WORDS * w
    )


def _parameters(model: Translator) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def test_padding_reaches_no_expert_of_the_target() -> None:
    model = translator(model="transformer", layers=1, experts=3).double()
    batch, lengths = inputs(), torch.tensor([5, 2, 3])
    batch["lengths"][:] = SOURCE
    arguments = batch["source"], batch["lengths"]
    first = model(*arguments, batch["target"], lengths, need_weights=True)
    changed = batch["target"].clone()
    changed[1, 2:] = changed[2, 3:] = 1
    second = model(*arguments, changed, lengths)
    torch.testing.assert_close(first.balance, second.balance)
    experts = first.weights["decoder.0.experts"]
    assert experts.shape == (3, 1, 5, 3)
    assert not experts[1, :, 2:].any()


def test_dropout_is_on_words_memory_and_output_in_training_alone() -> None:
    model, batch = translator(dropout=0.5), inputs()
    arguments = batch["source"], batch["lengths"], batch["target"]
    assert not torch.equal(model(*arguments).logits, model(*arguments).logits)
    model.eval()
    assert torch.equal(model(*arguments).logits, model(*arguments).logits)


def test_a_copy_of_a_tied_model_has_its_own_table() -> None:
    model = translator()
    twin = copy.deepcopy(model)
    assert twin.words.tied[0] is twin.target
    assert twin.target is not model.target


def test_mistakes_are_named(shapes_unchecked) -> None:
    with pytest.raises(RegardError, match="did you mean 'transformer'"):
        translator(model="transfomer")
    with pytest.raises(RegardError, match="did you mean 'luong'"):
        translator(order="loung")
    with pytest.raises(RegardError, match="a transformer requires attention"):
        translator(model="transformer", attention="none")
    with pytest.raises(RegardError, match="did you mean 'additive'"):
        Translator(TranslatorConfig(width=8, attention="aditive"), 5, 5)


def test_the_default_is_luongs_with_input_feeding() -> None:
    step = translator().decoder.one
    assert isinstance(step, LuongStep)
    assert step.input_feeding
    assert not translator(order="bahdanau").decoder.one.input_feeding


@pytest.mark.parametrize("name", TRANSLATORS)
def test_logits_at_one_position_of_each_target(name: str) -> None:
    model, batch = translator(**TRANSLATORS[name]).double().eval(), inputs()
    source = batch["source"], batch["lengths"]
    everywhere = model(*source, batch["target"]).logits
    at = torch.arange(len(everywhere)) % (TARGET - 1)
    one = model(*source, batch["target"][:, : int(at.max()) + 1], at=at).logits
    rows = torch.arange(len(at))
    torch.testing.assert_close(one, everywhere[rows, at])
    weights = list(model.parameters())
    for ours, theirs in zip(
        torch.autograd.grad(one.square().sum(), weights, allow_unused=True),
        torch.autograd.grad(everywhere[rows, at].square().sum(), weights, allow_unused=True),
        strict=True,
    ):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs)
