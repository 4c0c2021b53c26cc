"""Layers as graphs: recurrent networks, heads, blocks, experts, encoders, pooling."""

from typing import NamedTuple

import numpy as np
import torch
from torch import nn

from regard.attention.positions import RelativeBias
from regard.attention.scores import dot
from regard.errors import RegardError
from regard.inference.export.graph import DOUBLE, FLOAT, INT32, INT64, Value
from regard.inference.export.graph_attention import (
    activate,
    attend,
    causal,
    layer_norm,
    linear,
    normalize_scores,
    real_positions,
    softmax,
    top_positions,
    zero_masked,
)
from regard.layers import Block, Cell, Encoder, Experts, MultiHead, Pooling
from regard.models.encoders import (
    IdentityEncoder,
    RecurrentEncoder,
    RecurrentSelfEncoder,
    SelfAttentionEncoder,
    TransformerEncoder,
)
from regard.models.pretrained.language_model import GatedFeedForward
from regard.models.transformer_stack import TransformerStack

Weights = dict[str, Value]
Pair = tuple[Value, Value]
"""Keys and values, [b, h, k, d]."""
GATES = {
    "RNN_TANH": ("RNN", [0]),
    "GRU": ("GRU", [1, 0, 2]),
    "LSTM": ("LSTM", [0, 3, 1, 2]),
}
"""The operator of each network, and the positions of its gates in torch, in ONNX's order."""


def recurrent(
    layer: Encoder, x: Value, lengths: Value | None = None, state: list[Value] | None = None
) -> tuple[Value, list[Value]]:
    """States [b, t, s], and the last ones [b, layers, s], as in a packed torch network.

    The operators of ONNX know lengths and directions themselves, so empty_caches need be packed. An
    empty sequence takes one step in vain, as it does there.
    """
    graph, network, ways = x.graph, layer.network, layer.directions
    kind, _ = GATES[network.mode]
    attributes = {"hidden_size": network.hidden_size}
    if kind == "GRU":
        attributes["linear_before_reset"] = 1
    direction = "bidirectional" if ways == 2 else "forward"
    steps = None if lengths is None else graph.op("Max", lengths, 1).to(INT32)
    lasts: list[list[Value]] = []
    for number in range(layer.layers):
        first = [_inner(part, number, ways, network.hidden_size) for part in state or []]
        states, *last = graph.several(
            kind,
            3 if kind == "LSTM" else 2,
            x.permute(1, 0, 2),
            *_matrices(network, number, ways),
            steps,
            *first,
            direction=direction,
            **attributes,
        )
        x = states.permute(2, 0, 1, 3).reshape(0, 0, layer.size)
        lasts.append([part.permute(1, 0, 2).reshape(0, 1, layer.size) for part in last])
    after = [graph.join(list(parts), 1) for parts in zip(*lasts, strict=True)]
    if lengths is None:
        return x, after
    real = lengths.above(0).unsqueeze(1, 2)
    return zero_masked(x, real), [zero_masked(part, real) for part in after]


def _inner(state: Value, layer: int, ways: int, hidden: int) -> Value:
    """[ways, b, h] of [b, layers, ways · h]."""
    return state.slice(1, layer, layer + 1).reshape(0, ways, hidden).permute(1, 0, 2)


def _matrices(network: nn.RNNBase, layer: int, ways: int) -> list[np.ndarray]:
    """The weights of one layer in the operator's order: inputs, states, both biases."""
    _, order = GATES[network.mode]

    def ordered(name: str, way: int) -> np.ndarray:
        tensor = getattr(network, f"{name}_l{layer}{'_reverse' if way else ''}")
        gates = tensor.detach().float().cpu().chunk(len(order))
        return torch.cat([gates[gate] for gate in order]).numpy()

    inner, outer = (
        np.stack([ordered(name, way) for way in range(ways)]) for name in ("weight_ih", "weight_hh")
    )
    bias = [np.concatenate([ordered("bias_ih", w), ordered("bias_hh", w)]) for w in range(ways)]
    return [inner, outer, np.stack(bias)]


