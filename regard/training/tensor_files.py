"""Tensors on disk: safetensors files that carry a digest of their content.

A file is one atomic write, and its digest is part of it: no crash can separate them. The digest
covers the names, types, shapes and values of all tensors and the plain values stored with them. It
is SHA-256, which detects damage; it does not show who wrote the file.

A file may hold its float32 tensors in half precision, if its plain values say so; they are read as
float32 again. The digest covers what is stored.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from regard.atomic_files import write_whole
from regard.data.tensor_writing import (
    LARGEST_WEIGHT,
    TYPE_NAMES,
    has_usable_numbers,
    save_tensors,
)
from regard.errors import RegardError
from regard.verified_files import MEBIBYTE, check_regular, open_regular, parse_json

MAX_HEADER = 32 * MEBIBYTE
KEY, DIGEST = "regard", "digest"
"""Where the plain values are in the metadata of a file, and the digest among them."""
STORED = "stored"
"""Which plain value says that float32 tensors are stored in half precision."""
HALF = "float16"
RESTORE = "restore it from a copy, or train the run again"
TYPES = {name: dtype for dtype, name in TYPE_NAMES.items()}
"""Types of tensors that Regard writes, by their names in safetensors files."""


@dataclass(frozen=True)
class Header:
    """What a tensor file announces, before any tensor is read."""

    tensors: Mapping[str, tuple[str, tuple[int, ...]]]
    """Type and shape of each tensor by name."""
    about: Mapping[str, Any]
    """The plain values stored with the tensors, without the digest."""


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any] | None = None
) -> None:
    """Write tensors and plain values to a safetensors file, whole or not at all."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    values = dict(about or {})
    metadata = {KEY: json.dumps({**values, DIGEST: _digest(plain, values)})}
    write_whole(path, lambda stream: save_tensors(stream, plain, metadata))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a file and the plain values stored with them, if its digest is right."""
    about = dict(_read_header(path)[1])
    try:
        with safetensors.safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, ValueError, RuntimeError, safetensors.SafetensorError) as error:
        raise RegardError(
            f"{path}: cannot be read, it may be truncated ({_first_line(error)})"
        ) from error
    if about.pop(DIGEST, None) != _digest(tensors, about):
        raise RegardError(
            f"{path}: is damaged (its SHA-256 digest does not match its content): {RESTORE}"
        )
    if about.pop(STORED, None) == HALF:
        halves = (name for name, tensor in tensors.items() if tensor.dtype == torch.float16)
        tensors |= {name: tensors[name].float() for name in halves}
    return tensors, about


def half_precision(path: Path) -> bytes:
    """The content of a file of tensors with its float32 tensors in half precision.

    Half precision has 11 significant bits, and numbers up to 65,504: larger ones are an error.
    """
    tensors, about = read_tensors(path)
    for name, tensor in tensors.items():
        if tensor.dtype == torch.float32:
            tensors[name] = tensor.half()
            if bool(torch.isinf(tensors[name]).any()):
                raise RegardError(f"{path}: {name} has numbers too large for half precision")
    about[STORED] = HALF
    metadata = {KEY: json.dumps({**about, DIGEST: _digest(tensors, about)})}
    return safetensors.torch.save(tensors, metadata)


def read_header(path: Path) -> Header:
    """Types and shapes of the tensors of a file as they are read; it is checked no further."""
    tensors, about = _read_header(path)
    about.pop(DIGEST, None)
    if about.pop(STORED, None) == HALF:
        tensors = {
            name: ("F32" if dtype == "F16" else dtype, shape)
            for name, (dtype, shape) in tensors.items()
        }
    return Header(tensors, about)


def load_network(
    build: Callable[[], nn.Module], path: Path, device: torch.device | None = None
) -> nn.Module:
    """A network with the weights of a file, in evaluation mode, on a device (default: the CPU).

    The sizes that the config gives are compared with the file before memory is allocated for them.
    On the CPU the weights are the mapped file itself: its pages are shared by all processes, and
    the system may drop and read them again.
    """
    _check_fit(build, read_header(path), path)
    weights, _ = read_tensors(path)
    with _NoRandomWeights():
        network = build()
    load_weights(network, weights, path, assign=True)
    return network.to(device).eval()


def load_weights(
    model: nn.Module,
    weights: Mapping[str, Tensor],
    path: Path,
    *,
    finite: bool = True,
    assign: bool = False,
) -> None:
    """Load weights into the model; an error names the first that does not fit.

    Args:
        model: the network.
        weights: by name, as in its state dict.
        path: the file that they are from.
        finite: refuse weights that are NaN, infinite or enormous.
        assign: make these tensors the model's weights, instead of copying their values.
    """
    _compare(_shapes(model.state_dict()), _shapes(weights), path)
    for name, tensor in weights.items():
        if finite and not has_usable_numbers(tensor):
            raise RegardError(
                f"{path}: the weights {name} are not finite numbers up to {LARGEST_WEIGHT:,.0f}: "
                f"training has diverged, or the file was changed: {RESTORE}"
            )
    model.load_state_dict(_share(model, weights) if assign else dict(weights), assign=assign)


def _share(model: nn.Module, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """One parameter for all names of a parameter of the model, such as a joint vocabulary's."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    shared: dict[int, nn.Parameter] = {}
    found = dict(weights)
    for name, own in parameters.items():
        if name in found:
            given = nn.Parameter(found[name], requires_grad=own.requires_grad)
            found[name] = shared.setdefault(id(own), given)
    return found


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[torch.dtype, tuple[int, ...]]]:
    return {name: (tensor.dtype, tuple(tensor.shape)) for name, tensor in tensors.items()}


