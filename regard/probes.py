"""The properties that attention code silently breaks, each with the probe that measures it.

A probe changes something that must not matter, calls the module again, and measures how far the
answer moved.
"""

import math
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from regard.inputs import (
    Inputs,
    Names,
    clock,
    copied,
    emptied,
    full,
    last,
    lengthened,
    real,
    refilled,
    single,
    trimmed,
    within,
)
from regard.subject import Deviation, Result, Subject, furthest, nan_in, scale, worst_of

EXTRA = 3  # places of padding added to see whether their number matters
TRIES = 3  # draws of other content before a position counts as never seen


class NotApplicable(Exception):  # noqa: N818 (an answer, not an error)
    """The property has no meaning for these inputs; the message says why."""


def repeat(subject: Subject) -> Deviation:
    """A call after another one gives what the first gave."""
    nowhere = {axis: torch.zeros_like(mask) for axis, mask in real(subject.inputs).items()}
    inputs = subject.inputs
    other = refilled(inputs, inputs.time_axes, nowhere, subject.generator())
    first = subject.run(inputs)
    subject.run(other, fresh=False)
    again = subject.run(inputs, fresh=False)
    return subject.compare(first, again, inputs).when("in a later call")


def inputs_kept(subject: Subject) -> Deviation:
    """The tensors that go in are not written to."""
    found = [Deviation()]
    for need_weights in _ways(subject.inputs):
        given = copied(subject.inputs)
        subject.run(given, need_weights, copy=False)
        for name, after in [*given.tensors.items(), *given.lengths.items()]:
            before = subject.inputs.tensors.get(name, subject.inputs.lengths.get(name))
            if before is not None and not torch.equal(before, after):
                found.append(Deviation(math.inf, f"{name} was written to"))
    return worst_of(found)


def recording(subject: Subject) -> Deviation:
    """The answer is the same with autograd on and off."""
    recorded, _ = subject.record(subject.inputs)
    return subject.compare(subject.reference, recorded, subject.inputs).when("with autograd on")


def finite(subject: Subject) -> Deviation:
    """No NaN at a real place."""
    inputs = subject.inputs
    return worst_of(
        nan_in(result, inputs, everywhere=False)
        for result in (subject.run(inputs, ways) for ways in _ways(inputs))
    )


def empty_rows(subject: Subject) -> Deviation:
    """No NaN at any place, nor in a gradient, where there is nothing to look at."""
    found = []
    for inputs, circumstance, refusal in _also_empty(subject):
        if refusal:
            found.append(Deviation(0.0, refusal))
            continue
        found.extend(
            nan_in(subject.run(inputs, need_weights), inputs, everywhere=True).when(circumstance)
            for need_weights in _ways(inputs)
        )
        result, leaves = subject.record(inputs)
        found.append(nan_in(result, inputs, everywhere=True).when(circumstance))
        gradients = subject.pull(result, inputs, leaves | subject.parameters())
        found.extend(
            Deviation(math.inf, f"gradient of {name}").when(circumstance)
            for name, gradient in gradients.items()
            if not gradient.isfinite().all()
        )
    return worst_of(sorted(found, key=lambda deviation: not deviation.where))


def batch(subject: Subject) -> Deviation:
    """An item alone gives what it gives in the batch."""
    found = []
    for item in range(subject.inputs.size("b")):
        alone = single(subject.inputs, item)
        expected = subject.reference.item(item)
        found.append(subject.compare(expected, subject.run(alone), alone, item=item).when("alone"))
    return worst_of(found)


def padding_content(subject: Subject) -> Deviation:
    """What stands in the padding changes nothing at real places, not even of an empty item."""
    groups, found = _groups(subject.inputs), []
    for inputs, circumstance, refusal in _also_empty(subject):
        if refusal:
            continue
        expected = subject.run(inputs)
        for group in groups:
            other = subject.run(refilled(inputs, group, real(inputs, group), subject.generator()))
            if circumstance:
                empty = inputs.size("b") - 1
                parts = expected.item(empty), other.item(empty), single(inputs, empty)
                changed = subject.compare(*parts, item=empty)
            else:
                changed = subject.compare(expected, other, inputs)
            done = f"after other padding on {_both(group)}"
            found.append(changed.when(done).when(circumstance))
    return worst_of(found)


def padding_amount(subject: Subject) -> Deviation:
    """More padding, or none, changes nothing at real places."""
    inputs, found = subject.inputs, []
    for group in _groups(inputs):
        longer = subject.run(lengthened(inputs, group, EXTRA, subject.generator()))
        changed = subject.compare(subject.reference, longer, inputs)
        found.append(changed.when(f"after {EXTRA} more places on {_both(group)}"))
    for item in range(inputs.size("b")):
        alone = single(inputs, item)
        expected = subject.run(alone)
        for group in inputs.groups():
            try:
                bare = subject.run(trimmed(alone, group))
            except Exception:
                continue  # a module may refuse so short a sequence, loudly
            changed = subject.compare(expected, bare, alone, item=item)
            found.append(changed.when(f"alone and without padding on {_both(group)}"))
    return worst_of(found)


