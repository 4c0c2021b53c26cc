"""A translator as two graphs: its encoder, and one step of its decoder."""

from torch import nn

from regard.attention.scores import prepared_score
from regard.errors import RegardError
from regard.inference.export.graph import FLOAT, INT64, Graph, Value
from regard.inference.export.graph_attention import attend, linear, prepare_keys, real_positions
from regard.inference.export.graph_layers import (
    Context,
    Pair,
    Weights,
    cell_step,
    encode,
    keys_and_values,
    stack,
)
from regard.inference.export.graph_words import embed, embed_source, unembed
from regard.inference.export.ports import (
    Axes,
    cache_axes,
    cache_pairs,
    empty_caches,
    output_state,
    output_weights,
    state_inputs,
)
from regard.layers import Cell, LuongStep, MemoryAttention
from regard.layers.recurrent import StackedCell
from regard.models import Translator
from regard.models.decoders import FixedContextStep, RecurrentDecoder, TransformerDecoder
from regard.models.pretrained.encoder import LAST
from regard.models.pretrained.encoder_decoder import PretrainedTranslator, SourceInputs
from regard.models.transformer_stack import TransformerStack


def translator(model: Translator) -> dict[str, Graph]:
    """encoder: source, lengths → inputs of steps; decoder_step: one word further."""
    kind = type(model.decoder)  # a subclass may compute something else
    if kind not in (RecurrentDecoder, TransformerDecoder):
        raise RegardError(
            f"the decoder {kind.__name__} cannot be exported: only the decoders "
            "built into regard can"
        )
    encoding, graph = Graph(), Graph()
    context, lengths = _read_source(model, encoding)
    outputs = {"source.lengths": lengths, **_first_state(model.decoder, context)}
    if isinstance(model, PretrainedTranslator) and model.architecture.leads:
        outputs |= _read_lead(model, outputs)
    axes = _decoder_state(model)
    for name, value in outputs.items():
        output_state(encoding, name, value, axes[name])
    output_weights(context.weights, "keys")
    token = graph.input("token", INT64, "batch")
    state = state_inputs(graph, axes)
    if isinstance(model.decoder, TransformerDecoder):
        position = state["state.0.key"].size(2).expand(token.size(0))
        word = embed(model.target, token.unsqueeze(1), position)
        states, after, weights = _transformer_step(model.decoder.stack, word, state)
    else:
        word = embed(model.target, token.unsqueeze(1)).squeeze(1)
        states, after, weights = _recurrent_step(model.decoder, word, state)
    logits, words = unembed(model.words, states)
    log_probabilities = graph.op("LogSoftmax", logits, axis=-1)
    graph.output("log_probabilities", log_probabilities, FLOAT, "batch", words)
    for name, value in after.items():
        output_state(graph, name, value, axes[name], after=True)
    output_weights(weights, None, "seen")
    return {"encoder": encoding, "decoder_step": graph}


def _read_source(model: Translator, graph: Graph) -> tuple[Context, Value]:
    """The source in context, and the number of its keys."""
    if not isinstance(model.source, SourceInputs):
        source = graph.input("source", INT64, "batch", "keys")
        lengths = graph.input("lengths", INT64, "batch")
        return encode(model.encoder, embed(model.source, source), lengths), lengths
    source = graph.input("source", INT64, "batch", "length")
    lengths = graph.input("lengths", INT64, "batch")
    keys = lengths + (model.source.before + model.source.after)
    return encode(model.encoder, embed_source(model.source, source, lengths), keys), keys


def _read_lead(model: PretrainedTranslator, state: dict[str, Value]) -> dict[str, Value]:
    """The state after the token that the decoder reads before the first."""
    lengths = state["source.lengths"]
    token = lengths.graph.full(LAST, lengths.size(0), 1)
    return _transformer_step(model.decoder.stack, embed(model.target, token), state)[1]


def _decoder_state(model: Translator) -> dict[str, Axes]:
    """Names and axes of the inputs of a step."""
    axes: dict[str, Axes] = {"source.lengths": ("batch",)}
    decoder, size = model.decoder, model.encoder.size
    if isinstance(decoder, TransformerDecoder):
        axes |= cache_axes(decoder.stack, "source", "keys")
        return axes | cache_axes(decoder.stack, "state", "past")
    hidden = decoder.first.out_features
    if isinstance(decoder.one, FixedContextStep):
        axes["source.context"] = ("batch", size)
    else:
        score = decoder.one.reading.score
        prepared_size = score.weight.shape[0] if hasattr(score, "weight") else None
        key: int = hidden if prepared_size is not None or hasattr(score, "hidden") else size
        axes |= {"source.key": ("batch", "keys", key), "source.value": ("batch", "keys", size)}
    axes |= dict.fromkeys(_cell_names(decoder), ("batch", hidden))
    if not isinstance(decoder.one, FixedContextStep):
        if decoder.one.input_feeding:
            axes["state.fed"] = ("batch", hidden)
        if decoder.one.reading.local == "m":
            axes["state.position"] = ("batch",)
    return axes


