"""Whole models as graphs: their inputs, their outputs, and the state between steps.

Every part of a state has the batch first. The outputs of an encoder or start graph have the names
of a step's inputs, `source.…` and `state.…`; a step returns `next.…`. Attention weights are
`weights.…`.
"""

from collections.abc import Callable
from typing import Any

from torch import nn

from regard.errors import RegardError
from regard.inference.export.graph import FLOAT, INT64, Graph, Value
from regard.inference.export.graph_attention import (
    attend,
    causal,
    linear,
    zero_masked,
)
from regard.inference.export.graph_layers import (
    Pair,
    Weights,
    encode,
    experts,
    pool,
    recurrent,
    stack,
)
from regard.inference.export.graph_memory import memory_model
from regard.inference.export.graph_ngrams import naive_bayes
from regard.inference.export.graph_pretrained import pretrained_classifier, pretrained_tagger
from regard.inference.export.graph_translator import translator
from regard.inference.export.graph_words import embed, unembed
from regard.inference.export.ports import (
    Axes,
    cache_axes,
    cache_pairs,
    empty_caches,
    output_state,
    output_weights,
    state_inputs,
)
from regard.layers import Experts
from regard.models import AlgorithmModel, Classifier, LanguageModel, Tagger, Translator
from regard.models.causal_networks import (
    EncoderNetwork,
    MemoryNetwork,
    RecurrentNetwork,
    TransformerNetwork,
)
from regard.models.characters import (
    BUCKETS,
    FACTOR,
    MODULUS,
    SIZES,
    CharacterFeatures,
    NgramVectors,
)
from regard.models.embedding import Embedding, VectorInputs
from regard.models.past_attention import PastAttention
from regard.models.pretrained.encoder_classifier import PretrainedClassifier
from regard.models.pretrained.encoder_tagger import PretrainedTagger


def graphs_of(model: nn.Module) -> dict[str, Graph]:
    """The graphs of a model, by the names of their files."""
    for kind, write in WRITERS.items():
        if isinstance(model, kind):
            return write(model)
    raise RegardError(
        f"a model of type {type(model).__name__} cannot be exported: only the models built "
        "into Regard can"
    )


def left_out(model: nn.Module) -> str:
    """What a model computes that its graphs do not; empty where they compute all of it."""
    if isinstance(model, LanguageModel) and model.ngrams is not None:
        return (
            "the n-gram model is not exported: the logits are those of the network alone (train "
            "with --ngrams 0 for a model without one)"
        )
    return ""


def classifier(model: Classifier) -> dict[str, Graph]:
    """words or vectors, lengths → logits [b, labels]."""
    graph = Graph()
    given, lengths = _sequence(graph, model.inputs)
    states, _, weights = encode(model.encoder, embed(model.inputs, given), lengths)
    if model.attention is not None:
        states, _, more = encode(model.attention, states, lengths)
        weights |= more
    vector, pooling_weights = pool(model.pooling, states, lengths)
    weights["pooling"] = pooling_weights.unsqueeze(2)
    if isinstance(model.decision, Experts):
        logits, expert_weights = experts(model.decision, vector)
        weights["experts"] = expert_weights.unsqueeze(1, 2)
        labels = model.decision.outer_bias.shape[1]
    else:
        logits, labels = linear(model.decision, vector), model.decision.out_features
    if model.naive_bayes is not None:
        weight = graph.weight(model.naive_bayes.network_weight)
        logits = logits * weight + naive_bayes(model.naive_bayes, given, lengths)
    graph.output("logits", logits, FLOAT, "batch", labels)
    output_weights(weights, "length")
    return {"model": graph}


def tagger(model: Tagger) -> dict[str, Graph]:
    """words or vectors, lengths, optional characters → logits [b, t, labels] of each word."""
    graph = Graph()
    given, lengths = _sequence(graph, model.inputs)
    x = embed(model.inputs, given)
    if model.characters is not None and model.join is not None:
        letters = graph.input("characters", INT64, "batch", "length", "letters")
        parts = [x, _character_features(model.characters, letters)]
        if model.ngrams is not None:
            parts.append(_ngram_vectors(model.ngrams, letters))
        x = linear(model.join, graph.join(parts, 2))
    context = encode(model.encoder, x, lengths)
    logits = linear(model.decision, context.states)
    graph.output("logits", logits, FLOAT, "batch", "length", model.decision.out_features)
    output_weights(context.weights, "length")
    return {"model": graph}


