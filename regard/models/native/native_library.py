"""The C library of the native decoder: loaded when first needed, called through ctypes."""

import ctypes
import functools
import importlib.machinery
import importlib.util

LEVELS = ("baseline", "avx2", "avx512", "vnni")
KINDS = (
    "embed",
    "norm",
    "product",
    "self_attention",
    "source_attention",
    "additive_attention",
    "gru",
    "lstm",
    "copy",
    "words",
)
"""Operations of a plan, in the order of the enum in kernels/decoder.h."""
ACTIVATIONS = ("linear", "gelu", "tanh")
FAILURES = ("", "no memory", "unknown token", "no candidate", "interrupted")
"""Why a step or a search ended early, by the numbers in kernels/search.h."""
INTERRUPTED = ctypes.CFUNCTYPE(ctypes.c_int)
"""A function that a search calls before each step; the search ends when it returns 1."""


class Product(ctypes.Structure):
    """The struct of the same name in kernels/decoder.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("inputs", "outputs")),
        *((name, ctypes.c_void_p) for name in ("weights", "bytes", "scale", "shift", "bias")),
    )


class Operation(ctypes.Structure):
    """The struct of the same name in kernels/decoder.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("kind", "activation", "input", "output", "width")),
        *((name, ctypes.c_int64) for name in ("other", "state", "heads", "layer")),
        *((name, ctypes.c_int64) for name in ("key", "value", "value_width")),
        *((name, ctypes.c_float) for name in ("scale", "epsilon")),
        *((name, ctypes.c_void_p) for name in ("first", "second")),
        ("product", Product),
    )


class Plan(ctypes.Structure):
    """The struct of the same name in kernels/decoder.h."""

    _fields_ = (
        ("operations", ctypes.POINTER(Operation)),
        *((name, ctypes.c_int64) for name in ("count", "columns", "state_columns")),
        *((name, ctypes.c_int64) for name in ("block_columns", "source_columns")),
        *((name, ctypes.c_int64) for name in ("layers", "heads", "words")),
    )


class Call(ctypes.Structure):
    """The struct of the same name in kernels/decoder.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("rows", "position")),
        *((name, ctypes.c_void_p) for name in ("tokens", "place", "sentence", "source", "lengths")),
        ("keys", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("allowed", "blocks", "ancestry", "block")),
        *((name, ctypes.c_void_p) for name in ("state", "next_state")),
        *((name, ctypes.c_void_p) for name in ("own_weights", "source_weights")),
        ("log_probabilities", ctypes.c_void_p),
    )


class Search(ctypes.Structure):
    """The struct of the same name in kernels/search.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("sentences", "width", "nbest", "full", "longest")),
        *((name, ctypes.c_int64) for name in ("enough_ends", "eos")),
        *((name, ctypes.c_void_p) for name in ("bos", "limits", "penalties", "forbidden")),
        ("forbidden_count", ctypes.c_int64),
        ("places", ctypes.c_void_p),
        ("place_width", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("source", "lengths")),
        ("keys", ctypes.c_int64),
        ("state", ctypes.c_void_p),
        ("interrupted", INTERRUPTED),
        *((name, ctypes.c_void_p) for name in ("lengths_found", "tokens")),
        *((name, ctypes.c_void_p) for name in ("token_log_probabilities", "log_probabilities")),
        *((name, ctypes.c_void_p) for name in ("normalized", "finished")),
        *((name, ctypes.c_void_p) for name in ("own_weights", "source_weights")),
    )


class Sequences(ctypes.Structure):
    """The struct of the same name in kernels/decoder.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("steps", "backward")),
        *((name, ctypes.c_void_p) for name in ("active", "first", "inputs")),
        *((name, ctypes.c_int64) for name in ("input", "input_width", "input_stride")),
        ("outputs", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("output_width", "output_stride")),
        ("state", ctypes.c_void_p),
    )


@functools.cache
def _load() -> ctypes.CDLL | str:
    """The library, or the reason why there is none."""
    spec = importlib.util.find_spec("regard.models.native._decoder")
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    if spec is None or not (spec.origin or "").endswith(suffixes):
        return "it was not built; install regard where a C compiler (gcc or clang) is found"
    try:
        library = ctypes.CDLL(spec.origin)
        library.decoder_step.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
        library.decoder_search.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
        library.decoder_product.argtypes = [
            *(ctypes.c_void_p for _ in range(4)),
            *(ctypes.c_int64 for _ in range(2)),
            ctypes.c_int,
        ]
        library.decoder_sequences.argtypes = [
            *(ctypes.c_void_p for _ in range(2)),
            *(ctypes.c_int64 for _ in range(2)),
            ctypes.c_int,
        ]
        library.decoder_level.argtypes = []
        library.decoder_force.argtypes = [ctypes.c_int]
    except (OSError, AttributeError) as error:
        return f"{spec.origin} cannot be loaded: {error}"
    return library


def library() -> ctypes.CDLL:
    """The library; `RuntimeError` with the reason where there is none."""
    loaded = _load()
    if isinstance(loaded, str):
        raise RuntimeError(f"the native decoder: {loaded}")
    return loaded


def why_not() -> str | None:
    """The reason why the library cannot be used, or None if it can."""
    loaded = _load()
    return loaded if isinstance(loaded, str) else None


def level() -> str:
    """The instruction set that is used on this machine: one of `LEVELS`."""
    return LEVELS[library().decoder_level()]


def force_level(name: str | None) -> None:
    """Uses one of `LEVELS` in this process; None is the best one again."""
    if name is not None and name not in LEVELS:
        raise ValueError(f"unknown instruction set {name!r}: expected one of {', '.join(LEVELS)}")
    if library().decoder_force(-1 if name is None else LEVELS.index(name)):
        raise ValueError(f"this machine does not support {name}")
