"""The inputs of a module under check, and the changes to them that must not matter."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from regard.errors import unknown

Names = tuple[str, ...]


@dataclass(frozen=True)
class Inputs:
    """The tensors that go into a module, and which of their axes are batch and time.

    Axes are written as names from left to right, with `...` for any number of others:
    `"b t w"`, `"b t ..."`, `"t b w"`. `b` is the batch, the names in `time` are time axes, and
    all others are features. Tensors with the same time axis have the same lengths. Every place
    holds a valid value, padding included: `check` chooses the lengths itself.
    """

    tensors: Mapping[str, Tensor]
    """What the module is called with, by name."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """The axes of each tensor; `"b t ..."` for those not named."""
    time: str = "t"
    """The names of the time axes, as in `"t s"`."""
    output: str | Mapping[str, str] = "b t ..."
    """The axes of the output, or of each output by name."""
    weights: str | Mapping[str, str] | None = None
    """The axes of the attention weights, the keys last; None: the module returns none."""
    causal: str | None = None
    """The time axis that must not see its future; `"q k"`: queries aligned to the keys' end."""
    padded: str | None = None
    """The time axes that may hold padding (on the right); None: all of them."""
    lengths: Mapping[str, Tensor] = field(default_factory=dict)
    """For each time axis the number of real positions of each item: [b], filled in by `check`."""

    def __post_init__(self) -> None:
        for name in self.axes:
            if name not in self.tensors:
                raise ValueError(unknown("tensor in axes", name, self.tensors))
        for axis in ("b", *self.time_axes):
            if axis not in self._sizes:
                raise ValueError(f"no tensor has the axis {axis!r}: name it in axes={{...}}")
        for axis in (*self.causal_axes, *self.padded_axes):
            if axis not in self.time_axes:
                raise ValueError(unknown("time axis", axis, self.time_axes))
        if self.causal_axes:
            self._check_causal()

    def _check_causal(self) -> None:
        if len(self.causal_axes) > 2:
            raise ValueError(f"causal names one axis or two (queries, keys), not {self.causal!r}")
        query, key = self.causal_axes[0], self.causal_axes[-1]
        if self.size(query) > self.size(key):
            raise ValueError(
                f"causal is {self.causal!r} (queries, keys), but there are more queries "
                f"({self.size(query)}) than keys ({self.size(key)})"
            )
        if self.padded is not None and (query in self.padded_axes) != (key in self.padded_axes):
            raise ValueError(
                f"{query!r} and {key!r} are causal together, so they are padded together: "
                f"padded is {self.padded!r}"
            )

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise ValueError(unknown("tensor", name, self.tensors))
        return self.tensors[name]

    def mask(self, axis: str = "t") -> Bool[Tensor, "b t"]:
        """The real positions of a time axis: True = real, False = padding."""
        if axis not in self.time_axes:
            raise ValueError(unknown("time axis", axis, self.time_axes))
        lengths = self.lengths[axis]
        return torch.arange(self.size(axis), device=lengths.device) < lengths[:, None]

    def size(self, axis: str) -> int:
        """The number of places of an axis, padding included."""
        if axis not in self._sizes:
            raise ValueError(unknown("axis", axis, self._sizes))
        return self._sizes[axis]

    @cached_property
    def _sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for name, tensor in self.tensors.items():
            for axis, size in zip(self.names(name), tensor.shape, strict=True):
                if axis == "b" or axis in self.time_axes:
                    known = sizes.setdefault(axis, size)
                    if size != known:
                        raise ValueError(
                            f"axis {axis!r} has {size} positions in {name!r} of shape "
                            f"{tuple(tensor.shape)}, but {known} before"
                        )
        return sizes

    def names(self, name: str) -> Names:
        """The names of a tensor's axes, one for each, empty for those under `...`."""
        return axis_names(self.axes.get(name, "b t ..."), self.tensors[name], name)

    @cached_property
    def time_axes(self) -> Names:
        """The names of the time axes."""
        return tuple(self.time.split())

    @cached_property
    def causal_axes(self) -> Names:
        """The names of the causal axis, or of the queries' and the keys'."""
        return tuple((self.causal or "").split())

    @cached_property
    def padded_axes(self) -> Names:
        """The names of the time axes that may hold padding."""
        return self.time_axes if self.padded is None else tuple(self.padded.split())

    def groups(self) -> list[Names]:
        """The padded axes, one by one; those that are causal together stay together."""
        padded = self.padded_axes
        together = tuple(axis for axis in padded if axis in self.causal_axes)
        groups: list[Names] = [(axis,) for axis in padded if axis not in together]
        return [together, *groups] if together else groups

    def map(self, change: Callable[[str, Tensor, Names], Tensor], **fields: Any) -> "Inputs":
        """The same inputs with every tensor changed."""
        tensors = {name: change(name, x, self.names(name)) for name, x in self.tensors.items()}
        return replace(self, tensors=tensors, **fields)


def axis_names(axes: str, tensor: Tensor, what: str) -> Names:
    """The names in `"b t ..."` laid over a tensor's axes."""
    names = axes.split()
    if "..." in names:
        at = names.index("...")
        names[at : at + 1] = [""] * (tensor.ndim - len(names) + 1)
    if len(names) != tensor.ndim or "..." in names:
        raise ValueError(f"{what!r} has shape {tuple(tensor.shape)}, but its axes are {axes!r}")
    return tuple(names)


