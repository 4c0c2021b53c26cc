"""Probes, one for each property that attention code silently breaks.

A probe changes something that must not matter, calls the module again, and measures how far the
result changed.
"""

import math
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from regard.check.harness import (
    Deviation,
    Result,
    Subject,
    largest_deviation,
    nan_in,
    scale,
    worst_of,
)
from regard.check.inputs import (
    Inputs,
    Names,
    causal_times,
    copy_inputs,
    last_places,
    lengthen_padding,
    mask_within,
    real,
    refill,
    single_item,
    trim_padding,
    with_empty_item,
    without_padding,
)

EXTRA_PADDING = 3
"""Places of padding that are added to see whether their number matters."""
CONTENT_TRIES = 3
"""How often other content is tried before a position counts as never seen."""


class NotApplicable(Exception):  # noqa: N818 (a result, not an error)
    """The property has no meaning for these inputs; the message says why."""


def repeat(subject: Subject) -> Deviation:
    """A repeated call gives the same result, whatever was called between."""
    keep_none = {axis: torch.zeros_like(mask) for axis, mask in real(subject.inputs).items()}
    inputs = subject.inputs
    other = refill(inputs, inputs.time_axes, keep_none, subject.generator())
    first = subject.run(inputs)
    subject.run(other, fresh=False)
    again = subject.run(inputs, fresh=False)
    return subject.compare(first, again, inputs).when("in a later call")


def inputs_unchanged(subject: Subject) -> Deviation:
    """The tensors that go in are not written to."""
    deviations = [Deviation()]
    for need_weights in _need_weights(subject.inputs):
        given = copy_inputs(subject.inputs)
        subject.run(given, need_weights, copy=False)
        for name, after in [*given.tensors.items(), *given.lengths.items()]:
            before = subject.inputs.tensors.get(name, subject.inputs.lengths.get(name))
            if before is not None and not torch.equal(before, after):
                deviations.append(Deviation(math.inf, f"{name} was written to"))
    return worst_of(deviations)


def autograd(subject: Subject) -> Deviation:
    """The result is the same with autograd on and off."""
    recorded, _ = subject.record(subject.inputs)
    return subject.compare(subject.reference, recorded, subject.inputs).when("with autograd on")


def finite(subject: Subject) -> Deviation:
    """No NaN at a real place."""
    inputs = subject.inputs
    return worst_of(
        nan_in(result, inputs, everywhere=False)
        for result in (subject.run(inputs, need_weights) for need_weights in _need_weights(inputs))
    )


def empty_rows(subject: Subject) -> Deviation:
    """No NaN at any place, nor in a gradient, where a row is fully masked."""
    deviations = []
    for inputs, circumstance, refusal in _also_empty(subject):
        if refusal:
            deviations.append(Deviation(0.0, refusal))
            continue
        deviations.extend(
            nan_in(subject.run(inputs, need_weights), inputs, everywhere=True).when(circumstance)
            for need_weights in _need_weights(inputs)
        )
        result, leaves = subject.record(inputs)
        deviations.append(nan_in(result, inputs, everywhere=True).when(circumstance))
        gradients = subject.pull(result, inputs, leaves | subject.parameters())
        deviations.extend(
            Deviation(math.inf, f"gradient of {name}").when(circumstance)
            for name, gradient in gradients.items()
            if not gradient.isfinite().all()
        )
    return worst_of(sorted(deviations, key=lambda deviation: not deviation.where))


def batch(subject: Subject) -> Deviation:
    """An item alone gives the same result as in the batch."""
    deviations = []
    for item in range(subject.inputs.size("b")):
        alone = single_item(subject.inputs, item)
        expected = subject.reference.item(item)
        deviations.append(
            subject.compare(expected, subject.run(alone), alone, item=item).when("alone")
        )
    return worst_of(deviations)


def padding_content(subject: Subject) -> Deviation:
    """What is in the padding changes nothing at real positions, not even of an empty item."""
    groups, deviations = _groups(subject.inputs), []
    for inputs, circumstance, refusal in _also_empty(subject):
        if refusal:
            continue
        expected = subject.run(inputs)
        for group in groups:
            other = subject.run(refill(inputs, group, real(inputs, group), subject.generator()))
            if circumstance:
                empty = inputs.size("b") - 1
                parts = expected.item(empty), other.item(empty), single_item(inputs, empty)
                changed = subject.compare(*parts, item=empty)
            else:
                changed = subject.compare(expected, other, inputs)
            done = f"after other padding on {_join(group)}"
            deviations.append(changed.when(done).when(circumstance))
    return worst_of(deviations)


