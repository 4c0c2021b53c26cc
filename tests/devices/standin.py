"""A device for tests: `standin`, whose tensors refuse to mix with those of the CPU.

It is registered as torch's `privateuse1` backend, so torch takes it for an accelerator: it has a
random state of its own, and the backward pass runs in another thread. A tensor of it wraps one on
the CPU that nothing else can reach. Every operation is computed on the wrapped tensors, after a
check that all are on one device, as on CUDA. It is stricter in two points: CUDA moves indices from
the CPU by itself, here they are refused; and there are no numbers of 64 bits, as on MPS.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "standin"
aten: Any = torch.ops.aten

LENGTHS_ON_CPU = (aten._pack_padded_sequence.default, aten._pad_packed_sequence.default)
"""Operations that want lengths on the CPU, whatever the device."""
BETWEEN_DEVICES = (aten.copy_.default, aten._to_copy.default)


class StandinTensor(Tensor):
    """A tensor on the device `standin`."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "StandinTensor":
        """The wrapper of a tensor on the CPU."""
        wrapper = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=torch.device(NAME, 0),
        )
        wrapper.inner = inner
        made: StandinTensor = wrapper
        return made

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["inner"], None  # so that `Module.to` keeps parameters that are tied together

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], *rest: Any) -> "StandinTensor":
        return StandinTensor(inner["inner"])

    def __repr__(self, **options: Any) -> str:
        return f"{NAME}({self.inner!r})"

    def tolist(self) -> Any:
        return self.inner.tolist()  # torch's own refuses subclasses

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        return _compute(function, arguments, options or {})


def _compute(function: Any, arguments: Any, options: dict[str, Any]) -> Any:
    """An operation on tensors of the device; what it returns is on the device too."""
    operands = [part for part in tree_leaves((arguments, options)) if isinstance(part, Tensor)]
    _check_devices(function, operands)
    here = torch.device(options.get("device") or NAME).type == NAME
    if here and any(part is torch.float64 for part in tree_leaves((arguments, options))):
        raise TypeError(f"{function}: there is no float64 on {NAME}")
    wrappers = {id(part.inner): part for part in operands if isinstance(part, StandinTensor)}
    inner_arguments, inner_options = tree_map(_unwrap, (arguments, options))
    target = options.get("device")
    with _device_random(function, options):
        found = OWN.get(function, function)(*inner_arguments, **inner_options)
    if torch.Tag.inplace_view in function.tags:
        with no_dispatch():
            function(*arguments, **options)  # the wrapper changes its shape as well
    for wrapper in wrappers.values():
        if wrapper.shape != wrapper.inner.shape:
            raise RuntimeError(f"{function}: changes a shape in place, which {NAME} cannot")
    if target is not None and torch.device(target).type != NAME:
        return found
    if function is aten.copy_.default and not isinstance(arguments[0], StandinTensor):
        return arguments[0]

    if function in LENGTHS_ON_CPU:
        return StandinTensor(found[0]), found[1]

    def wrap(part: Any) -> Any:
        if not isinstance(part, Tensor):
            return part
        return wrappers[id(part)] if id(part) in wrappers else StandinTensor(part)

    return tree_map(wrap, found)


def _unwrap(part: Any) -> Any:
    if isinstance(part, torch.device):
        return torch.device("cpu")
    return part.inner if isinstance(part, StandinTensor) else part


def _check_devices(function: Any, operands: list[Tensor]) -> None:
    if function in BETWEEN_DEVICES or function in LENGTHS_ON_CPU:
        return
    own = [part for part in operands if isinstance(part, StandinTensor)]
    strangers = [p for p in operands if not isinstance(p, StandinTensor) and p.dim()]
    if own and strangers:
        shapes = [f"{p.device}{list(p.shape)}" for p in operands]
        raise RuntimeError(f"{function}: expected all tensors on one device, got {shapes}")


class _DeviceRandom:
    """Random numbers of the device: another state than the CPU's."""

    state: Tensor

    def __call__(self, function: Any, options: dict[str, Any]) -> "_DeviceRandom":
        self.used = torch.Tag.nondeterministic_seeded in function.tags
        if options.get("generator") is not None:
            raise RuntimeError(f"{function}: a generator of the CPU on the device {NAME}")
        return self

    def __enter__(self) -> None:
        if self.used:
            self.cpu = torch.default_generator.get_state()
            torch.default_generator.set_state(self.state)

    def __exit__(self, *error: object) -> None:
        if self.used:
            self.state = torch.default_generator.get_state()
            torch.default_generator.set_state(self.cpu)


_device_random = _DeviceRandom()


