"""The weights of a pretrained model, by the names of Regard's network.

Every shape is compared before a weight is read.
"""

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.data.tensor_writing import LARGEST_WEIGHT, has_usable_numbers
from regard.errors import OptionError, RegardError
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.families import FAMILIES, Family, Source, Sources


def family_of(checkpoint: Checkpoint) -> Family:
    """The row of a checkpoint's architecture."""
    return FAMILIES.row(checkpoint.config.family)


LEAST_PER_BLOCK = 8
"""Every supported architecture has more weights in each block."""


def architecture_of(checkpoint: Checkpoint) -> Any:
    """Sizes and choices of a checkpoint; it has weights for as many blocks as its config says.

    This is checked before a network of so many blocks is built, even one without memory.
    """
    config = checkpoint.config
    try:
        architecture = family_of(checkpoint).architecture(checkpoint)
    except OptionError as error:
        raise RegardError(f"{config.path}: {error}") from error
    layers = architecture.layers + getattr(architecture, "decoder_layers", 0)
    if layers * LEAST_PER_BLOCK > len(checkpoint.shapes):
        raise RegardError(
            f"{config.path}: has {layers:,} layers, but there are only "
            f"{len(checkpoint.shapes):,} weights: they are of another model"
        )
    return architecture


def task_of(checkpoint: Checkpoint) -> str:
    """The task that the head of a checkpoint is for; RegardError where it has none."""
    family, classes = family_of(checkpoint), checkpoint.config.classes
    tasks = [family.tasks[name] for name in classes if name in family.tasks]
    if tasks:
        return tasks[0]
    folder = checkpoint.folder
    if not classes or any(name in family.headless for name in classes):
        raise RegardError(
            f"{folder}: an encoder without a head for texts or words: train one with `regard train "
            f"classify --pretrained {folder}`, or tag instead of classify"
        )
    raise RegardError(
        f"{folder}: a model of class {classes[0][:60]} is not supported: expected "
        f"{', '.join(family.tasks)}"
    )


def label_count(checkpoint: Checkpoint, sources: Sources) -> int:
    """The number of labels that a head decides on."""
    name = sources["decision.weight"].names[0]
    if name not in checkpoint.shapes:
        raise RegardError(f"{checkpoint.folder}: the weights {name} of its head are missing")
    shape = checkpoint.shapes[name]
    if not shape:
        raise RegardError(f"{checkpoint.folder}: the weights {name} of its head are one number")
    return shape[0]


def read_weights(
    checkpoint: Checkpoint,
    network: nn.Module,
    sources: Sources,
    rows: Int[Any, "v"],
    *,
    new_head: bool = False,
) -> dict[str, Tensor]:
    """The weights of a network, by name.

    Args:
        checkpoint: where they are.
        network: the network, on torch's meta device.
        sources: where each weight comes from.
        rows: the row of each token in the tables of the checkpoint.
        new_head: leave out the weights of a head, which is trained anew.
    """
    index = torch.from_numpy(rows)
    located = locate_sources(checkpoint, network, sources, new_head=new_head)
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    for name, (source, names) in located.items():
        compare_shapes(checkpoint, source, names, shapes[name])
    missing = {n for n, s in sources.items() if s.zero_if_missing and n in shapes} - {*located}
    return {
        **{name: torch.zeros(shapes[name]) for name in missing},
        **{
            name: _read(checkpoint, source, names, index)
            for name, (source, names) in located.items()
        },
    }


def locate_sources(
    checkpoint: Checkpoint, network: nn.Module, sources: Sources, *, new_head: bool = False
) -> dict[str, tuple[Source, tuple[str, ...]]]:
    """The source of each weight of a network, and the names of its tensors in a checkpoint."""
    located: dict[str, tuple[Source, tuple[str, ...]]] = {}
    for name in network.state_dict():
        source = sources.get(name)
        if new_head and (source is None or name.startswith(("decision", "crf"))):
            continue
        if source is None:
            raise RegardError(f"{checkpoint.folder}: unknown weights {name}")
        wanted = source.names
        if source.others:
            stored = [n for n in (*source.names, *source.others) if _locate(checkpoint, n)]
            wanted = tuple(stored[:1]) or wanted
        found = tuple(_locate(checkpoint, part) for part in wanted)
        missing = [n for n, known in zip(wanted, found, strict=True) if known is None]
        if missing and (source.zero_if_missing or (new_head and source.optional)):
            continue
        if missing:
            raise RegardError(f"{checkpoint.folder}: the weights {missing[0]} are missing")
        located[name] = source, tuple(known for known in found if known is not None)
    return located


def weight_sources(checkpoint: Checkpoint, architecture: Any) -> Sources:
    """The sources of a network, with the prefix that its weights have in this checkpoint."""
    family = family_of(checkpoint)
    sources = family.weights(architecture)
    prefixed = any(name.startswith(family.prefix) for name in checkpoint.shapes)
    prefix = family.prefix if prefixed else ""
    return {
        name: replace(
            source,
            names=tuple(prefix + part for part in source.names),
            others=tuple(prefix + part for part in source.others),
        )
        for name, source in sources.items()
    }


def _locate(checkpoint: Checkpoint, name: str) -> str | None:
    """The name of a tensor in a checkpoint with or without the prefix of the encoder."""
    short = name.removeprefix(family_of(checkpoint).prefix)
    return next((n for n in (name, short) if n in checkpoint.shapes), None)


def compare_shapes(
    checkpoint: Checkpoint, source: Source, names: tuple[str, ...], expected: tuple[int, ...]
) -> None:
    """Raise an error unless tensors of a checkpoint become a weight of the expected shape."""
    shapes = {n: checkpoint.shapes[n] for n in names}
    described = ", ".join(f"{n} {list(shape)}" for n, shape in shapes.items())
    vocabulary = checkpoint.config.size("vocab_size")
    try:
        given = source.convert(*(torch.empty(shape, device="meta") for shape in shapes.values()))
    except (RuntimeError, IndexError, TypeError) as error:
        raise RegardError(
            f"{checkpoint.folder}: the shapes of its weights do not fit together: {described}"
        ) from error
    shape = tuple(given.shape)
    if source.vocabulary:
        expected = (vocabulary, *expected[1:])
    if shape != expected:
        raise RegardError(
            f"{checkpoint.folder}: weights that do not fit config.json: {described} where "
            f"{list(expected)} is expected"
        )


def _read(checkpoint: Checkpoint, source: Source, names: tuple[str, ...], rows: Tensor) -> Tensor:
    tensor = source.convert(*(checkpoint.tensor(name) for name in names))
    if source.vocabulary:
        known = rows.clamp(min=0)
        tensor = tensor[known]
        tensor[rows < 0] = 0.0
    if not has_usable_numbers(tensor):
        raise RegardError(
            f"{checkpoint.folder}: the weights {names[0]} are not finite numbers up to "
            f"{LARGEST_WEIGHT:,.0f}"
        )
    if tensor.untyped_storage().nbytes() > tensor.nbytes:  # a part of another tensor
        return tensor.clone(memory_format=torch.contiguous_format)
    return tensor.contiguous()