def padding_amount(subject: Subject) -> Deviation:
    """More padding, or none, changes nothing at real positions."""
    inputs, deviations = subject.inputs, []
    for group in _groups(inputs):
        longer = subject.run(lengthen_padding(inputs, group, EXTRA_PADDING, subject.generator()))
        changed = subject.compare(subject.reference, longer, inputs)
        deviations.append(changed.when(f"after {EXTRA_PADDING} more positions on {_join(group)}"))
    for item in range(inputs.size("b")):
        alone = single_item(inputs, item)
        expected = subject.run(alone)
        for group in inputs.groups():
            try:
                bare = subject.run(trim_padding(alone, group))
            except Exception:
                continue  # a module may refuse so short a sequence with an error
            changed = subject.compare(expected, bare, alone, item=item)
            deviations.append(changed.when(f"alone and without padding on {_join(group)}"))
    return worst_of(deviations)


def padding_gradient(subject: Subject) -> Deviation:
    """No gradient flows from real positions of the output into padding."""
    inputs = subject.inputs
    axes = {axis for group in _groups(inputs) for axis in group}
    result, leaves = subject.record(inputs)
    leaves = _reachable(result, leaves, inputs, axes)
    deviations = []
    for name, gradient in subject.pull(result, inputs, leaves).items():
        inside = mask_within(real(inputs), inputs.names(name), gradient.shape)
        size = gradient.abs().nan_to_num(nan=0.0).masked_fill(inside, 0.0)
        size = size / scale(gradient[inside])
        deviations.append(largest_deviation(size, inputs.names(name), f"gradient of {name}"))
    return worst_of(deviations)


def future(subject: Subject) -> Deviation:
    """What comes later changes nothing before it."""
    inputs = subject.inputs
    deviations = []
    for cut, past in _pasts(inputs, subject.reference):
        later = {axis: past[axis] | ~inputs.mask(axis) for axis in past}
        other = refill(inputs, inputs.causal_axes, later, subject.generator())
        changed = subject.compare(subject.reference, subject.run(other), inputs, past)
        deviations.append(changed.when(f"after other content later than {cut}"))
    return worst_of(deviations)


def future_gradient(subject: Subject) -> Deviation:
    """No gradient flows from an output into what comes later."""
    inputs = subject.inputs
    result, leaves = subject.record(inputs)
    pasts = list(_pasts(inputs, result))
    leaves = _reachable(result, leaves, inputs, inputs.causal_axes)
    deviations = []
    for cut, past in pasts:
        for name, gradient in subject.pull(result, inputs, leaves, past).items():
            names = inputs.names(name)
            earlier = mask_within(past, names, gradient.shape)
            later = mask_within(real(inputs), names, gradient.shape) & ~earlier
            size = gradient.abs().nan_to_num(nan=0.0).masked_fill(~later, 0.0)
            size = size / scale(gradient[earlier])
            worst = largest_deviation(size, names, f"gradient of {name}")
            deviations.append(worst.when(f"from outputs up to {cut}"))
    return worst_of(deviations)


