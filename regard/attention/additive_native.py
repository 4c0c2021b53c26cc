"""The C kernel of additive attention: loaded when first needed, called through ctypes.

Four operators, `regard::additive_scores`, `regard::additive_attention` and the backward of each,
make it known to autograd, autocast, `torch.compile` and meta tensors. They take contiguous float32
tensors with one batch axis; `regard.attention.additive` brings its arguments into that form.
"""

import ctypes
import functools
import importlib.machinery
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch
from jaxtyping import Float
from torch import Tensor

LEVELS = ("baseline", "avx2", "avx512")


class _Additive(ctypes.Structure):
    """The struct of the same name in kernels/additive.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("query", "key", "weight", "value")),
        *((name, ctypes.c_void_p) for name in ("start", "stop", "mask", "mask_of")),
        *((name, ctypes.c_int64) for name in ("mask_rows", "batch", "queries", "keys")),
        *((name, ctypes.c_int64) for name in ("hidden", "width")),
        *((name, ctypes.c_void_p) for name in ("scores", "output", "log_sum")),
        ("output_gradient", ctypes.c_void_p),
        *((f"gradient_{axis}", ctypes.c_int64) for axis in ("batch", "row", "column")),
        ("scores_gradient", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in ("query_gradient", "key_gradient")),
        *((name, ctypes.c_void_p) for name in ("value_gradient", "weight_gradient")),
    )


@functools.cache
def _load() -> ctypes.CDLL | str:
    """The library, or the reason why there is none."""
    spec = importlib.util.find_spec("regard.attention._additive")
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    if spec is None or not (spec.origin or "").endswith(suffixes):
        return "the kernel was not built; install regard where a C compiler (gcc or clang) is found"
    try:
        library = ctypes.CDLL(spec.origin)
        library.additive_forward.argtypes = [ctypes.c_void_p, ctypes.c_int]
        library.additive_chunks.argtypes = [ctypes.c_void_p, ctypes.c_int]
        library.additive_chunks.restype = ctypes.c_int64
        library.additive_backward.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int]
        library.additive_tanh.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
        library.additive_tanh.restype = None
    except (OSError, AttributeError) as error:
        return f"the kernel {spec.origin} cannot be loaded: {error}"
    return library


def _library() -> ctypes.CDLL:
    library = _load()
    if isinstance(library, str):
        raise RuntimeError(library)
    return library


def why_not() -> str | None:
    """The reason why the kernel cannot be used, or None if it can."""
    library = _load()
    return library if isinstance(library, str) else None


def available() -> bool:
    """Whether the kernel was built and loads."""
    return why_not() is None


def level() -> str:
    """The instruction set that the kernel uses on this machine: one of `LEVELS`."""
    return LEVELS[_library().additive_level()]


# The compiler asks these two once instead of looking inside. The decorator that says so,
# torch.compiler.assume_constant_result, would import the whole compiler here.
for _constant in (why_not, level):
    _constant._dynamo_marked_constant = True  # type: ignore[attr-defined]


def force_level(name: str | None) -> None:
    """Makes the kernel use one of `LEVELS` in this process; None is the best one again."""
    if name is not None and name not in LEVELS:
        raise ValueError(f"unknown instruction set {name!r}: expected one of {', '.join(LEVELS)}")
    if _library().additive_force(-1 if name is None else LEVELS.index(name)):
        raise ValueError(f"this machine does not support {name}")


def tanh(x: Float[Tensor, "n"]) -> Float[Tensor, "n"]:
    """tanh by the kernel's own vector arithmetic: the machine limit for benchmarks."""
    whole = torch.nn.functional.pad(x.float(), (0, -x.numel() % 16))
    result = torch.empty_like(whole)
    _library().additive_tanh(whole.data_ptr(), result.data_ptr(), whole.numel())
    return result[: x.numel()]


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _describe(
    query: Tensor,
    key: Tensor,
    weight: Tensor,
    value: Tensor | None = None,
    seen: Sequence[Tensor | None] = (None, None, None, None),
) -> _Additive:
    start, stop, mask, mask_of = seen
    batch, queries, hidden = query.shape
    return _Additive(
        *map(_address, (query, key, weight, value, start, stop, mask, mask_of)),
        0 if mask is None else mask.shape[1],
        *(batch, queries, key.shape[1], hidden, 0 if value is None else value.shape[2]),
    )


