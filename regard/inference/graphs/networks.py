"""Whole models as graphs: what goes in, what comes out, and what passes from step to step.

Everything that passes on has the batch first. What encoding or starting makes has the names of what
a step takes, `source.…` and `state.…`; a step gives `next.…`. Attention weights are `weights.…`.
"""

from collections.abc import Callable
from typing import Any

from torch import nn

from regard.errors import RegardError
from regard.inference.graphs.bodies import (
    Pair,
    Weights,
    contextual,
    embedded,
    experts,
    pooled,
    recurrent,
    stack,
    worded,
)
from regard.inference.graphs.equations import (
    attend,
    causal,
    close,
    linear,
)
from regard.inference.graphs.memories import with_memory
from regard.inference.graphs.passing import (
    Axes,
    cache_axes,
    looks,
    nothing,
    pairs,
    state_in,
    state_out,
)
from regard.inference.graphs.translators import translator
from regard.inference.graphs.values import FLOAT, INT64, Graph, Value
from regard.layers import Experts
from regard.models import Classifier, LanguageModel, Machine, Tagger, Translator
from regard.models.embedding import Embedding, Vectors
from regard.models.language import Recurrent
from regard.models.lookback import LookBack
from regard.models.machine import Recurrent as RecurrentMachine
from regard.models.machine import WithMemory
from regard.models.spelling import (
    BUCKETS,
    FACTOR,
    MODULUS,
    SIZES,
    CharacterFeatures,
    Ngrams,
)


def graphs_of(model: nn.Module) -> dict[str, Graph]:
    """The graphs of a model, by the names of their files."""
    for kind, write in WRITERS.items():
        if isinstance(model, kind):
            return write(model)
    raise RegardError(f"a model of type {type(model).__name__} cannot be exported")


def classifier(model: Classifier) -> dict[str, Graph]:
    """words or vectors, lengths → logits [b, labels]."""
    graph = Graph()
    given, lengths = _sequence(graph, model.inputs)
    states, _, weights = contextual(model.encoder, embedded(model.inputs, given), lengths)
    if model.attention is not None:
        states, _, more = contextual(model.attention, states, lengths)
        weights |= more
    vector, looked = pooled(model.pooling, states, lengths)
    weights["pooling"] = looked.unsqueeze(2)
    if isinstance(model.decision, Experts):
        logits, heard = experts(model.decision, vector)
        weights["experts"] = heard.unsqueeze(1, 2)
        labels = model.decision.outer_bias.shape[1]
    else:
        logits, labels = linear(model.decision, vector), model.decision.out_features
    graph.output("logits", logits, FLOAT, "batch", labels)
    looks(weights, "length")
    return {"model": graph}


def tagger(model: Tagger) -> dict[str, Graph]:
    """words or vectors, lengths, perhaps characters → logits [b, t, labels], each word's own."""
    graph = Graph()
    given, lengths = _sequence(graph, model.inputs)
    x = embedded(model.inputs, given)
    if model.characters is not None and model.join is not None:
        letters = graph.input("characters", INT64, "batch", "length", "letters")
        parts = [x, _spelt(model.characters, letters)]
        if model.ngrams is not None:
            parts.append(_ngrams(model.ngrams, letters))
        x = linear(model.join, graph.join(parts, 2))
    context = contextual(model.encoder, x, lengths)
    logits = linear(model.decision, context.states)
    graph.output("logits", logits, FLOAT, "batch", "length", model.decision.out_features)
    looks(context.weights, "length")
    return {"model": graph}


def _spelt(layer: CharacterFeatures, letters: Value) -> Value:
    graph = letters.graph
    flat = letters.reshape(-1, letters.size(2))
    vectors = embedded(layer.table, flat).permute(0, 2, 1)
    convolution = layer.convolution
    assert convolution.bias is not None
    weight, bias = graph.weight(convolution.weight), graph.weight(convolution.bias)
    made = graph.op("Conv", vectors, weight, bias, kernel_shape=[3], pads=[1, 1])
    real = flat.above(0)
    made = real.unsqueeze(1).where(made, float("-inf")).max(2)
    some = real.to(INT64).max(1, keep=True).above(0)
    features = close(made, some).relu()
    return features.reshape(letters.size(0), letters.size(1), convolution.out_channels)


