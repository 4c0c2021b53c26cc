"""A folder with a pretrained model: config, weights and tokenizer, each verified before use.

Weights are read from safetensors files, which are mapped into memory. A `pytorch_model.bin` is read
only where there is no such file, by torch's reader that loads nothing but tensors.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import safetensors
import torch
from torch import Tensor

from regard.atomic_files import write_text
from regard.errors import RegardError, nearest_name
from regard.pretrained.checkpoint_config import MAX_ROWS, CheckpointConfig
from regard.verified_files import (
    MAX_CONFIG,
    MEBIBYTE,
    check_regular,
    open_regular,
    read_bytes,
    read_json,
)

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLED = "pytorch_model.bin"
MAX_HEADER = 4 * MEBIBYTE
"""Some 30,000 tensors; those of a model with 100 layers take 0.2 MiB."""
KEPT_FILES = (
    CONFIG,
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "source.spm",
    "target.spm",
)
"""Files of a folder that a run keeps, to be exported again."""
SHAPES = "shapes.json"
MAX_KEPT = 128 * MEBIBYTE
OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
"""What the first checkpoints called the weights of layer norms."""
DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
"""Types of weights; quantized ones mean something else."""


def is_checkpoint(path: Path) -> bool:
    """Whether a folder holds a pretrained model rather than a run of Regard."""
    try:
        config = read_json(path / CONFIG, MAX_CONFIG)
    except (OSError, RegardError):
        return False
    return isinstance(config, dict) and "task" not in config and "model_type" in config


@dataclass(frozen=True)
class Checkpoint:
    """A pretrained model on disk."""

    folder: Path
    config: CheckpointConfig
    files: Mapping[str, Path]
    """The file of each tensor, by the tensor's name."""
    shapes: Mapping[str, tuple[int, ...]]
    loaded: Mapping[str, Tensor] = field(default_factory=dict, repr=False)
    """The tensors of a pickled file."""

    @cached_property
    def pooling(self) -> Literal["first", "mean"]:
        """How a text without a head becomes one vector: sentence-transformers say so."""
        path = self.folder / "1_Pooling" / CONFIG
        try:
            pooling = read_json(path, MAX_CONFIG)
        except OSError:
            return "first"
        mean = isinstance(pooling, dict) and pooling.get("pooling_mode_mean_tokens") is True
        return "mean" if mean and self._headless else "first"

    @property
    def _headless(self) -> bool:
        return not any("For" in name for name in self.config.classes)

    def tensor(self, name: str) -> Tensor:
        """One tensor in single precision; it is a view of the file where that needs no change."""
        path = self.files[name]
        tensor = self.loaded.get(name)
        if tensor is None:
            try:
                with safetensors.safe_open(path, "pt") as file:
                    tensor = file.get_tensor(_stored_name(name, file.keys()))
            except (OSError, ValueError, RuntimeError, safetensors.SafetensorError) as error:
                raise RegardError(f"{path}: cannot be read ({_first_line(error)})") from error
        if tensor.dtype not in DTYPES:
            kind = str(tensor.dtype).removeprefix("torch.")
            raise RegardError(
                f"{path}: the weights {name} are of type {kind}: expected float32, float16, "
                "bfloat16 or float64"
            )
        return tensor.float()


def open_checkpoint(folder: Path) -> Checkpoint:
    """A pretrained model whose config and headers are read, but none of its weights."""
    if not folder.is_dir():
        kind = "a file, not a folder" if folder.exists() else "no such folder"
        raise RegardError(f"{folder}: {kind}: give the folder of a pretrained model")
    try:
        values = read_json(folder / CONFIG, MAX_CONFIG)
    except FileNotFoundError:
        raise RegardError(
            f"{folder}: no {CONFIG}: expected the folder of a pretrained model, with {CONFIG}, "
            f"{WEIGHTS} and tokenizer.json"
        ) from None
    if not isinstance(values, dict) or not isinstance(values.get("model_type"), str):
        raise RegardError(
            f"{folder / CONFIG}: not the config of a pretrained model (no model_type)"
        )
    config = CheckpointConfig(folder / CONFIG, values)
    _check_family(config)
    files = _weight_files(folder)
    if files:
        return _open_safetensors(files, folder, config)
    if (folder / PICKLED).exists():
        return _open_pickled(folder, config)
    raise RegardError(f"{folder}: no weights: expected {WEIGHTS}, or {INDEX} with its files")