def _first_state(decoder: nn.Module, context: Context) -> dict[str, Value]:
    graph = context.states.graph
    if isinstance(decoder, TransformerDecoder):
        state: dict[str, Value] = {}
        for number, block in enumerate(decoder.stack):
            assert block.source is not None
            pair = keys_and_values(block.source, context.states)
            state |= {f"source.{number}.key": pair[0], f"source.{number}.value": pair[1]}
        return state | empty_caches(decoder.stack, context.states.size(0))
    assert isinstance(decoder, RecurrentDecoder)
    hidden = linear(decoder.first, context.last[0]).tanh()
    first = [hidden]
    if decoder.first_memory is not None:
        first.append(linear(decoder.first_memory, context.last[-1]))
    names = _cell_names(decoder)
    state = dict(zip(names, first * (len(names) // len(first)), strict=True))
    if isinstance(decoder.one, FixedContextStep):
        return {"source.context": context.last[0], **state}
    reading = decoder.one.reading
    if decoder.one.input_feeding:
        state["state.fed"] = hidden * 0.0
    if reading.local == "m":
        state["state.position"] = graph.constant(0).expand(hidden.size(0))
    return {
        "source.key": prepare_keys(reading.score, context.states),
        "source.value": context.states,
        **state,
    }


def _recurrent_step(
    decoder: RecurrentDecoder, word: Value, state: dict[str, Value]
) -> tuple[Value, dict[str, Value], Weights]:
    graph, one = word.graph, decoder.one
    names = _cell_names(decoder)
    cell = [state[name] for name in names]
    if isinstance(one, FixedContextStep):
        context = state["source.context"]
        cell = _cells_step(one.cell, [word, context], cell)
        output = linear(one.output, graph.join([cell[0], context, word], 1)).tanh()
        return output, dict(zip(names, cell, strict=True)), {}
    fed = [state["state.fed"]] if one.input_feeding else []
    if isinstance(one, LuongStep):
        cell = _cells_step(one.cell, [word, *fed], cell)
        context, weights = _attend_to_source(one.reading, cell[0], state)
        output = linear(one.output, graph.join([context, cell[0]], 1)).tanh()
    else:
        context, weights = _attend_to_source(one.reading, cell[0], state)
        cell = _cells_step(one.cell, [word, context, *fed], cell)
        output = linear(one.output, graph.join([cell[0], context, word], 1)).tanh()
    after = dict(zip(names, cell, strict=True))
    if one.input_feeding:
        after["state.fed"] = output
    if "state.position" in state:
        after["state.position"] = state["state.position"] + 1
    return output, after, {"source": weights}


def _cell_names(decoder: RecurrentDecoder) -> list[str]:
    """Names of the parts of the state of its cells, the top one first."""
    parts = ["state.hidden"] + ["state.memory"] * (decoder.first_memory is not None)
    cell = decoder.one.cell
    lower = len(cell.cells) - 1 if isinstance(cell, StackedCell) else 0
    return parts + [f"{part}.{number}" for number in range(lower) for part in parts]


def _cells_step(cell: Cell | StackedCell, inputs: list[Value], state: list[Value]) -> list[Value]:
    """One step of a cell, or of several on top of each other."""
    if isinstance(cell, Cell):
        return cell_step(cell, inputs, state)
    parts = len(state) // len(cell.cells)
    *lower, top = cell.bottom_up
    after: list[Value] = []
    for number, layer in enumerate(lower, 1):
        after += cell_step(layer, inputs, state[parts * number : parts * (number + 1)])
        inputs = [after[-parts]]
    return [*cell_step(top, inputs, state[:parts]), *after]


def _attend_to_source(reading: MemoryAttention, hidden: Value, state: dict[str, Value]) -> Pair:
    """The output of one query to the source [b, m], and its weights [b, 1, k]."""
    key, value, lengths = (state[f"source.{name}"] for name in ("key", "value", "lengths"))
    query = hidden.unsqueeze(1)
    mask = real_positions(lengths, key.size(1)).unsqueeze(1)
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
        score=prepared_score(reading.score),
        normalize=reading.normalize,
        bias=bias,
    )
    return read.squeeze(1), weights


def _transformer_step(
    layers: TransformerStack, word: Value, state: dict[str, Value]
) -> tuple[Value, dict[str, Value], Weights]:
    number = len(layers.blocks)
    source = cache_pairs(state, "source", number)
    mask = real_positions(state["source.lengths"], source[0][0].size(2)).unsqueeze(1, 2)
    own = cache_pairs(state, "state", number)
    states, weights, caches = stack(layers, word, None, "decoder", own, source, mask)
    after: dict[str, Value] = {}
    for i, pair in enumerate(caches):
        after |= {f"state.{i}.key": pair[0], f"state.{i}.value": pair[1]}
    return states.squeeze(1), after, {name: w.squeeze(2) for name, w in weights.items()}