def mask_within(
    allowed: Mapping[str, Tensor], names: Names, shape: torch.Size
) -> Bool[Tensor, "..."]:
    """Where all axes in `allowed` ([b, size] of bool) allow it, as a mask of the given shape."""
    device = next((mask.device for mask in allowed.values()), None)
    inside = torch.ones(shape, dtype=torch.bool, device=device)
    for dim, name in enumerate(names):
        if name not in allowed:
            continue
        mask = allowed[name][:, : shape[dim]]
        view = [1] * len(shape)
        view[dim] = shape[dim]
        if "b" in names:
            batch = names.index("b")
            view[batch] = shape[batch]
            mask = mask if batch < dim else mask.T
        else:
            mask = mask.any(0)
        inside = inside & mask.reshape(view)
    return inside


def real(inputs: Inputs, axes: Iterable[str] | None = None) -> dict[str, Tensor]:
    """The real positions of some time axes, of all if none are named."""
    return {axis: inputs.mask(axis) for axis in (inputs.time_axes if axes is None else axes)}


def causal_times(inputs: Inputs) -> dict[str, Tensor]:
    """The time of each place of the causal axes, [b, size]; queries and keys end together."""
    end = max(inputs.size(axis) for axis in inputs.causal_axes)
    times = {}
    for axis in inputs.causal_axes:
        lengths = inputs.lengths[axis]
        time = torch.arange(end - inputs.size(axis), end, device=lengths.device)
        times[axis] = time.expand(len(lengths), -1)
    return times


def refill(
    inputs: Inputs, axes: Collection[str], keep: Mapping[str, Tensor], generator: torch.Generator
) -> Inputs:
    """Other values outside the places to keep, in the tensors that have one of the axes."""
    return inputs.map(
        lambda _, tensor, names: (
            tensor
            if set(names).isdisjoint(axes)
            else torch.where(
                mask_within(keep, names, tensor.shape),
                tensor,
                _shuffle(
                    tensor, [axis == "b" or axis in inputs.time_axes for axis in names], generator
                ),
            )
        )
    )


def _shuffle(tensor: Tensor, places: list[bool], generator: torch.Generator) -> Tensor:
    """Each place filled from another one, so that its value differs but is as valid as before."""
    front = [dim for dim, is_place in enumerate(places) if is_place]
    back = list(range(len(front)))
    moved = tensor.movedim(front, back)
    flat = moved.reshape(math.prod(moved.shape[: len(front)]), -1)
    step = torch.randint(1, len(flat), (len(flat),), generator=generator)
    other = flat[((torch.arange(len(flat)) + step) % len(flat)).to(tensor.device)]
    return other.reshape(moved.shape).movedim(back, front)


def lengthen_padding(
    inputs: Inputs, axes: Collection[str], extra: int, generator: torch.Generator
) -> Inputs:
    """The same inputs with `extra` more places of padding on each of the axes."""
    places = {}
    for axis in axes:
        more = torch.randint(inputs.size(axis), (extra,), generator=generator)
        places[axis] = torch.cat([torch.arange(inputs.size(axis)), more])
    return _select_places(inputs, places)


def _select_places(inputs: Inputs, places: Mapping[str, Tensor]) -> Inputs:
    """The same inputs with some places of some axes, in the order given."""
    return inputs.map(lambda _, tensor, names: _select(tensor, names, places))


def _select(tensor: Tensor, names: Names, places: Mapping[str, Tensor]) -> Tensor:
    for dim, name in enumerate(names):
        if name in places:
            tensor = tensor.index_select(dim, places[name].to(tensor.device))
    return tensor


def single_item(inputs: Inputs, item: int) -> Inputs:
    """One item of the batch, alone."""
    lengths = {axis: known[item : item + 1] for axis, known in inputs.lengths.items()}
    return replace(_select_places(inputs, {"b": torch.tensor([item])}), lengths=lengths)


def trim_padding(inputs: Inputs, axes: Iterable[str]) -> Inputs:
    """A single item without its padding on the axes."""
    return _select_places(inputs, {axis: torch.arange(int(inputs.lengths[axis])) for axis in axes})


def without_padding(inputs: Inputs) -> Inputs:
    """The same inputs without padding."""
    sizes = {axis: torch.full_like(n, inputs.size(axis)) for axis, n in inputs.lengths.items()}
    return replace(inputs, lengths=sizes)


def last_places(inputs: Inputs, axis: str, count: int) -> Inputs:
    """The last places of an axis without padding."""
    size = inputs.size(axis)
    return without_padding(_select_places(inputs, {axis: torch.arange(size - count, size)}))


def with_empty_item(inputs: Inputs) -> Iterator[tuple[str, Inputs]]:
    """The same inputs with one item of length 0, on each padded axis in turn."""
    for group in inputs.groups():
        lengths = {axis: known.clone() for axis, known in inputs.lengths.items()}
        for axis in group:
            lengths[axis][-1] = 0
        yield " and ".join(group), replace(inputs, lengths=lengths)


def copy_inputs(inputs: Inputs) -> Inputs:
    """The same inputs in memory of their own."""
    lengths = {axis: known.clone() for axis, known in inputs.lengths.items()}
    return inputs.map(lambda _, tensor, __: tensor.clone(), lengths=lengths)