def padding_gradient(subject: Subject) -> Deviation:
    """No gradient flows from real places of the output into padding."""
    inputs = subject.inputs
    axes = {axis for group in _groups(inputs) for axis in group}
    result, leaves = subject.record(inputs)
    leaves = _reachable(result, leaves, inputs, axes)
    found = []
    for name, gradient in subject.pull(result, inputs, leaves).items():
        inside = within(real(inputs), inputs.names(name), gradient.shape)
        size = gradient.abs().nan_to_num(nan=0.0).masked_fill(inside, 0.0)
        size = size / scale(gradient[inside])
        found.append(furthest(size, inputs.names(name), f"gradient of {name}"))
    return worst_of(found)


def future(subject: Subject) -> Deviation:
    """What comes later changes nothing before it."""
    inputs = subject.inputs
    found = []
    for cut, past in _pasts(inputs, subject.reference):
        later = {axis: past[axis] | ~inputs.mask(axis) for axis in past}
        other = refilled(inputs, inputs.causal_axes, later, subject.generator())
        changed = subject.compare(subject.reference, subject.run(other), inputs, past)
        found.append(changed.when(f"after other content later than {cut}"))
    return worst_of(found)


def future_gradient(subject: Subject) -> Deviation:
    """No gradient flows from an output into what comes later."""
    inputs = subject.inputs
    result, leaves = subject.record(inputs)
    pasts = list(_pasts(inputs, result))
    leaves = _reachable(result, leaves, inputs, inputs.causal_axes)
    found = []
    for cut, past in pasts:
        for name, gradient in subject.pull(result, inputs, leaves, past).items():
            names = inputs.names(name)
            earlier = within(past, names, gradient.shape)
            later = within(real(inputs), names, gradient.shape) & ~earlier
            size = gradient.abs().nan_to_num(nan=0.0).masked_fill(~later, 0.0)
            size = size / scale(gradient[earlier])
            worst = furthest(size, names, f"gradient of {name}")
            found.append(worst.when(f"from outputs up to {cut}"))
    return worst_of(found)