def _character_features(layer: CharacterFeatures, letters: Value) -> Value:
    graph = letters.graph
    flat = letters.reshape(-1, letters.size(2))
    vectors = embed(layer.table, flat).permute(0, 2, 1)
    convolution = layer.convolution
    assert convolution.bias is not None
    weight, bias = graph.weight(convolution.weight), graph.weight(convolution.bias)
    convolved = graph.op("Conv", vectors, weight, bias, kernel_shape=[3], pads=[1, 1])
    real = flat.above(0)
    convolved = real.unsqueeze(1).where(convolved, float("-inf")).max(2)
    any_real = real.to(INT64).max(1, keep=True).above(0)
    features = zero_masked(convolved, any_real).relu()
    return features.reshape(letters.size(0), letters.size(1), convolution.out_channels)


def _ngram_vectors(layer: NgramVectors, letters: Value) -> Value:
    graph = letters.graph
    words = letters.reshape(-1, letters.size(2))
    real = words.above(0).to(INT64)
    first, none = real.slice(1, 0, 1), graph.full(0, words.size(0), 1)
    marked = graph.join([first, words + real * 2, none], 1)
    before = graph.join([none, marked.slice(1, 0, -1)], 1)
    marked = marked + ((marked < 1) & before.above(0)).to(INT64) * 2
    rows_by_size = []
    for size in SIZES:
        row = marked.slice(1, size - 1) * 0 + size
        for place in range(size):
            letter = marked.slice(1, place, place + 1 - size if place + 1 < size else 2**62)
            row = graph.op("Mod", row * FACTOR + letter, MODULUS)
        is_real = marked.slice(1, size - 1).above(0).to(INT64)
        rows_by_size.append((graph.op("Mod", row, BUCKETS) + 1) * is_real)
    rows = graph.join(rows_by_size, 1)
    vectors = graph.op("Gather", graph.weight(layer.table.weight), rows, axis=0)
    number = rows.above(0).to(INT64).sum(1, keep=True)
    number = graph.op("Max", number, 1).to(FLOAT)
    averaged = vectors.sum(1) / number.sqrt()
    return averaged.reshape(letters.size(0), letters.size(1), layer.table.embedding_dim)


def algorithm_model(model: AlgorithmModel) -> dict[str, Graph]:
    """symbols → logits of the symbol to predict at each step; with a memory, one step per call."""
    if isinstance(model.body, MemoryNetwork):
        return memory_model(model, model.body)
    graph = Graph()
    symbols = graph.input("symbols", INT64, "batch", "length")
    x, weights = embed(model.embedding, symbols), Weights()
    body = model.body
    if isinstance(body, EncoderNetwork):
        x, weights = _encode_on(body, x)
    elif isinstance(body, RecurrentNetwork):
        x, _ = recurrent(body.network, x)
    else:
        mask = causal(symbols.size(1), symbols.size(1))
        x, weights, _ = stack(body.stack, x, mask, "decoder")
    logits = linear(model.answer, x)
    graph.output("logits", logits, FLOAT, "batch", "length", model.answer.out_features)
    output_weights(weights, "length")
    return {"model": graph}


def language(model: LanguageModel) -> dict[str, Graph]:
    """start: condition → state; model: tokens and a state → logits and the next state.

    The logits are those of the network alone.
    """
    start, graph = Graph(), Graph()
    batch, about = _condition(start, model)
    axes = _language_state(model)
    if about is not None:
        axes["state.about"] = ("batch", 1, model.config.width)
    for name, value in _language_start(model, batch, about).items():
        output_state(start, name, value, axes[name])
    tokens = graph.input("tokens", INT64, "batch", "length")
    state = state_inputs(graph, axes)
    x = embed(model.embedding, tokens, state["state.position"])
    if about is not None:
        x = x + state["state.about"]
    states, weights, after = _read_on(model, x, state)
    if model.narrow is not None:
        states = linear(model.narrow, states)
    logits, words = unembed(model.words, states)
    graph.output("logits", logits, FLOAT, "batch", "length", words)
    after["state.position"] = state["state.position"] + tokens.size(1)
    for name, value in (state | after).items():
        output_state(graph, name, value, axes[name], after=True)
    output_weights(weights, "length", "seen")
    return {"start": start, "model": graph}


def _condition(graph: Graph, model: LanguageModel) -> tuple[Value, Value | None]:
    """The number of texts, [1], and the vectors that they are conditioned on."""
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
    body = model.body
    if not isinstance(body, EncoderNetwork | RecurrentNetwork):
        return {"state.position": ("batch",)} | cache_axes(body.stack, "state", "past")
    width = model.config.width
    if isinstance(body, EncoderNetwork):
        return {"state.position": ("batch",), "state.past": ("batch", "past", width)}
    layers = body.network.layers
    axes: dict[str, Axes] = {"state.position": ("batch",)}
    for name in ("hidden", "memory")[: len(body.first)]:
        axes[f"state.{name}"] = ("batch", layers, width)
    if body.look is not None:
        axes["state.past"] = ("batch", "past", width)
    return axes