def _compare(
    expected: Mapping[str, tuple[torch.dtype, tuple[int, ...]]],
    given: Mapping[str, tuple[torch.dtype | None, tuple[int, ...]]],
    path: Path,
) -> None:
    """Compare types and shapes of a model's weights with those of a file."""
    wrong = sorted(expected.keys() ^ given.keys())
    if wrong:
        reason = "is missing" if wrong[0] in expected else "is not part of the model"
        raise RegardError(f"{path}: weights of another model ({wrong[0]} {reason})")
    for name, (dtype, shape) in expected.items():
        other_dtype, other_shape = given[name]
        if other_shape != shape:
            raise RegardError(
                f"{path}: weights of another model ({name} does not fit: its shape is "
                f"{list(other_shape)}, the config of the run requires {list(shape)})"
            )
        if other_dtype != dtype:
            raise RegardError(
                f"{path}: the weights {name} are {_type_name(other_dtype)}, expected "
                f"{_type_name(dtype)}"
            )


def _check_fit(build: Callable[[], nn.Module], header: Header, path: Path) -> None:
    """Build the network without memory (on torch's meta device), and compare it with the file."""
    try:
        with _CallLimit(header, path), torch.device("meta"):
            network = build()
    except (RuntimeError, TypeError, OverflowError, MemoryError) as error:
        if "meta" in str(error) or isinstance(error, NotImplementedError):
            return  # the network of a plug-in, which needs real tensors to be built
        raise RegardError(
            f"{path.parent}: the sizes in its config are not those of a model "
            f"({_first_line(error)})"
        ) from error
    _compare(
        _shapes(network.state_dict()),
        {name: (TYPES.get(dtype), shape) for name, (dtype, shape) in header.tensors.items()},
        path,
    )


RANDOM = ("kaiming_uniform_", "normal_", "orthogonal_", "uniform_", "xavier_uniform_")
"""Functions that give weights their first values."""
INITIALIZERS = ("fill_", *RANDOM)
"""Functions that only change values: on the meta device they do nothing but import torch's
compiler, which takes as long as importing torch."""


class _NoRandomWeights(TorchFunctionMode):
    """Leaves out the random numbers of a network whose weights are loaded afterwards."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        random = getattr(func, "__name__", "") in RANDOM
        if random and kwargs.get("generator") is None:  # a seeded one is meant to be repeated
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


class _CallLimit(TorchFunctionMode):
    """Ends the building of a network that has many more layers than the file has weights."""

    def __init__(self, header: Header, path: Path) -> None:
        super().__init__()
        self._left, self._path = 2000 + 200 * len(header.tensors), path

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._left -= 1
        if self._left < 0:
            raise RegardError(
                f"{self._path}: weights of another model (the config of the run requires more)"
            )
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in INITIALIZERS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def _read_header(path: Path) -> tuple[dict[str, tuple[str, tuple[int, ...]]], dict[str, Any]]:
    """Types and shapes of all tensors by name, and the plain values, the digest among them."""
    try:
        size = check_regular(path)
        with open_regular(path) as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, MAX_HEADER):
                raise ValueError("its header is not complete")
            raw = parse_json(file.read(length))
        metadata = raw.pop("__metadata__", {})
        tensors = {
            str(entry): (str(tensor["dtype"]), tuple(int(n) for n in tensor["shape"]))
            for entry, tensor in raw.items()
        }
        about = parse_json(metadata.get(KEY, "{}"))
        if not isinstance(about, dict):
            raise ValueError("its metadata is not that of Regard")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise RegardError(
            f"{path}: cannot be read, it may be truncated ({_first_line(error)})"
        ) from error
    available = _memory()
    if available is not None and size > available:
        raise RegardError(
            f"{path}: has {size:,} bytes, more than the memory of this machine ({available:,})"
        )
    return tensors, about


def _digest(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        described = json.dumps([name, _type_name(tensor.dtype), list(tensor.shape)])
        digest.update(described.encode())
        if math.prod(tensor.shape):
            digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _memory() -> int | None:
    """Bytes of memory of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _type_name(dtype: torch.dtype | None) -> str:
    return "of another type" if dtype is None else str(dtype).removeprefix("torch.")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