def _ngrams(layer: Ngrams, letters: Value) -> Value:
    graph = letters.graph
    words = letters.reshape(-1, letters.size(2))
    real = words.above(0).to(INT64)
    first, none = real.slice(1, 0, 1), graph.full(0, words.size(0), 1)
    spelt = graph.join([first, words + real * 2, none], 1)
    before = graph.join([none, spelt.slice(1, 0, -1)], 1)
    spelt = spelt + ((spelt < 1) & before.above(0)).to(INT64) * 2
    found = []
    for size in SIZES:
        row = spelt.slice(1, size - 1) * 0 + size
        for place in range(size):
            letter = spelt.slice(1, place, place + 1 - size if place + 1 < size else 2**62)
            row = graph.op("Mod", row * FACTOR + letter, MODULUS)
        some = spelt.slice(1, size - 1).above(0).to(INT64)
        found.append((graph.op("Mod", row, BUCKETS) + 1) * some)
    rows = graph.join(found, 1)
    vectors = graph.op("Gather", graph.weight(layer.table.weight), rows, axis=0)
    number = rows.above(0).to(INT64).sum(1, keep=True)
    number = graph.op("Max", number, 1).to(FLOAT)
    made = vectors.sum(1) / number.sqrt()
    return made.reshape(letters.size(0), letters.size(1), layer.table.embedding_dim)


def machine(model: Machine) -> dict[str, Graph]:
    """symbols → logits of the symbol to say at each step; with a memory, a step at a time."""
    if isinstance(model.body, WithMemory):
        return with_memory(model, model.body)
    graph = Graph()
    symbols = graph.input("symbols", INT64, "batch", "length")
    x, weights = embedded(model.embedding, symbols), Weights()
    if isinstance(model.body, RecurrentMachine):
        x, _ = recurrent(model.body.network, x)
    else:
        mask = causal(symbols.size(1), symbols.size(1))
        x, weights, _ = stack(model.body.stack, x, mask, "decoder")
    logits = linear(model.answer, x)
    graph.output("logits", logits, FLOAT, "batch", "length", model.answer.out_features)
    looks(weights, "length")
    return {"model": graph}


def language(model: LanguageModel) -> dict[str, Graph]:
    """start: what to write about → state; model: tokens and a state → logits and the next one."""
    start, graph = Graph(), Graph()
    batch, about = _about(start, model)
    axes = _language_state(model)
    if about is not None:
        axes["state.about"] = ("batch", 1, model.config.width)
    for name, value in _first(model, batch, about).items():
        state_out(start, name, value, axes[name])
    tokens = graph.input("tokens", INT64, "batch", "length")
    state = state_in(graph, axes)
    x = embedded(model.embedding, tokens, state["state.position"])
    if about is not None:
        x = x + state["state.about"]
    states, weights, after = _read_on(model, x, state)
    if model.narrow is not None:
        states = linear(model.narrow, states)
    logits = worded(model.words, states)
    graph.output("logits", logits, FLOAT, "batch", "length", model.words.bias.shape[0])
    after["state.position"] = state["state.position"] + tokens.size(1)
    for name, value in (state | after).items():
        state_out(graph, name, value, axes[name], after=True)
    looks(weights, "length", "seen")
    return {"start": start, "model": graph}


def _about(graph: Graph, model: LanguageModel) -> tuple[Value, Value | None]:
    """How many texts there are, [1], and what they are about."""
    parts = []
    if model.label is not None:
        label = graph.input("label", INT64, "batch")
        parts.append(graph.op("Gather", graph.weight(model.label.weight), label, axis=0))
    if model.vector is not None:
        vector = graph.input("vector", FLOAT, "batch", model.vector.in_features)
        parts.append(linear(model.vector, vector))
    if not parts:
        return graph.input("batch", INT64, 1), None
    total = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    return total.size(0), total.unsqueeze(1)