def _weight_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder: one, those of an index, or one with another name."""
    if (folder / WEIGHTS).exists():
        return [folder / WEIGHTS]
    if (folder / INDEX).exists():
        return _shards(folder)
    others = sorted(folder.glob("*.safetensors"))  # such as model.fp16.safetensors
    if len(others) > 1:
        raise RegardError(
            f"{folder}: several files of weights ({', '.join(path.name for path in others[:3])}) "
            f"and no {INDEX}: rename the one that is meant to {WEIGHTS}"
        )
    return others


def keep_originals(checkpoint: Checkpoint, folder: Path) -> None:
    """Write what `open_originals` reads: config, tokenizer, and the shapes of the weights."""
    folder.mkdir(exist_ok=True)
    for name in KEPT_FILES:
        if (checkpoint.folder / name).is_file():
            (folder / name).write_bytes(read_bytes(checkpoint.folder / name, MAX_KEPT))
    shapes = {name: list(shape) for name, shape in checkpoint.shapes.items()}
    write_text(folder / SHAPES, json.dumps(shapes) + "\n")


def open_originals(folder: Path) -> Checkpoint:
    """The pretrained model of a run without its weights."""
    try:
        values, shapes = read_json(folder / CONFIG, MAX_CONFIG), read_json(folder / SHAPES)
    except FileNotFoundError as error:
        raise RegardError(
            f"{error.filename}: is missing: restore it from a copy of the run, or import or train "
            "it again"
        ) from None
    if not isinstance(values, dict) or not isinstance(values.get("model_type"), str):
        raise RegardError(f"{folder / CONFIG}: not the config of a pretrained model")
    if not isinstance(shapes, dict) or not all(map(_is_shape, shapes.values())):
        raise RegardError(f"{folder / SHAPES}: expected the shapes of weights by their names")
    config = CheckpointConfig(folder / CONFIG, values)
    _check_family(config)
    return Checkpoint(folder, config, {}, {name: tuple(shapes[name]) for name in shapes})


def _check_family(config: CheckpointConfig) -> None:
    from regard.pretrained.families import FAMILIES

    if config.family in FAMILIES:
        return
    nearest = nearest_name(config.family, FAMILIES)
    hint = f" (did you mean {nearest}?)" if nearest else ""
    remote = ""
    if "auto_map" in config.values:
        remote = ", and the code that its auto_map names is never executed"
    raise RegardError(
        f"{config.path}: the architecture {config.family[:60]!r} is not supported{remote}{hint}; "
        f"supported: {', '.join(FAMILIES)}"
    )


def _open_safetensors(files: Sequence[Path], folder: Path, config: CheckpointConfig) -> Checkpoint:
    by_name: dict[str, Path] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for path in files:
        for stored, shape in _read_shapes(path):
            name = _modern_name(stored)
            if name in by_name:
                raise RegardError(f"{path}: has {name[:80]}, which {by_name[name].name} has too")
            by_name[name], shapes[name] = path, shape
    return Checkpoint(folder, config, by_name, shapes)


def _shards(folder: Path) -> list[Path]:
    """The files that an index names; each must be in the folder itself."""
    index = read_json(folder / INDEX)
    names = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(names, dict) or not names:
        raise RegardError(f"{folder / INDEX}: has no weight_map")
    shards = sorted({str(name) for name in names.values()})
    for name in shards:
        if not _is_file_name(name) or not name.endswith(".safetensors"):
            raise RegardError(f"{folder / INDEX}: {name[:80]!r} is not a file of the folder")
    missing = [name for name in shards if not (folder / name).is_file()]
    if missing:
        raise RegardError(
            f"{folder / missing[0]}: is missing ({len(missing)} of {len(shards)} files of weights "
            f"are): download the folder again"
        )
    return [folder / name for name in shards]


def _read_shapes(path: Path) -> list[tuple[str, tuple[int, ...]]]:
    """The name and the shape of each tensor of a file, from its header alone."""
    try:
        size = check_regular(path)
        with open_regular(path) as file:
            length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise ValueError("its header is not complete")
        if length > MAX_HEADER:
            raise ValueError(f"its header has {length:,} bytes, expected at most {MAX_HEADER:,}")
        with safetensors.safe_open(path, "pt") as opened:
            return [
                (name, tuple(opened.get_slice(name).get_shape()))
                for name in opened.keys()  # noqa: SIM118
            ]
    except (OSError, ValueError, RuntimeError, safetensors.SafetensorError) as error:
        raise RegardError(
            f"{path}: cannot be read as safetensors ({_first_line(error)}): download it again"
        ) from error


def _open_pickled(folder: Path, config: CheckpointConfig) -> Checkpoint:
    path = folder / PICKLED
    check_regular(path)
    warnings.warn(
        f"{path}: a pickled file, of which tensors alone are read: prefer {WEIGHTS}", stacklevel=4
    )
    try:
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:
        raise RegardError(
            f"{path}: holds more than tensors, or is damaged, and is not loaded: convert it to "
            f"{WEIGHTS}"
        ) from error
    if not isinstance(content, dict) or not all(isinstance(v, Tensor) for v in content.values()):
        raise RegardError(f"{path}: holds no weights by name: convert it to {WEIGHTS}")
    tensors = {_modern_name(str(name)): tensor for name, tensor in content.items()}
    odd = [name for name, tensor in tensors.items() if not _is_plain(tensor)]
    if odd or len(tensors) < len(content):
        problem = f"{odd[0][:80]} is not a plain tensor" if odd else "two tensors have one name"
        raise RegardError(f"{path}: {problem}: convert it to {WEIGHTS}")
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    return Checkpoint(folder, config, dict.fromkeys(tensors, path), shapes, tensors)


def _is_shape(shape: object) -> bool:
    return isinstance(shape, list) and all(
        type(size) is int and 0 <= size <= MAX_ROWS for size in shape
    )


def _is_file_name(name: str) -> bool:
    """Whether a name is that of a file in the same folder."""
    size = len(name.encode("utf-8", "replace"))
    return Path(name).name == name and size <= 255 and name.isprintable()


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has all of its numbers in memory: no sparse, meta or expanded one."""
    if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
        return False
    return tensor.untyped_storage().nbytes() >= tensor.nbytes


def _modern_name(name: str) -> str:
    for old, new in OLD_NAMES.items():
        name = name.replace(old, new)
    return name


def _stored_name(name: str, stored: Any) -> str:
    names = {_modern_name(str(other)): str(other) for other in stored}
    return names[name]


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