def _lstm_cell(
    inputs: Tensor, hidden: Tensor, memory: Tensor, *biases: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    gates = inputs + hidden + sum(bias for bias in biases if bias is not None)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    after = f * memory + i * g
    return o * after.tanh(), after, torch.cat([i, f, g, o], 1)


def _lstm_cell_backward(
    hidden: Tensor | None,
    memory: Tensor | None,
    before: Tensor,
    after: Tensor,
    gates: Tensor,
    has_bias: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    i, f, g, o = gates.chunk(4, 1)
    hidden = torch.zeros_like(after) if hidden is None else hidden
    memory = torch.zeros_like(after) if memory is None else memory
    top = after.tanh()
    inner = memory + hidden * o * (1 - top * top)
    parts = [
        inner * g * i * (1 - i),
        inner * before * f * (1 - f),
        inner * i * (1 - g * g),
        hidden * top * o * (1 - o),
    ]
    gradient = torch.cat(parts, 1)
    return gradient, inner * f, gradient.sum(0) if has_bias else None


def _gru_cell(
    inputs: Tensor,
    hidden: Tensor,
    state: Tensor,
    input_bias: Tensor | None = None,
    hidden_bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    inputs = inputs if input_bias is None else inputs + input_bias
    hidden = hidden if hidden_bias is None else hidden + hidden_bias
    (ir, iz, new), (hr, hz, own) = inputs.chunk(3, 1), hidden.chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (new + r * own).tanh()
    return n + z * (state - n), torch.cat([r, z, n, state, own], 1)


def _gru_cell_backward(
    upstream: Tensor, kept: Tensor, has_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    r, z, n, state, own = kept.chunk(5, 1)
    to_n = upstream * (1 - z) * (1 - n * n)
    to_z = upstream * (state - n) * z * (1 - z)
    to_r = to_n * own * r * (1 - r)
    inputs, hidden = torch.cat([to_r, to_z, to_n], 1), torch.cat([to_r, to_z, to_n * r], 1)
    biases = (inputs.sum(0), hidden.sum(0)) if has_bias else (None, None)
    return inputs, hidden, upstream * z, *biases


OWN: dict[Any, Callable[..., Any]] = {
    aten._thnn_fused_lstm_cell.default: _lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl.default: _lstm_cell_backward,
    aten._thnn_fused_gru_cell.default: _gru_cell,
    aten._thnn_fused_gru_cell_backward.default: _gru_cell_backward,
}
"""Cells of recurrent networks, which torch computes otherwise on the CPU."""


class Module:
    """What torch asks of `torch.standin`."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def set_device(self, device: Any) -> None:
        pass

    def synchronize(self, device: Any = None) -> None:
        pass

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]

    def manual_seed_all(self, seed: int) -> None:
        _device_random.state = torch.Generator().manual_seed(seed + 1).get_state()

    manual_seed = manual_seed_all

    def get_rng_state(self, device: Any = NAME) -> Tensor:
        return _device_random.state.clone()

    def set_rng_state(self, state: Tensor, device: Any = NAME) -> None:
        _device_random.state = state.clone()


def install() -> None:
    """Make `standin` a device of this process."""
    if hasattr(torch, NAME):
        return
    module = Module()
    module.manual_seed_all(0)
    _setup_privateuseone_for_python_backend(NAME, module)
    library = torch.library.Library("aten", "IMPL", "PrivateUse1")
    LIBRARIES.append(library)
    for name in _factories():
        library.impl(name, _factory(name))
    autocast = torch.library.Library("_", "IMPL", "AutocastPrivateUse1")
    autocast.fallback(torch.library.fallthrough_kernel)  # autocast changes nothing on this device
    LIBRARIES.append(autocast)
    library.impl("_copy_from", _copy_from)  # torch.tensor(…, device=…) does not dispatch to Python


LIBRARIES: list[Any] = []
"""A library's functions are gone when it is."""


def _factories() -> list[str]:
    """Operations that make tensors from no tensors."""
    names = []
    for name in torch._C._dispatch_get_all_op_names():
        if name.startswith("aten::"):
            base, _, overload = name.partition(".")
            schema = torch._C._get_schema(base, overload)
            types = [str(argument.type) for argument in schema.arguments]
            made = any(argument.name == "device" for argument in schema.arguments)
            if made and not any("Tensor" in kind for kind in types):
                names.append(name.removeprefix("aten::"))
    return names


def _copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    _unwrap(target).copy_(_unwrap(source))
    return target


def _factory(name: str) -> Callable[..., Any]:
    base, _, overload = name.partition(".")
    function = getattr(getattr(aten, base), overload or "default")

    def make(*arguments: Any, **options: Any) -> Any:
        return _compute(function, arguments, options)

    return make
