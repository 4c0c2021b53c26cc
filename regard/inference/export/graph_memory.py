"""An algorithm model with a memory as two graphs: its first state, and one step."""

import math

import numpy as np

from regard.inference.export.graph import FLOAT, INT64, Graph, Value
from regard.inference.export.graph_attention import compute_scores, linear, softmax
from regard.inference.export.graph_layers import cell_step
from regard.inference.export.graph_words import embed
from regard.inference.export.ports import Axes, output_state, output_weights, state_inputs
from regard.layers import Cell, Memory
from regard.layers.memory.dnc import DNC
from regard.layers.memory.ntm import NTM, Heads
from regard.models import AlgorithmModel
from regard.models.causal_networks import MemoryNetwork

Parts = dict[str, Value]
"""Values by the names that the layers give them."""
HIDDEN, CELL = "state.hidden", "state.cell"
TINY = float(np.finfo(np.float32).tiny)


def memory_model(model: AlgorithmModel, body: MemoryNetwork) -> dict[str, Graph]:
    """start: number of problems → an empty memory; model: one symbol and a state → logits."""
    start, graph = Graph(), Graph()
    memory, axes = body.memory, _axes(body)
    batch = start.input("batch", INT64, 1)
    for name, sizes in axes.items():
        inner = [size for size in sizes if isinstance(size, int)]
        first = np.zeros((1, *inner), np.float32)
        if isinstance(memory.mechanism, NTM) and name in ("state.read", "state.write"):
            first[..., 0] = 1
        output_state(start, name, start.constant(first).expand(batch, *inner), sizes)
    symbol = graph.input("symbol", INT64, "batch")
    state = state_inputs(graph, axes)
    before = {name: state[f"state.{name}"] for name in memory.mechanism.state_shapes}
    x = embed(model.embedding, symbol.unsqueeze(1)).squeeze(1)
    given = graph.join([x, _read(memory, before)], 1)
    if isinstance(body.controller, Cell):
        own = [state[name] for name in (HIDDEN, CELL) if name in state]
        controlled = cell_step(body.controller, [given], own)
    else:
        controlled = [linear(body.controller, given).tanh()]
    after = _step(memory, linear(memory.interface, controlled[0]), before)
    interface = linear(model.answer, graph.join([controlled[0], _read(memory, after)], 1))
    graph.output("logits", interface, FLOAT, "batch", model.answer.out_features)
    passed = {f"state.{name}": value for name, value in after.items()}
    for name, value in zip((HIDDEN, CELL), controlled, strict=False):
        passed[name] = value
    for name in axes:
        output_state(graph, name, passed[name], axes[name], after=True)
    output_weights({f"memory.{part}": after[part] for part in ("read", "write")}, None, "slots")
    return {"start": start, "model": graph}


def _axes(body: MemoryNetwork) -> dict[str, Axes]:
    axes: dict[str, Axes] = {
        f"state.{name}": ("batch", *shape)
        for name, shape in body.memory.mechanism.state_shapes.items()
    }
    if isinstance(body.controller, Cell):
        names = (HIDDEN, CELL) if body.controller.kind == "lstm" else (HIDDEN,)
        axes |= dict.fromkeys(names, ("batch", body.controller.step.hidden_size))
    return axes


def _read(memory: Memory, state: Parts) -> Value:
    return (state["read"] @ state["memory"]).reshape(0, memory.read_size)


def _step(memory: Memory, vector: Value, state: Parts) -> Parts:
    """The state after one step with this interface vector."""
    interface, begin = {}, 0
    for name, shape in memory.mechanism.shapes.items():
        end = begin + math.prod(shape)
        interface[name] = vector.slice(1, begin, end).reshape(0, *shape)
        begin = end
    if isinstance(memory.mechanism, NTM):
        return _ntm(memory, memory.mechanism, interface, state)
    assert isinstance(memory.mechanism, DNC)
    return _dnc(memory, interface, state)


def _ntm(memory: Memory, mechanism: NTM, interface: Parts, state: Parts) -> Parts:
    heads = mechanism.read_heads
    places = {name: interface[name] for name in Heads._fields}
    reading = {name: part.slice(1, 0, heads) for name, part in places.items()}
    writing = {name: part.slice(1, heads) for name, part in places.items()}
    write = _address(memory, mechanism, writing, state["memory"], state["write"])
    changed = _written(state["memory"], write, interface, mechanism.write_heads)
    read = _address(memory, mechanism, reading, changed, state["read"])
    return {"memory": changed, "read": read, "write": write}


