"""A translator as two graphs: its encoder, and one step of its decoder."""

from torch import nn

from regard.attention.scores import keyed_score
from regard.inference.graphs.bodies import (
    Context,
    Pair,
    Weights,
    cell_step,
    contextual,
    embedded,
    remembered,
    stack,
    worded,
)
from regard.inference.graphs.equations import attend, linear, prepared, real_places
from regard.inference.graphs.passing import (
    Axes,
    cache_axes,
    looks,
    nothing,
    pairs,
    state_in,
    state_out,
)
from regard.inference.graphs.values import FLOAT, INT64, Graph, Value
from regard.layers import LuongStep, Reading
from regard.models import Translator
from regard.models.decoders import BlindStep, RecurrentDecoder, TransformerDecoder
from regard.models.stack import Stack


def translator(model: Translator) -> dict[str, Graph]:
    """encoder: source, lengths → all that steps need; decoder_step: one word further."""
    encoding, graph = Graph(), Graph()
    source = encoding.input("source", INT64, "batch", "keys")
    lengths = encoding.input("lengths", INT64, "batch")
    context = contextual(model.encoder, embedded(model.source, source), lengths)
    made = {"source.lengths": lengths, **_started(model.decoder, context)}
    axes = _decoder_state(model)
    for name, value in made.items():
        state_out(encoding, name, value, axes[name])
    looks(context.weights, "keys")
    token = graph.input("token", INT64, "batch")
    state = state_in(graph, axes)
    if isinstance(model.decoder, TransformerDecoder):
        position = state["state.0.key"].size(2).expand(token.size(0))
        word = embedded(model.target, token.unsqueeze(1), position)
        states, after, weights = _transformer_step(model.decoder.stack, word, state)
    else:
        word = embedded(model.target, token.unsqueeze(1)).squeeze(1)
        states, after, weights = _recurrent_step(model.decoder, word, state)
    chances = graph.op("LogSoftmax", worded(model.words, states), axis=-1)
    graph.output("log_probabilities", chances, FLOAT, "batch", model.words.bias.shape[0])
    for name, value in after.items():
        state_out(graph, name, value, axes[name], after=True)
    looks(weights, None, "seen")
    return {"encoder": encoding, "decoder_step": graph}


def _decoder_state(model: Translator) -> dict[str, Axes]:
    """The names and axes of what a step takes."""
    found: dict[str, Axes] = {"source.lengths": ("batch",)}
    decoder, size = model.decoder, model.encoder.size
    if isinstance(decoder, TransformerDecoder):
        found |= cache_axes(decoder.stack, "source", "keys")
        return found | cache_axes(decoder.stack, "state", "past")
    hidden = decoder.first.out_features
    if isinstance(decoder.one, BlindStep):
        found["source.context"] = ("batch", size)
    else:
        score = decoder.one.reading.score
        prepared_size = score.weight.shape[0] if hasattr(score, "weight") else None
        key: int = hidden if prepared_size is not None or hasattr(score, "hidden") else size
        found |= {"source.key": ("batch", "keys", key), "source.value": ("batch", "keys", size)}
    found["state.hidden"] = ("batch", hidden)
    if decoder.first_memory is not None:
        found["state.memory"] = ("batch", hidden)
    if not isinstance(decoder.one, BlindStep):
        if decoder.one.input_feeding:
            found["state.fed"] = ("batch", hidden)
        if decoder.one.reading.local == "m":
            found["state.position"] = ("batch",)
    return found


