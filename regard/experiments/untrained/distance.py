"""Recurrence needs as many steps as there are words; self-attention needs the same few for any.

The computation of the last output is a graph. Its longest path is the number of operations that
must follow one after the other, however many processors there are; the shortest path between the
last output and the first word is how far the two are apart. Both are counted on the graph that
PyTorch records for back-propagation, for the steps of a GRU and for one layer of self-attention.
Vaswani et al., 2017, table 1, https://arxiv.org/abs/1706.03762
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from regard.experiments.claims import Experiment, Finding, Setting, over_seeds
from regard.layers import MultiHead
from regard.layers.recurrent import Cell
from regard.show.charts import Axis, Series, line_chart

WIDTH = 32
Network = Callable[[list[Tensor]], Tensor]
WAYS = ("forwards", "backwards")


def recurrence() -> Network:
    """The last state of a GRU, one step per word."""
    cell = Cell(WIDTH, WIDTH, "gru")

    def read(words: list[Tensor]) -> Tensor:
        state = cell.initial(torch.zeros(1, WIDTH))
        for word in words:
            state = cell(word, state)
        return state[0]

    return read


def self_attention() -> Network:
    """The last output of self-attention over all words."""
    layer = MultiHead(WIDTH, heads=4)
    return lambda words: layer(torch.stack(words, dim=1)).output[:, -1]


def path_lengths(output: Tensor, source: Tensor) -> tuple[int, int]:
    """The shortest path from an output to an input in the graph, and the longest of all paths.

    Nodes are visited in topological order, so that each path is extended once.
    """
    order, seen = list[Any](), set[Any]()
    stack: list[tuple[Any, bool]] = [(output.grad_fn, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif node is not None and node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(child, False) for child, _ in node.next_functions]
    shortest: dict[object, float] = {}
    longest: dict[object, int] = {}
    for node in order:
        children = [child for child, _ in node.next_functions if child is not None]
        at_source = getattr(node, "variable", None) is source
        shortest[node] = 0 if at_source else 1 + min((shortest[c] for c in children), default=1e9)
        longest[node] = 1 + max((longest[child] for child in children), default=-1)
    return int(shortest[output.grad_fn]), longest[output.grad_fn]


def forwards_and_backwards(network: Network, words: list[Tensor]) -> tuple[float, float]:
    """Milliseconds of processor time, one way and the other."""
    started = time.process_time()
    output = network(words).sum()
    turned = time.process_time()
    output.backward()
    return 1000 * (turned - started), 1000 * (time.process_time() - turned)


def judge(lengths: Sequence[int], recurrent: Sequence[int], attention: Sequence[int]) -> bool:
    """Steps of the recurrence grow at least like the length, those of attention not at all."""
    grows = recurrent[-1] / recurrent[0] > 0.5 * lengths[-1] / lengths[0]
    return grows and max(attention) == min(attention)


def run(setting: Setting) -> Finding:
    """Count the paths and measure the time, forwards and backwards, by length."""
    lengths = setting.pick([4, 8], [10, 20, 50, 100, 200], [10, 30, 100, 300, 1000])
    repeats = setting.pick(2, 5, 10)
    names = {"recurrence": recurrence, "self-attention": self_attention}
    steps, far, milliseconds = {}, {}, {}
    for name, make in names.items():
        network = make()
        for length in lengths:
            words = [torch.randn(1, WIDTH, requires_grad=True) for _ in range(length)]
            far[name, length], steps[name, length] = path_lengths(network(words), words[0])
            times = [forwards_and_backwards(network, words) for _ in range(repeats)]
            for way, values in zip(WAYS, zip(*times, strict=True), strict=True):
                milliseconds[name, way, length] = over_seeds(values)
    x = [float(length) for length in lengths]
    pictures = {}
    for file, title, unit, found in (
        ("steps", "Operations that must follow each other", "operations", steps),
        ("interaction", "Distance between the first word and the last output", "operations", far),
    ):
        series = [Series(name, x, [found[name, n] for n in lengths]) for name in names]
        axes = Axis("length", log=True), Axis(unit, log=True)
        pictures[file] = line_chart(title, series, *axes)
    timed = [
        Series(f"{name}, {way}", x, [milliseconds[name, way, n].mean for n in lengths])
        for name in names
        for way in WAYS
    ]
    axes = Axis("length", log=True), Axis("milliseconds", log=True)
    pictures["time"] = line_chart("Time", timed, *axes)
    last = lengths[-1]
    numbers = {
        f"steps of {name} at length {last}": over_seeds([steps[name, last]]) for name in names
    }
    numbers |= {
        f"distance in {name} at length {last}": over_seeds([far[name, last]]) for name in names
    }
    numbers |= {
        f"milliseconds of {name} {way} at length {last}": milliseconds[name, way, last]
        for name in names
        for way in WAYS
    }
    by_length = {name: [steps[name, n] for n in lengths] for name in names}
    held = judge(lengths, by_length["recurrence"], by_length["self-attention"])
    growth = {name: f"from {counts[0]} to {counts[-1]}" for name, counts in by_length.items()}
    summary = (
        f"from length {lengths[0]} to {last}, the steps of recurrence went "
        f"{growth['recurrence']}, those of self-attention {growth['self-attention']}."
    )
    return Finding(held, summary, numbers, pictures)


EXPERIMENT = Experiment(
    name="distance",
    claim="The steps of a recurrence grow with the length; self-attention takes the same few.",
    source="Vaswani et al., 2017",
    row="A5",
    minutes=0.2,
    run=run,
)