def last_queries(subject: Subject) -> Deviation:
    """The last queries alone, over all keys, give the same result as among all queries."""
    inputs = without_padding(subject.inputs)
    if len(inputs.causal_axes) != 2:
        raise NotApplicable("causal does not name queries and keys")
    axis = inputs.causal_axes[0]
    reference, deviations = subject.run(inputs), []
    size = inputs.size(axis)
    for count in sorted({1, size // 2, size - 1}):
        ends = {
            name: tensor.narrow(names.index(axis), size - count, count) if axis in names else tensor
            for name, tensor in reference.tensors.items()
            for names in [reference.axes[name]]
        }
        expected = Result(ends, reference.axes, reference.weights)
        few = last_places(inputs, axis, count)
        changed = subject.compare(expected, subject.run(few), few)
        deviations.append(changed.when(f"with the last {count} of {size} queries"))
    return worst_of(deviations)


def receptive_field(subject: Subject) -> Deviation:
    """Every place of a sequence without padding changes some output; the share that does not."""
    inputs = without_padding(subject.inputs)
    reference = subject.run(inputs, need_weights=False)
    places, unseen = 0, []
    for axis in inputs.time_axes:
        for place in range(inputs.size(axis)):
            keep = torch.ones_like(inputs.mask(axis))
            keep[:, place] = False
            places += 1
            generator = subject.generator()
            others = (refill(inputs, [axis], {axis: keep}, generator) for _ in range(CONTENT_TRIES))
            results = (subject.run(other, need_weights=False) for other in others)
            if not any(subject.compare(reference, result, inputs).size for result in results):
                unseen.append(f"{axis}={place}")
    return Deviation(len(unseen) / places, f"nothing sees {', '.join(unseen)}" if unseen else "")


def with_weights(subject: Subject) -> Deviation:
    """Asking for the weights does not change the output."""
    if subject.inputs.weights is None:
        raise NotApplicable("no weights are declared")
    inputs = subject.inputs
    without = subject.run(inputs, need_weights=False)
    return subject.compare(without, subject.run(inputs, need_weights=True), inputs).when(
        "with weights"
    )


def weights_sum(subject: Subject) -> Deviation:
    """The weights of a real query that is not fully masked sum to one."""
    deviations = []
    for name, names, weights, query, key in _weights_of(subject, subject.inputs):
        rows = query[..., 0] & key.any(-1)
        size = (weights.sum(-1) - 1).abs().nan_to_num(nan=0.0).masked_fill(~rows, 0.0)
        deviations.append(largest_deviation(size, names[:-1], f"sum of {name}"))
    return worst_of(deviations)


def weights_sign(subject: Subject) -> Deviation:
    """No weight is negative."""
    deviations = []
    for name, names, weights, query, _ in _weights_of(subject, subject.inputs):
        size = (-weights).clamp_min(0).nan_to_num(nan=0.0).masked_fill(~query, 0.0)
        deviations.append(largest_deviation(size, names, name))
    return worst_of(deviations)


def weights_on_padding(subject: Subject) -> Deviation:
    """No weight lies on padding, not even where there is nothing else."""
    _groups(subject.inputs)
    deviations = []
    for inputs, circumstance, refusal in _also_empty(subject):
        if refusal:
            continue
        for name, names, weights, query, key in _weights_of(subject, inputs):
            hidden = ~key & (query | ~key.any(-1, keepdim=True))
            size = weights.abs().nan_to_num(nan=0.0).masked_fill(~hidden, 0.0)
            deviations.append(largest_deviation(size, names, name).when(circumstance))
    return worst_of(deviations)


def weights_on_future(subject: Subject) -> Deviation:
    """No weight lies on what comes later than its query."""
    inputs = subject.inputs
    if not inputs.causal_axes:
        raise NotApplicable("not declared causal")
    times, deviations = causal_times(inputs), []
    for name, names, weights, query, _ in _weights_of(subject, inputs):
        rows = [dim for dim, axis in enumerate(names[:-1]) if axis == inputs.causal_axes[0]]
        if not rows or names[-1] != inputs.causal_axes[-1]:
            continue
        key_time = times[names[-1]][0, : weights.shape[-1]]
        query_time = times[inputs.causal_axes[0]][0, : weights.shape[rows[-1]]]
        shape = [-1 if dim == rows[-1] else 1 for dim in range(weights.ndim)]
        later = (key_time > query_time.reshape(shape)) & query
        size = weights.abs().nan_to_num(nan=0.0).masked_fill(~later, 0.0)
        deviations.append(largest_deviation(size, names, name))
    if not deviations:
        raise NotApplicable("no weights go from the causal axis to itself")
    return worst_of(deviations)


def _need_weights(inputs: Inputs) -> list[bool]:
    """The values of `need_weights` to call with: False, and True if there are weights."""
    return [False] if inputs.weights is None else [False, True]


def _join(group: Names) -> str:
    return " and ".join(group)


def _groups(inputs: Inputs) -> list[Names]:
    if not inputs.groups():
        raise NotApplicable("no axis is declared padded")
    return inputs.groups()


def _also_empty(subject: Subject) -> Iterator[tuple[Inputs, str, str]]:
    """The inputs as they are, then with one item empty: (inputs, circumstance, refusal).

    `refusal` is the error with which the module refused an empty item: an error is not one of the
    silent bugs that a probe searches for.
    """
    yield subject.inputs, "", ""
    for axis, inputs in with_empty_item(subject.inputs):
        refusal = ""
        try:
            for need_weights in _need_weights(inputs):
                subject.run(inputs, need_weights)
        except Exception as error:
            reason = str(error).partition("\n")[0]
            refusal = f"an empty {axis} is refused: {type(error).__name__}: {reason}"
        yield inputs, f"with an empty {axis}", refusal


def _weights_of(
    subject: Subject, inputs: Inputs
) -> Iterator[tuple[str, Names, Tensor, Tensor, Tensor]]:
    """Name, axes and values of all attention weights, and masks of real queries and real keys."""
    if inputs.weights is None:
        raise NotApplicable("no weights are declared")
    result = subject.run(inputs, need_weights=True)
    for name in result.weights:
        names, weights = result.axes[name], result.tensors[name].to(torch.float64)
        query = mask_within(real(inputs), (*names[:-1], ""), weights.shape)
        in_key = names[-1:] * (names[-1] in inputs.time_axes)
        blank = tuple(axis if axis == "b" else "" for axis in names[:-1])
        key = mask_within(real(inputs, in_key), (*blank, names[-1]), weights.shape)
        yield name, names, weights, query, key


def _pasts(inputs: Inputs, result: Result) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """Each time but the last, with the places of the causal axes that are not later."""
    if not inputs.causal_axes:
        raise NotApplicable("not declared causal")
    if not any(inputs.causal_axes[0] in result.axes[name] for name in result.outputs):
        raise ValueError(
            f"causal is {inputs.causal!r}, but the output's axes are {inputs.output!r}"
        )
    times = causal_times(inputs)
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