def cell_step(layer: Cell, inputs: list[Value], state: list[Value]) -> list[Value]:
    """One step of `regard.layers.Cell`."""
    graph, step = state[0].graph, layer.step
    x = graph.join(inputs, 1) @ graph.weight(step.weight_ih).permute(1, 0)
    x = x + graph.weight(step.bias_ih)
    h = state[0] @ graph.weight(step.weight_hh).permute(1, 0) + graph.weight(step.bias_hh)
    if layer.kind == "elman":
        return [(x + h).tanh()]
    if layer.kind == "gru":
        (a, b, c), (d, e, f) = (graph.split(part, 3, 1) for part in (x, h))
        reset, update = graph.op("Sigmoid", a + d), graph.op("Sigmoid", b + e)
        new = (c + reset * f).tanh()
        return [new + update * (state[0] - new)]
    gates = graph.split(x + h, 4, 1)
    enter, forget, leave = (graph.op("Sigmoid", gates[i]) for i in (0, 1, 3))
    memory = forget * state[1] + enter * gates[2].tanh()
    return [leave * memory.tanh(), memory]


def keys_and_values(layer: MultiHead, key: Value, before: Pair | None = None) -> Pair:
    """Keys and values by head, appended to those of earlier positions."""
    if layer.positions not in ("none", "rotary"):
        raise RegardError(f"{layer.positions} positions cannot be exported")
    new_key = _heads(layer.key, key, layer.key_heads)
    new_value = _heads(layer.value, key, layer.key_heads)
    if layer.positions == "rotary":
        new_key = _rotate(layer, new_key, 0 if before is None else before[0].size(2))
    if before is None:
        return new_key, new_value
    return key.graph.join([before[0], new_key], 2), key.graph.join([before[1], new_value], 2)


def read(layer: MultiHead, query: Value, memory: Pair, mask: Value | None) -> Pair:
    """The joint output of the heads, and their weights [b, h, q, k]."""
    heads = _heads(layer.query, query, layer.heads)
    if layer.positions == "rotary":
        heads = _rotate(layer, heads, memory[0].size(2) - query.size(1))
    bias = None
    for relative in layer.relative:
        bias = _relative_bias(relative, query.size(1), memory[0].size(2))
    key, value = (_share_heads(layer, part) for part in memory)
    read, weights = attend(
        heads,
        key,
        value,
        mask,
        score=layer.score,
        normalize=layer.normalize,
        bias=bias,
        axes=4,
    )
    joined = read.permute(0, 2, 1, 3).reshape(0, 0, layer.output.in_features)
    return linear(layer.output, joined), weights