def _address(
    memory: Memory, mechanism: NTM, interface: Parts, slots: Value, previous: Value
) -> Value:
    """Weights by content or from the previous address, then shifted and sharpened."""
    graph = slots.graph
    content = _content(memory, interface["key"], graph.op("Softplus", interface["strength"]), slots)
    weights = previous + _gate(interface["gate"]).unsqueeze(2) * (content - previous)
    weights = _shift(weights, softmax(interface["distances"]), mechanism)
    sharpness = graph.op("Softplus", interface["sharpness"]) + 1.0
    relative = weights / graph.op("Max", weights.max(-1, keep=True), TINY)
    powers = graph.op("Pow", relative, sharpness.unsqueeze(2))
    return powers / graph.op("Max", powers.sum(-1, keep=True), 1.0)


def _shift(weights: Value, shares: Value, mechanism: NTM) -> Value:
    graph, reach = weights.graph, mechanism.reach
    moved = weights * shares.slice(2, reach, reach + 1)
    for move in (*range(-reach, 0), *range(1, reach + 1)):
        cut = -move % mechanism.slots
        rolled = graph.join([weights.slice(2, cut), weights.slice(2, 0, cut)], 2)
        moved = moved + rolled * shares.slice(2, move + reach, move + reach + 1)
    return moved


def _dnc(memory: Memory, interface: Parts, state: Parts) -> Parts:
    graph = state["memory"].graph
    slots = memory.mechanism.state_shapes["usage"][0]
    kept = _rest(_gate(interface["free_gates"]).unsqueeze(2) * state["read"])
    retained = graph.op("ReduceProd", kept, np.array([1]), keepdims=0)
    last = state["write"].squeeze(1)
    usage = (state["usage"] + last * _rest(state["usage"])) * retained
    usage = graph.op("Clip", usage, 0.0, 1.0)
    strength = graph.op("Softplus", interface["write_strength"]) + 1.0
    content = _content(memory, interface["write_key"], strength, state["memory"])
    free = _allocation(usage, slots).unsqueeze(1)
    place = content + _gate(interface["allocation_gate"]).unsqueeze(2) * (free - content)
    write = _gate(interface["write_gate"]).unsqueeze(2) * place
    changed = _written(state["memory"], write, interface, 1)
    into, out_of = write.permute(0, 2, 1), write
    before = state["precedence"].unsqueeze(1)
    links = _rest(into + out_of).relu() * state["links"] + into * before
    links = links * (1 - np.eye(slots, dtype=np.float32))
    new = write.squeeze(1)
    precedence = _rest(new.sum(-1, keep=True)).relu() * state["precedence"] + new
    strength = graph.op("Softplus", interface["read_strength"]) + 1.0
    content = _content(memory, interface["read_key"], strength, changed)
    backward, forward = state["read"] @ links, state["read"] @ links.permute(0, 2, 1)
    modes = graph.split(softmax(interface["read_modes"]), 3, 2)
    read = backward * modes[0] + content * modes[1] + forward * modes[2]
    return {
        "memory": changed,
        "read": read,
        "write": write,
        "usage": usage,
        "precedence": precedence,
        "links": links,
    }


def _allocation(usage: Value, slots: int) -> Value:
    """The least used slots: (1 − u) times the product of all that are less used.

    Of equally used slots the first comes first, as in a stable sort: TopK promises as much.
    """
    graph = usage.graph
    ascending, order = graph.several("TopK", 2, usage, np.array([slots]), axis=-1, largest=0)
    less = graph.constant(np.tri(slots, k=-1, dtype=bool))
    before = less.where(ascending.unsqueeze(1), 1.0)
    product = graph.op("ReduceProd", before, np.array([2]), keepdims=0)
    return graph.op("ScatterElements", usage * 0.0, order, _rest(ascending) * product, axis=-1)


def _content(memory: Memory, key: Value, strength: Value, slots: Value) -> Value:
    return softmax(strength.unsqueeze(2) * compute_scores(memory.score, key, slots))


def _written(memory: Value, weights: Value, interface: Parts, heads: int) -> Value:
    """All heads erase, then all heads add."""
    turned = weights.permute(0, 2, 1)
    erase = _gate(interface["erase"])
    for head in range(heads):
        erased = turned.slice(2, head, head + 1) * erase.slice(1, head, head + 1)
        memory = memory * _rest(erased)
    return memory + turned @ interface["add"]


def _gate(raw: Value) -> Value:
    return raw.graph.op("Sigmoid", raw)


def _rest(share: Value) -> Value:
    """1 − x."""
    return share * -1.0 + 1.0