def _language_state(model: LanguageModel) -> dict[str, Axes]:
    width = model.config.width
    if not isinstance(model.body, Recurrent):
        return {"state.position": ("batch",)} | cache_axes(model.body.stack, "state", "past")
    layers = model.body.network.layers
    found: dict[str, Axes] = {"state.position": ("batch",)}
    for name in ("hidden", "memory")[: len(model.body.first)]:
        found[f"state.{name}"] = ("batch", layers, width)
    if model.body.look is not None:
        found["state.past"] = ("batch", "past", width)
    return found


def _first(model: LanguageModel, batch: Value, about: Value | None) -> dict[str, Value]:
    graph = batch.graph
    made = {"state.position": graph.constant(0).expand(batch)}
    if about is not None:
        made["state.about"] = about
    if not isinstance(model.body, Recurrent):
        return made | nothing(model.body.stack, batch)
    first, width = graph.weight(model.body.first), model.config.width
    for number, name in enumerate(("hidden", "memory")[: len(model.body.first)]):
        part = first.slice(0, number, number + 1).expand(batch, model.body.network.layers, width)
        made[f"state.{name}"] = part + about if about is not None and not number else part
    if model.body.look is not None:
        made["state.past"] = graph.full(0.0, batch, 0, width)
    return made


def _read_on(
    model: LanguageModel, x: Value, state: dict[str, Value]
) -> tuple[Value, Weights, dict[str, Value]]:
    body = model.body
    if isinstance(body, Recurrent):
        names: list[str] = [name for name in ("state.hidden", "state.memory") if name in state]
        states, last = recurrent(body.network, x, None, [state[name] for name in names])
        after: dict[str, Value] = dict(zip(names, last, strict=True))
        if body.look is None:
            return states, {}, after
        states, after["state.past"], looked = _look_back(body.look, states, state["state.past"])
        return states, {"past": looked.unsqueeze(1)}, after
    own = pairs(state, "state", len(body.stack.blocks))
    queries = x.size(1)
    mask = causal(queries, own[0][0].size(2) + queries, body.reach)
    states, weights, caches = stack(body.stack, x, mask, "decoder", own)
    after = {}
    # what is out of every later word's reach is forgotten; a start of −0 would keep all
    first = 1 - body.reach if body.reach > 1 else 2**62
    for number, pair in enumerate(caches):
        for name, value in zip(("key", "value"), pair, strict=True):
            after[f"state.{number}.{name}"] = value.slice(2, first)
    return states, weights, after


def _look_back(layer: LookBack, states: Value, past: Value) -> tuple[Value, Value, Value]:
    graph = states.graph
    memory = graph.join([past, states], 1)
    key, value, predict = memory, memory, memory
    if layer.parts is not None:
        key, value, predict = graph.split(linear(layer.parts, memory), 3, 2)
    new = past.size(1)
    mask = causal(states.size(1), memory.size(1), layer.window + 1, own=False)
    looked, weights = attend(
        key.slice(1, new), key, value, mask, score=layer.score, normalize=layer.normalize
    )
    joined = linear(layer.join, graph.join([predict.slice(1, new), looked], 2)).tanh()
    return joined, memory.slice(1, -layer.window), weights


def _sequence(graph: Graph, layer: Embedding | Vectors) -> Pair:
    if isinstance(layer, Vectors):
        features = layer.project.in_features
        given = graph.input("vectors", FLOAT, "batch", "length", features)
    else:
        given = graph.input("words", INT64, "batch", "length")
    return given, graph.input("lengths", INT64, "batch")


WRITERS: dict[type[nn.Module], Callable[[Any], dict[str, Graph]]] = {
    Classifier: classifier,
    Tagger: tagger,
    Machine: machine,
    LanguageModel: language,
    Translator: translator,
}