def _run_forward(call: _Additive) -> None:
    if _library().additive_forward(ctypes.byref(call), torch.get_num_threads()):
        raise MemoryError("additive attention: cannot allocate the kernel's scratch memory")


def _run_backward(call: _Additive, gradients: Sequence[Tensor], weight: Tensor) -> Tensor:
    """Fills the gradients of query, key and value; returns that of the weight."""
    threads = torch.get_num_threads()
    chunks = _library().additive_chunks(ctypes.byref(call), threads)
    parts = weight.new_zeros(call.batch * chunks, call.hidden)
    names = ("query_gradient", "key_gradient", "value_gradient")
    for name, gradient in zip(names, gradients, strict=False):
        setattr(call, name, gradient.data_ptr())
    call.weight_gradient = parts.data_ptr()
    if _library().additive_backward(ctypes.byref(call), chunks, threads):
        raise MemoryError("additive attention: cannot allocate the kernel's scratch memory")
    return parts.sum(0)


def run_scores(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """The kernel itself, without the operator around it: for calls that need no gradient."""
    scores = query.new_empty(*query.shape[:2], key.shape[1])
    call = _describe(query, key, weight)
    call.scores = scores.data_ptr()
    if scores.numel():
        _run_forward(call)
    return scores


def run_attention(
    query: Tensor, key: Tensor, weight: Tensor, value: Tensor, seen: Sequence[Tensor | None]
) -> tuple[Tensor, Tensor]:
    """The kernel itself, without the operator around it: for calls that need no gradient."""
    output = query.new_empty(*query.shape[:2], value.shape[2])
    log_sum = query.new_empty(query.shape[:2])
    call = _describe(query, key, weight, value, seen)
    call.output, call.log_sum = output.data_ptr(), log_sum.data_ptr()
    _run_forward(call)
    return output, log_sum


def _contiguous(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(tensor.contiguous() for tensor in tensors)


def _seen(*tensors: Tensor | None) -> tuple[Tensor | None, ...]:
    return tuple(None if tensor is None else tensor.contiguous() for tensor in tensors)


def _operator(name: str) -> Callable[[Callable[..., Any]], Any]:
    """Register a function as an operator on the CPU, which the compiler does not look into.

    The decorator torch.library.custom_op does the same, but its operators import the whole compiler
    at their first call, a second or two.
    """

    def register(function: Callable[..., Any]) -> Any:
        torch.library.define(name, torch.library.infer_schema(function, mutates_args=()))
        torch.library.impl(name, "cpu", function)
        return getattr(torch.ops.regard, name.removeprefix("regard::")).default

    return register


def _shapes_of(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function that gives the shapes of an operator's results."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        torch.library.register_fake(name, function)
        return function

    return register


def run_backward(
    gradient: Tensor,
    inputs: Sequence[Tensor],
    saved: Sequence[Tensor | None],
    sums: Sequence[Tensor],
) -> Tensor:
    """Adds the gradients of query, key and value to `sums`; returns that of the weight.

    Args:
        gradient: that of the output.
        inputs: query, key, weight and value.
        saved: the four parts of what is seen, and the two results of `run_attention`.
        sums: contiguous, of the shapes of query, key and value.
    """
    query, key, weight, value = inputs
    *seen, output, log_sum = saved
    call = _describe(query, key, weight, value, seen)
    call.output, call.log_sum = _address(output), _address(log_sum)
    call.output_gradient = gradient.data_ptr()
    call.gradient_batch, call.gradient_row, call.gradient_column = gradient.stride()
    return _run_backward(call, sums, weight)


@_operator("regard::additive_scores")
def scores(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    """s[q,k] = Σ_a w_a tanh(query[q,a] + key[k,a])."""
    return run_scores(*_contiguous(query, key, weight))


@_operator("regard::additive_scores_backward")
def scores_backward(
    gradient: Tensor, query: Tensor, key: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of query, key and weight from that of the scores."""
    gradient, query, key, weight = _contiguous(gradient, query, key, weight)
    gradients = (torch.zeros_like(query), torch.zeros_like(key))
    call = _describe(query, key, weight)
    call.scores_gradient = gradient.data_ptr()
    if not gradient.numel():
        return *gradients, torch.zeros_like(weight)
    return *gradients, _run_backward(call, gradients, weight)


@_operator("regard::additive_attention")
def attention(
    query: Tensor,
    key: Tensor,
    weight: Tensor,
    value: Tensor,
    start: Tensor | None,
    stop: Tensor | None,
    mask: Tensor | None,
    mask_of: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """softmax of the scores times value, and the log of the softmax's sum for each query."""
    query, key, weight, value = _contiguous(query, key, weight, value)
    return run_attention(query, key, weight, value, _seen(start, stop, mask, mask_of))


@_operator("regard::additive_attention_backward")
def attention_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    weight: Tensor,
    value: Tensor,
    start: Tensor | None,
    stop: Tensor | None,
    mask: Tensor | None,
    mask_of: Tensor | None,
    output: Tensor,
    log_sum: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of query, key, weight and value from that of the output."""
    query, key, weight, value = _contiguous(query, key, weight, value)
    output, log_sum = _contiguous(output, log_sum)
    gradients = (torch.zeros_like(query), torch.zeros_like(key), torch.zeros_like(value))
    saved = (*_seen(start, stop, mask, mask_of), output, log_sum)
    weight_gradient = run_backward(gradient, (query, key, weight, value), saved, gradients)
    return gradients[0], gradients[1], weight_gradient, gradients[2]


@_shapes_of("regard::additive_scores")
def _(query: Tensor, key: Tensor, weight: Tensor) -> Tensor:
    return query.new_empty(query.shape[0], query.shape[1], key.shape[1])


@_shapes_of("regard::additive_attention")
def _(
    query: Tensor, key: Tensor, weight: Tensor, value: Tensor, *seen: Tensor | None
) -> tuple[Tensor, Tensor]:
    batch, queries = query.shape[:2]
    return query.new_empty(batch, queries, value.shape[2]), query.new_empty(batch, queries)


@_shapes_of("regard::additive_scores_backward")
def _(
    gradient: Tensor, query: Tensor, key: Tensor, weight: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return query.new_empty(query.shape), key.new_empty(key.shape), weight.new_empty(weight.shape)


@_shapes_of("regard::additive_attention_backward")
def _(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    weight: Tensor,
    value: Tensor,
    *rest: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    like = (tensor.new_empty(tensor.shape) for tensor in (query, key, weight, value))
    return next(like), next(like), next(like), next(like)


def _save(ctx: Any, inputs: tuple[Tensor | None, ...], output: Any) -> None:
    if isinstance(output, tuple):
        ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*inputs, *(output if isinstance(output, tuple) else ()))


def _differentiate_scores(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
    gradients: tuple[Tensor, ...] = scores_backward(gradient, *ctx.saved_tensors)
    return gradients


def _differentiate_attention(ctx: Any, gradient: Tensor, _: Any) -> tuple[Tensor | None, ...]:
    return *attention_backward(gradient, *ctx.saved_tensors), None, None, None, None


def refuse(*_: Any) -> NoReturn:
    """Second derivatives: not written, and not silently wrong."""
    raise RuntimeError(
        "additive attention has no second derivative in its fast form; "
        "for double backward write it out: w·tanh(query[..., :, None, :] + key[..., None, :, :])"
    )


for _name, _backward in (
    ("regard::additive_scores", _differentiate_scores),
    ("regard::additive_attention", _differentiate_attention),
):
    torch.library.register_autograd(_name, _backward, setup_context=_save)
    torch.library.register_autocast(_name, "cpu", torch.float32)
    torch.library.register_autograd(f"{_name}_backward", refuse)