def _started(decoder: nn.Module, context: Context) -> dict[str, Value]:
    graph = context.states.graph
    if isinstance(decoder, TransformerDecoder):
        made: dict[str, Value] = {}
        for number, block in enumerate(decoder.stack):
            assert block.source is not None
            pair = remembered(block.source, context.states)
            made |= {f"source.{number}.key": pair[0], f"source.{number}.value": pair[1]}
        return made | nothing(decoder.stack, context.states.size(0))
    assert isinstance(decoder, RecurrentDecoder)
    hidden = linear(decoder.first, context.last[0]).tanh()
    made = {"state.hidden": hidden}
    if decoder.first_memory is not None:
        made["state.memory"] = linear(decoder.first_memory, context.last[-1])
    if isinstance(decoder.one, BlindStep):
        return {"source.context": context.last[0], **made}
    reading = decoder.one.reading
    if decoder.one.input_feeding:
        made["state.fed"] = hidden * 0.0
    if reading.local == "m":
        made["state.position"] = graph.constant(0).expand(hidden.size(0))
    return {
        "source.key": prepared(reading.score, context.states),
        "source.value": context.states,
        **made,
    }


def _recurrent_step(
    decoder: RecurrentDecoder, word: Value, state: dict[str, Value]
) -> tuple[Value, dict[str, Value], Weights]:
    graph, one = word.graph, decoder.one
    cell = [state[name] for name in ("state.hidden", "state.memory") if name in state]
    if isinstance(one, BlindStep):
        told = state["source.context"]
        cell = cell_step(one.cell, [word, told], cell)
        output = linear(one.output, graph.join([cell[0], told, word], 1)).tanh()
        return output, _cell_state(cell), {}
    fed = [state["state.fed"]] if one.input_feeding else []
    if isinstance(one, LuongStep):
        cell = cell_step(one.cell, [word, *fed], cell)
        told, looked = _look(one.reading, cell[0], state)
        output = linear(one.output, graph.join([told, cell[0]], 1)).tanh()
    else:
        told, looked = _look(one.reading, cell[0], state)
        cell = cell_step(one.cell, [word, told, *fed], cell)
        output = linear(one.output, graph.join([cell[0], told, word], 1)).tanh()
    after = _cell_state(cell)
    if one.input_feeding:
        after["state.fed"] = output
    if "state.position" in state:
        after["state.position"] = state["state.position"] + 1
    return output, after, {"source": looked}


def _cell_state(cell: list[Value]) -> dict[str, Value]:
    return dict(zip(("state.hidden", "state.memory"), cell, strict=False))


def _look(reading: Reading, hidden: Value, state: dict[str, Value]) -> Pair:
    """What one query reads of the source [b, m], and its weights [b, 1, k]."""
    key, value, lengths = (state[f"source.{name}"] for name in ("key", "value", "lengths"))
    query = hidden.unsqueeze(1)
    mask = real_places(lengths, key.size(1)).unsqueeze(1)
    bias = None
    if reading.local != "none":
        if reading.predict is None:
            centre = state["state.position"].to(FLOAT).unsqueeze(1)
        else:
            inner = linear(reading.predict.hidden, hidden).tanh()
            share = query.graph.op("Sigmoid", linear(reading.predict.centre, inner))
            centre = share * lengths.to(FLOAT).unsqueeze(1)
        place = query.graph.range(0, key.size(1)).to(FLOAT).unsqueeze(0)
        distance = (place - centre).unsqueeze(1)
        mask = mask & (query.graph.op("Abs", distance) <= reading.width)
        if reading.local == "p":
            bias = (distance * distance) * (-2.0 / reading.width**2)
    read, weights = attend(
        query,
        key,
        value,
        mask,
        score=keyed_score(reading.score),
        normalize=reading.normalize,
        bias=bias,
    )
    return read.squeeze(1), weights


def _transformer_step(
    layers: Stack, word: Value, state: dict[str, Value]
) -> tuple[Value, dict[str, Value], Weights]:
    number = len(layers.blocks)
    source = pairs(state, "source", number)
    mask = real_places(state["source.lengths"], source[0][0].size(2)).unsqueeze(1, 2)
    own = pairs(state, "state", number)
    states, weights, caches = stack(layers, word, None, "decoder", own, source, mask)
    after: dict[str, Value] = {}
    for i, pair in enumerate(caches):
        after |= {f"state.{i}.key": pair[0], f"state.{i}.value": pair[1]}
    return states.squeeze(1), after, {name: look.squeeze(2) for name, look in weights.items()}