def last_queries(subject: Subject) -> Deviation:
    """The last queries alone, over all keys, give what they give among all queries."""
    inputs = full(subject.inputs)
    if len(inputs.causal_axes) != 2:
        raise NotApplicable("causal does not name queries and keys")
    axis = inputs.causal_axes[0]
    reference, found = subject.run(inputs), []
    size = inputs.size(axis)
    for count in sorted({1, size // 2, size - 1}):
        ends = {
            name: tensor.narrow(names.index(axis), size - count, count) if axis in names else tensor
            for name, tensor in reference.tensors.items()
            for names in [reference.axes[name]]
        }
        expected = Result(ends, reference.axes, reference.weights)
        few = last(inputs, axis, count)
        changed = subject.compare(expected, subject.run(few), few)
        found.append(changed.when(f"with the last {count} of {size} queries"))
    return worst_of(found)


def sight(subject: Subject) -> Deviation:
    """Every place of a sequence without padding changes some output; the share that does not."""
    inputs = full(subject.inputs)
    reference = subject.run(inputs, need_weights=False)
    places, unseen = 0, []
    for axis in inputs.time_axes:
        for place in range(inputs.size(axis)):
            keep = torch.ones_like(inputs.mask(axis))
            keep[:, place] = False
            places += 1
            generator = subject.generator()
            others = (refilled(inputs, [axis], {axis: keep}, generator) for _ in range(TRIES))
            results = (subject.run(other, need_weights=False) for other in others)
            if not any(subject.compare(reference, result, inputs).size for result in results):
                unseen.append(f"{axis}={place}")
    return Deviation(len(unseen) / places, f"nothing sees {', '.join(unseen)}" if unseen else "")


def looking(subject: Subject) -> Deviation:
    """Asking for the weights does not change the output."""
    if subject.inputs.weights is None:
        raise NotApplicable("no weights are declared")
    inputs = subject.inputs
    without = subject.run(inputs, need_weights=False)
    return subject.compare(without, subject.run(inputs, need_weights=True), inputs).when(
        "with weights"
    )


def weights_sum(subject: Subject) -> Deviation:
    """The weights of a real query that has something to look at sum to one."""
    found = []
    for name, names, weights, query, key in _looks(subject, subject.inputs):
        rows = query[..., 0] & key.any(-1)
        size = (weights.sum(-1) - 1).abs().nan_to_num(nan=0.0).masked_fill(~rows, 0.0)
        found.append(furthest(size, names[:-1], f"sum of {name}"))
    return worst_of(found)


def weights_sign(subject: Subject) -> Deviation:
    """No weight is negative."""
    found = []
    for name, names, weights, query, _ in _looks(subject, subject.inputs):
        size = (-weights).clamp_min(0).nan_to_num(nan=0.0).masked_fill(~query, 0.0)
        found.append(furthest(size, names, name))
    return worst_of(found)


def weights_on_padding(subject: Subject) -> Deviation:
    """No weight lies on padding, not even where there is nothing else."""
    _groups(subject.inputs)
    found = []
    for inputs, circumstance, refusal in _also_empty(subject):
        if refusal:
            continue
        for name, names, weights, query, key in _looks(subject, inputs):
            hidden = ~key & (query | ~key.any(-1, keepdim=True))
            size = weights.abs().nan_to_num(nan=0.0).masked_fill(~hidden, 0.0)
            found.append(furthest(size, names, name).when(circumstance))
    return worst_of(found)


def weights_on_future(subject: Subject) -> Deviation:
    """No weight lies on what comes later than its query."""
    inputs = subject.inputs
    if not inputs.causal_axes:
        raise NotApplicable("not declared causal")
    times, found = clock(inputs), []
    for name, names, weights, query, _ in _looks(subject, inputs):
        rows = [dim for dim, axis in enumerate(names[:-1]) if axis == inputs.causal_axes[0]]
        if not rows or names[-1] != inputs.causal_axes[-1]:
            continue
        key_time = times[names[-1]][0, : weights.shape[-1]]
        query_time = times[inputs.causal_axes[0]][0, : weights.shape[rows[-1]]]
        shape = [-1 if dim == rows[-1] else 1 for dim in range(weights.ndim)]
        later = (key_time > query_time.reshape(shape)) & query
        size = weights.abs().nan_to_num(nan=0.0).masked_fill(~later, 0.0)
        found.append(furthest(size, names, name))
    if not found:
        raise NotApplicable("no weights go from the causal axis to itself")
    return worst_of(found)


def _ways(inputs: Inputs) -> list[bool]:
    """To call without weights, and with them if there are any."""
    return [False] if inputs.weights is None else [False, True]


def _both(group: Names) -> str:
    return " and ".join(group)


def _groups(inputs: Inputs) -> list[Names]:
    if not inputs.groups():
        raise NotApplicable("no axis is declared padded")
    return inputs.groups()


def _also_empty(subject: Subject) -> Iterator[tuple[Inputs, str, str]]:
    """The inputs, then with one item empty; what that is in words; how the module refused it.

    A refusal is loud, so it is not one of the silent bugs.
    """
    yield subject.inputs, "", ""
    for axis, inputs in emptied(subject.inputs):
        refusal = ""
        try:
            for need_weights in _ways(inputs):
                subject.run(inputs, need_weights)
        except Exception as error:
            reason = str(error).partition("\n")[0]
            refusal = f"an empty {axis} is refused: {type(error).__name__}: {reason}"
        yield inputs, f"with an empty {axis}", refusal


def _looks(subject: Subject, inputs: Inputs) -> Iterator[tuple[str, Names, Tensor, Tensor, Tensor]]:
    """Name, axes and values of each weights, and where the query is real, and the key."""
    if inputs.weights is None:
        raise NotApplicable("no weights are declared")
    result = subject.run(inputs, need_weights=True)
    for name in result.weights:
        names, weights = result.axes[name], result.tensors[name].to(torch.float64)
        query = within(real(inputs), (*names[:-1], ""), weights.shape)
        in_key = names[-1:] * (names[-1] in inputs.time_axes)
        blank = tuple(axis if axis == "b" else "" for axis in names[:-1])
        key = within(real(inputs, in_key), (*blank, names[-1]), weights.shape)
        yield name, names, weights, query, key


def _pasts(inputs: Inputs, result: Result) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Each moment but the last, with the places of the causal axes that are not later."""
    if not inputs.causal_axes:
        raise NotApplicable("not declared causal")
    if not any(inputs.causal_axes[0] in result.axes[name] for name in result.outputs):
        raise ValueError(
            f"causal is {inputs.causal!r}, but the output's axes are {inputs.output!r}"
        )
    times = clock(inputs)
    for cut in range(max(inputs.size(axis) for axis in inputs.causal_axes) - 1):
        yield cut, {axis: time <= cut for axis, time in times.items()}


def _reachable(
    result: Result, leaves: dict[str, Tensor], inputs: Inputs, axes: Iterable[str]
) -> dict[str, Tensor]:
    if not any(output.requires_grad for output in result.outputs.values()):
        raise NotApplicable("the output carries no gradient")
    wanted = set(axes)
    having = {name: leaf for name, leaf in leaves.items() if wanted & set(inputs.names(name))}
    if not having:
        raise NotApplicable("gradients reach float tensors only")
    return having
