"""The module under check: how it is called, what came out, and the state it is put back into."""

import inspect
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from regard.check.inputs import Inputs, Names, axis_names, copy_inputs, mask_within, real


@dataclass(frozen=True)
class Result:
    """The results of a call: outputs and weights by name, with the names of their axes."""

    tensors: dict[str, Tensor]
    axes: dict[str, Names]
    weights: frozenset[str]

    def item(self, item: int) -> "Result":
        """One item of the batch."""
        parts = {
            name: tensor.narrow(self.axes[name].index("b"), item, 1)
            for name, tensor in self.tensors.items()
            if "b" in self.axes[name]
        }
        return Result(parts, self.axes, self.weights)

    @property
    def outputs(self) -> dict[str, Tensor]:
        """Those that are not weights."""
        return {name: x for name, x in self.tensors.items() if name not in self.weights}


class Deviation(NamedTuple):
    """How far something is from what it should be, and where it is farthest."""

    size: float = 0.0
    where: str = ""

    def when(self, circumstance: str) -> "Deviation":
        """The same, with the circumstance added to the place."""
        if not self.where or not circumstance:
            return self
        return self._replace(where=f"{self.where} {circumstance}")


Call = Callable[[Any, Inputs, bool], Any]


def call_by_signature(module: Callable[..., Any], inputs: Inputs, need_weights: bool) -> Any:
    """Call with the tensors in order, and by name with whichever of these the signature has.

    `need_weights`; for a time axis `t`, `t_lengths` [b] and `t_mask` [b t] (True = real); and
    when there is only one time axis, `lengths` and `mask`.
    """
    extras: dict[str, Any] = {"need_weights": need_weights}
    for axis in inputs.time_axes:
        extras |= {f"{axis}_lengths": inputs.lengths[axis], f"{axis}_mask": inputs.mask(axis)}
    if len(inputs.time_axes) == 1:
        (axis,) = inputs.time_axes
        extras |= {"lengths": inputs.lengths[axis], "mask": inputs.mask(axis)}
    function = module.forward if isinstance(module, nn.Module) else module
    accepted = inspect.signature(function).parameters
    by_name = {name: value for name, value in extras.items() if name in accepted}
    return module(*inputs.tensors.values(), **by_name)