def _language_start(model: LanguageModel, batch: Value, about: Value | None) -> dict[str, Value]:
    graph, body = batch.graph, model.body
    state = {"state.position": graph.constant(0).expand(batch)}
    if about is not None:
        state["state.about"] = about
    if isinstance(body, EncoderNetwork):
        return state | {"state.past": graph.full(0.0, batch, 0, model.config.width)}
    if not isinstance(body, RecurrentNetwork):
        return state | empty_caches(body.stack, batch)
    first, width = graph.weight(body.first), model.config.width
    for number, name in enumerate(("hidden", "memory")[: len(body.first)]):
        part = first.slice(0, number, number + 1).expand(batch, body.network.layers, width)
        state[f"state.{name}"] = part + about if about is not None and not number else part
    if body.look is not None:
        state["state.past"] = graph.full(0.0, batch, 0, width)
    return state


def _read_on(
    model: LanguageModel, x: Value, state: dict[str, Value]
) -> tuple[Value, Weights, dict[str, Value]]:
    body = model.body
    if isinstance(body, RecurrentNetwork):
        names: list[str] = [name for name in ("state.hidden", "state.memory") if name in state]
        states, last = recurrent(body.network, x, None, [state[name] for name in names])
        after: dict[str, Value] = dict(zip(names, last, strict=True))
        if body.look is None:
            return states, {}, after
        states, after["state.past"], past_weights = _past_attention(
            body.look, states, state["state.past"]
        )
        return states, {"past": past_weights.unsqueeze(1)}, after
    if isinstance(body, EncoderNetwork):
        read = x.graph.join([state["state.past"], x], 1)
        states, weights = _encode_on(body, read, state["state.past"].size(1))
        return states, weights, {"state.past": _last_positions(body, read, 1)}
    own = cache_pairs(state, "state", len(body.stack.blocks))
    queries = x.size(1)
    mask = causal(queries, own[0][0].size(2) + queries, body.reach)
    states, weights, caches = stack(body.stack, x, mask, "decoder", own)
    after = {}
    for number, pair in enumerate(caches):
        for name, value in zip(("key", "value"), pair, strict=True):
            after[f"state.{number}.{name}"] = _last_positions(body, value, 2)
    return states, weights, after


def _encode_on(body: EncoderNetwork, read: Value, before: Value | int = 0) -> tuple[Value, Weights]:
    """The states and weights of the positions from `before` on."""
    context = encode(body.encoder, read, read.size(1).expand(read.size(0)))
    weights = {
        name.replace("encoder.", "decoder.", 1): rows.slice(2, before)
        for name, rows in context.weights.items()
    }
    return context.states.slice(1, before), weights


def _last_positions(body: EncoderNetwork | TransformerNetwork, cache: Value, axis: int) -> Value:
    """Those positions of a cache that later ones reach."""
    if body.reach is None:
        return cache
    # a slice from −0 would keep all positions
    return cache.slice(axis, 1 - body.reach if body.reach > 1 else 2**62)


def _past_attention(layer: PastAttention, states: Value, past: Value) -> tuple[Value, Value, Value]:
    graph = states.graph
    memory = graph.join([past, states], 1)
    key, value, predict = memory, memory, memory
    if layer.parts is not None:
        key, value, predict = graph.split(linear(layer.parts, memory), 3, 2)
    new = past.size(1)
    mask = causal(states.size(1), memory.size(1), layer.window + 1, own=False)
    context, weights = attend(
        key.slice(1, new), key, value, mask, score=layer.score, normalize=layer.normalize
    )
    joined = linear(layer.join, graph.join([predict.slice(1, new), context], 2)).tanh()
    return joined, memory.slice(1, -layer.window), weights


def _sequence(graph: Graph, layer: Embedding | VectorInputs) -> Pair:
    if isinstance(layer, VectorInputs):
        features = layer.project.in_features
        given = graph.input("vectors", FLOAT, "batch", "length", features)
    else:
        given = graph.input("words", INT64, "batch", "length")
    return given, graph.input("lengths", INT64, "batch")


WRITERS: dict[type[nn.Module], Callable[[Any], dict[str, Graph]]] = {
    Classifier: classifier,
    Tagger: tagger,
    AlgorithmModel: algorithm_model,
    LanguageModel: language,
    Translator: translator,
    PretrainedClassifier: pretrained_classifier,
    PretrainedTagger: pretrained_tagger,
}