def _rotate(layer: MultiHead, x: Value, offset: Value | int) -> Value:
    """Rotary positions of [b, h, t, d], the first of which is `offset`."""
    graph, size = x.graph, layer.key.out_features // layer.key_heads
    position = graph.range(offset, x.size(2) + offset).to(DOUBLE).unsqueeze(1)
    angle = position * layer.rotation.frequencies(size, None).numpy()
    cos, sin = (graph.op(kind, angle).to(FLOAT) for kind in ("Cos", "Sin"))
    pairs = x.reshape(0, 0, 0, size // 2, 2)
    even, odd = pairs.slice(4, 0, 1).squeeze(4), pairs.slice(4, 1).squeeze(4)
    turned = [(even * cos - odd * sin).unsqueeze(4), (even * sin + odd * cos).unsqueeze(4)]
    return graph.join(turned, 4).reshape(0, 0, 0, size)


def _relative_bias(layer: RelativeBias, queries: Value, keys: Value) -> Value:
    """The bias [h, q, k] of the last queries of a sequence on all its keys."""
    graph, longest = queries.graph, layer.longest  # what is farther has the same bias
    ahead = graph.range(0, keys) - graph.range(keys - queries, keys).unsqueeze(1)
    row = graph.op("Max", graph.op("Min", ahead, longest), -longest) + longest
    table = layer.weight[layer.range_numbers(torch.arange(-longest, longest + 1))]
    return graph.op("Gather", table.detach().float().cpu().numpy(), row, axis=0).permute(2, 0, 1)


def _share_heads(layer: MultiHead, x: Value) -> Value:
    """Each key head [b, h, k, d] once for every query head of its group."""
    group = layer.heads // layer.key_heads
    if group == 1:
        return x
    size = layer.key.out_features // layer.key_heads
    return x.unsqueeze(2).expand(1, 1, group, 1, 1).reshape(0, layer.heads, -1, size)


def _heads(projection: nn.Linear, x: Value, heads: int) -> Value:
    projected = linear(projection, x).reshape(0, 0, heads, projection.out_features // heads)
    return projected.permute(0, 2, 1, 3)


def stack(
    layer: TransformerStack,
    x: Value,
    mask: Value | None,
    name: str,
    own: list[Pair] | None = None,
    source: list[Pair] | None = None,
    source_mask: Value | None = None,
    real: Value | None = None,
) -> tuple[Value, Weights, list[Pair]]:
    """Vectors after all blocks, weights by name, and the keys and values of each block."""
    weights: Weights = {}
    caches = []
    for number, block in enumerate(layer):
        before = block_norm(block, x, block.own_norm)
        cache = keys_and_values(block.own, before, None if own is None else own[number])
        change, weights[f"{name}.{number}.self"] = read(block.own, before, cache, mask)
        x = add_and_norm(block, x, change, block.own_norm)
        if block.source is not None and source is not None:
            before = block_norm(block, x, block.source_norm)
            change, source_weights = read(block.source, before, source[number], source_mask)
            weights[f"{name}.{number}.source"] = source_weights
            x = add_and_norm(block, x, change, block.source_norm)
        before = block_norm(block, x, block.feed_norm)
        if isinstance(block.feed_forward, Experts):
            change, expert_weights = experts(block.feed_forward, before, real)
            weights[f"{name}.{number}.experts"] = expert_weights.unsqueeze(1)
        else:
            change = feed_forward(block.feed_forward, before)
        x = add_and_norm(block, x, change, block.feed_norm)
        caches.append(cache)
    return layer_norm(layer.norm, x), weights, caches


def feed_forward(layer: nn.Module, x: Value) -> Value:
    """The network of a block at each position."""
    if isinstance(layer, GatedFeedForward):
        hidden = activate(layer.activation, linear(layer.gate, x)) * linear(layer.inner, x)
        return linear(layer.outer, hidden)
    inner, activation, _, outer = layer.children()
    assert isinstance(inner, nn.Linear)
    assert isinstance(outer, nn.Linear)
    return linear(outer, activate(activation, linear(inner, x)))


def block_norm(block: Block, x: Value, norm: nn.Module) -> Value:
    """The input of a part."""
    return layer_norm(norm, x) if block.norm_first else x


def add_and_norm(block: Block, x: Value, change: Value, norm: nn.Module) -> Value:
    """The output of a part."""
    return x + change if block.norm_first else layer_norm(norm, x + change)


def experts(layer: Experts, x: Value, real: Value | None = None) -> tuple[Value, Value]:
    """The mixture of all experts, and the weight of each; those not chosen have weight 0."""
    graph = x.graph
    if layer.score != dot:
        raise RegardError("experts that are chosen by a score other than dot cannot be exported")
    fit = x @ graph.weight(layer.keys).permute(1, 0)
    expert_weights = softmax(fit)
    if layer.top_k is not None:
        chosen = top_positions(fit, layer.top_k)
        expert_weights = (
            zero_masked(expert_weights, chosen) if layer.top_k == 1 else softmax(fit, chosen)
        )
    hidden = x.unsqueeze(-2, -3) @ graph.weight(layer.inner_weight)
    hidden = activate(layer.activation, hidden + graph.weight(layer.inner_bias).unsqueeze(1))
    outputs = hidden @ graph.weight(layer.outer_weight) + graph.weight(layer.outer_bias).unsqueeze(
        1
    )
    mixed = (expert_weights.unsqueeze(-2) @ outputs.squeeze(-2)).squeeze(-2)
    if real is None:
        return mixed, expert_weights
    real = real.unsqueeze(-1)
    return zero_masked(mixed, real), zero_masked(expert_weights, real)


class Context(NamedTuple):
    """The states of a sequence, their summary, and attention weights by name."""

    states: Value
    last: list[Value]
    weights: Weights


EXPORTED_ENCODERS = (
    RecurrentEncoder,
    RecurrentSelfEncoder,
    TransformerEncoder,
    SelfAttentionEncoder,
    IdentityEncoder,
)


def encode(layer: nn.Module, x: Value, lengths: Value) -> Context:
    """An encoder of `regard.models.encoders`."""
    kind = type(layer)  # a subclass may compute something else
    if kind not in EXPORTED_ENCODERS:
        raise RegardError(
            f"the encoder {kind.__name__} cannot be exported: only the encoders "
            "built into regard can"
        )
    if isinstance(layer, RecurrentEncoder):
        states, last = recurrent(layer.network, x, lengths)
        return Context(states, [part.slice(1, -1).squeeze(1) for part in last], {})
    if isinstance(layer, RecurrentSelfEncoder):
        below = encode(layer.recurrent, x, lengths)
        return encode(layer.attention, below.states, lengths)._replace(last=below.last)
    real = real_positions(lengths, x.size(1))
    mask, weights = real.unsqueeze(1, 2), Weights()
    reach = getattr(layer, "reach", None)
    if reach is not None:
        mask = mask & causal(x.size(1), x.size(1), reach)
    if isinstance(layer, TransformerEncoder):
        x, weights, _ = stack(layer.stack, x, mask, "encoder", real=real)
    elif isinstance(layer, SelfAttentionEncoder):
        attended, own_weights = read(layer.attention, x, keys_and_values(layer.attention, x), mask)
        x, weights = layer_norm(layer.norm, x + attended), {layer.name: own_weights}
    states = zero_masked(x, real.unsqueeze(2))
    mean = states.sum(1) / x.graph.op("Max", lengths, 1).to(FLOAT).unsqueeze(1)
    return Context(states, [mean], weights)


def pool(layer: Pooling, states: Value, lengths: Value) -> Pair:
    """One vector [b, p] per set, and the weights [b, n, t]."""
    graph = states.graph
    real = real_positions(lengths, states.size(1)).unsqueeze(1)
    if layer.kind == "fixed":
        query = graph.weight(layer.queries).unsqueeze(0)
        query = query.expand(states.size(0), *layer.queries.shape)
    elif layer.kind == "weighted":
        equal = softmax(real.to(FLOAT), real)
        query = linear(layer.context, equal @ states)
    else:
        weights = normalize_scores(layer.normalize, real.to(FLOAT), real)
        return _largest(states, real) if layer.kind == "max" else _flat(layer, weights, states)
    fit = attend(query, states, states, real, score=layer.score, normalize=layer.normalize)
    return fit[0].reshape(0, layer.size), fit[1]


def _flat(layer: Pooling, weights: Value, states: Value) -> Pair:
    return (weights @ states).reshape(0, layer.size), weights


def _largest(states: Value, real: Value) -> Pair:
    graph = states.graph
    closed = real.permute(0, 2, 1).where(states, float("-inf"))
    place = graph.op("ArgMax", closed, axis=1, keepdims=1)
    number = graph.range(0, states.size(1)).unsqueeze(0, 2)
    wins = graph.op("Equal", number, place).to(FLOAT).mean(2).unsqueeze(1)
    some = real.to(INT64).max(2).above(0)
    return zero_masked(closed.max(1), some), zero_masked(wins, real)