class Subject:
    """A module, the adapter that calls it, and the inputs; every call starts from one state."""

    def __init__(
        self, module: Callable[..., Any], inputs: Inputs, call: Call, seed: int, training: bool
    ) -> None:
        self.module, self.inputs, self.call = module, inputs, call
        self.seed, self.training = seed, training
        self._state = _State(module)

    def generator(self) -> torch.Generator:
        """A fresh random generator, the same for every probe."""
        return torch.Generator().manual_seed(self.seed)

    def parameters(self) -> dict[str, Tensor]:
        """The parameters that take gradients, by name."""
        if not isinstance(self.module, nn.Module):
            return {}
        named = self.module.named_parameters()
        return {f"parameter {name}": x for name, x in named if x.requires_grad}

    def run(
        self,
        inputs: Inputs,
        need_weights: bool | None = None,
        *,
        grad: bool = False,
        fresh: bool = True,
        copy: bool = True,
    ) -> Result:
        """One call on a copy of the inputs; `fresh` resets module and random state first."""
        if need_weights is None:
            need_weights = inputs.weights is not None
        if fresh:
            self.reset()
        with torch.set_grad_enabled(grad):
            returned = self.call(self.module, copy_inputs(inputs) if copy else inputs, need_weights)
        return _result(returned, inputs, need_weights)

    def record(self, inputs: Inputs) -> tuple[Result, dict[str, Tensor]]:
        """A call with autograd on, and the float tensors that gradients can reach."""
        given = inputs.map(
            lambda _, x, __: x.detach().clone().requires_grad_(x.is_floating_point())
        )
        leaves = {name: tensor for name, tensor in given.tensors.items() if tensor.requires_grad}
        return self.run(given, grad=True), leaves

    def pull(
        self,
        result: Result,
        inputs: Inputs,
        targets: Mapping[str, Tensor],
        until: Mapping[str, Tensor] | None = None,
    ) -> dict[str, Tensor]:
        """The gradients of a random mixture of the outputs' real positions, or of some of them."""
        generator = self.generator()
        outputs, pulls = [], []
        for name, output in result.outputs.items():
            names = result.axes[name]
            if not output.requires_grad or (until is not None and set(names).isdisjoint(until)):
                continue
            where = mask_within(real(inputs), names, output.shape)
            if until is not None:
                where = where & mask_within(until, names, output.shape)
            outputs.append(output)
            pulls.append(torch.randn(output.shape, generator=generator).to(output) * where)
        if not outputs or not targets:
            return {}
        gradients = torch.autograd.grad(
            outputs, list(targets.values()), pulls, retain_graph=True, allow_unused=True
        )
        named = zip(targets, gradients, strict=True)
        return {name: gradient.detach() for name, gradient in named if gradient is not None}

    @cached_property
    def reference(self) -> Result:
        """The result for the unchanged inputs, with weights if there are any."""
        return self.run(self.inputs)

    @cached_property
    def _scales(self) -> dict[str, float]:
        scales = {}
        for name, tensor in self.reference.tensors.items():
            where = mask_within(real(self.inputs), self.reference.axes[name], tensor.shape)
            scales[name] = scale(tensor[where].to(torch.float64))
        return scales

    def compare(
        self,
        expected: Result,
        actual: Result,
        inputs: Inputs,
        until: Mapping[str, Tensor] | None = None,
        item: int = 0,
    ) -> Deviation:
        """The largest change at real positions, |a - b| / (|a| + the median size of a).

        `until` narrows the places (of weights: the queries); `item` is the first in the batch.
        """
        deviations = []
        for name in [name for name in expected.tensors if name in actual.tensors]:
            names, a, b = expected.axes[name], expected.tensors[name], actual.tensors[name]
            for dim, axis in enumerate(names):
                if axis in inputs.time_axes:
                    size = min(a.shape[dim], b.shape[dim])
                    a, b = a.narrow(dim, 0, size), b.narrow(dim, 0, size)
            if a.shape != b.shape:
                raise ValueError(
                    f"{name!r} had shape {tuple(expected.tensors[name].shape)}, then "
                    f"{tuple(actual.tensors[name].shape)}: name the axes that are time"
                )
            a, b = a.detach().to(torch.float64), b.detach().to(torch.float64)
            where = mask_within(real(inputs), names, a.shape)
            if until is not None:
                rows = (*names[:-1], "") if name in expected.weights else names
                if set(rows).isdisjoint(until):
                    continue
                where = where & mask_within(until, rows, a.shape)
            same = (a == b) | (a.isnan() & b.isnan()) | ~where
            distance = ((a - b).abs() / (a.abs() + self._scales[name])).nan_to_num(nan=math.inf)
            deviations.append(largest_deviation(distance.masked_fill(same, 0.0), names, name, item))
        return worst_of(deviations)

    def reset(self) -> None:
        """Reset module and random state to where every call starts."""
        # Not torch.manual_seed, which would seed devices that are not in use as well.
        torch.default_generator.manual_seed(self.seed)
        for index in self._devices():
            torch.cuda.default_generators[index].manual_seed(self.seed)
        self._state.restore()
        if isinstance(self.module, nn.Module):
            self.module.train(self.training)

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Leave module and global random state as they were found."""
        with torch.random.fork_rng(devices=self._devices()):
            try:
                yield
            finally:
                self._state.restore()

    def _devices(self) -> list[int]:
        tensors = [*self.inputs.tensors.values(), *self.parameters().values()]
        return sorted({x.device.index for x in tensors if x.device.type == "cuda"})


class _State:
    """All attributes of all submodules, rebound and refilled on `restore`."""

    def __init__(self, module: Any) -> None:
        self._attributes: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self._containers: list[tuple[Any, Any]] = []
        self._tensors: dict[int, tuple[Tensor, Tensor]] = {}
        for part in module.modules() if isinstance(module, nn.Module) else ():
            attributes = vars(part)
            self._attributes.append((attributes, dict(attributes)))
            for value in attributes.values():
                self._keep(value)
                if type(value) in (dict, OrderedDict, list, set):
                    self._containers.append((value, value.copy()))
                    for member in value.values() if isinstance(value, dict) else value:
                        self._keep(member)

    def _keep(self, value: Any) -> None:
        if is_lazy(value):
            raise ValueError("the module has lazy parameters: call it once before the check")
        if isinstance(value, Tensor):
            self._tensors[id(value)] = (value, value.detach().clone())

    def restore(self) -> None:
        for attributes, kept in self._attributes:
            attributes.clear()
            attributes.update(kept)
        for container, kept in self._containers:
            container.clear()
            container.extend(kept) if type(container) is list else container.update(kept)
        with torch.no_grad():
            for tensor, value in self._tensors.values():
                # Neither batch norm nor .data counts up a tensor's version when writing to it.
                if not torch.equal(tensor, value):
                    tensor.copy_(value)


def _result(returned: Any, inputs: Inputs, need_weights: bool) -> Result:
    outputs, weights = returned, None
    if hasattr(returned, "output") and hasattr(returned, "weights"):
        outputs, weights = returned.output, returned.weights
    elif isinstance(returned, tuple | list):
        outputs, weights = returned[0], returned[1] if len(returned) > 1 else None
    named_outputs = _by_name(outputs, inputs.output, "output", inputs)
    if inputs.weights is None or not need_weights:
        return Result(*named_outputs, frozenset())
    if weights is None:
        raise ValueError(
            f"weights are declared with the axes {inputs.weights!r}, but the call returned none: "
            "return (output, weights)"
        )
    named_weights = _by_name(weights, inputs.weights, "weights", inputs)
    twice = set(named_outputs[0]) & set(named_weights[0])
    if twice:
        raise ValueError(f"an output and a weight are both called {min(twice)!r}: rename one")
    return Result(
        named_outputs[0] | named_weights[0],
        named_outputs[1] | named_weights[1],
        frozenset(named_weights[0]),
    )


def _by_name(
    value: Any, axes: str | Mapping[str, str], what: str, inputs: Inputs
) -> tuple[dict[str, Tensor], dict[str, Names]]:
    expected = {what: axes} if isinstance(axes, str) else axes
    values = {what: value} if isinstance(axes, str) else value
    tensors: dict[str, Tensor] = {}
    names: dict[str, Names] = {}
    for name, spec in expected.items():
        tensor = values.get(name) if isinstance(values, Mapping) else None
        if not isinstance(tensor, Tensor):
            raise ValueError(
                f"{name!r} should be a tensor with the axes {spec!r}, "
                f"but the call returned {type(tensor if tensor is not None else value).__name__}"
            )
        # A copy, since the module may return memory that it overwrites later.
        tensors[name], names[name] = tensor.clone(), axis_names(spec, tensor, name)
        for axis, size in zip(names[name], tensor.shape, strict=True):
            if axis != "b" and axis not in inputs.time_axes:
                continue
            most = inputs.size(axis)
            # Packed sequences come back truncated to the longest length.
            least = most if axis == "b" else int(inputs.lengths[axis].max())
            if not least <= size <= most:
                raise ValueError(
                    f"{name!r} of shape {tuple(tensor.shape)} has the axes {spec!r}, "
                    f"but {axis!r} has {most} positions in the inputs"
                )
    return tensors, names


def worst_of(deviations: Iterable[Deviation]) -> Deviation:
    """The largest of some deviations."""
    return max(deviations, key=lambda deviation: deviation.size, default=Deviation())


def largest_deviation(size: Tensor, names: Names, what: str, item: int = 0) -> Deviation:
    """The largest entry of a tensor of deviations, with its place in words; `item` comes first."""
    if size.numel() == 0 or not size.any():
        return Deviation()
    at = int(size.argmax())
    index = [int(i) for i in torch.unravel_index(torch.tensor(at), size.shape)]
    named = [
        f"{axis}={i + item if axis == 'b' else i}"
        for axis, i in zip(names, index, strict=True)
        if axis not in ("", "_")
    ]
    place = ", ".join(named)
    return Deviation(float(size.flatten()[at]), f"{what} at {place}" if place else what)


def scale(values: Tensor) -> float:
    """The median size of the values that are finite and not zero."""
    sizes = values.abs()
    sizes = sizes[sizes.isfinite() & (sizes > 0)]
    return float(sizes.median()) if sizes.numel() else 1.0


def nan_in(result: Result, inputs: Inputs, *, everywhere: bool) -> Deviation:
    """NaN in a result, at real positions or everywhere."""
    deviations = []
    for name, tensor in result.tensors.items():
        bad = tensor.isnan()
        if not everywhere:
            bad = bad & mask_within(real(inputs), result.axes[name], tensor.shape)
        size = torch.zeros(bad.shape).masked_fill(bad.cpu(), math.inf)
        deviations.append(largest_deviation(size, result.axes[name], f"NaN in {name}"))
    return worst_of(deviations)
