"""A pretrained encoder in a run: its architecture, its tokenizer and its first weights.

`pretrained.json` has the architecture. `initial.safetensors` has the weights that training starts
from; only training reads it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from regard.atomic_files import write_text, write_whole
from regard.data import DataReport, Labels
from regard.data.tensor_writing import save_tensors
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.errors import RegardError
from regard.models.pretrained.architecture import EncoderArchitecture
from regard.options import make
from regard.pretrained.checkpoint import Checkpoint, keep_originals, open_checkpoint
from regard.pretrained.families import Sources
from regard.pretrained.tokenizer_folder import read_tokenizer
from regard.pretrained.weights_by_name import (
    architecture_of,
    family_of,
    label_count,
    read_weights,
    weight_sources,
)
from regard.tasks.shared.pretrained.pretrained_options import PretrainedOptions
from regard.verified_files import MAX_CONFIG, read_json

ARCHITECTURE, INITIAL, ORIGINALS = "pretrained.json", "initial.safetensors", "original"
Build = Callable[[EncoderArchitecture, int], nn.Module]
"""From an architecture and a number of labels to a network."""


@dataclass(frozen=True)
class PretrainedPart:
    """What a task needs to know of the pretrained model of its run."""

    architecture: Any
    """Its sizes and choices."""
    initial: Path
    freeze_layers: int = 0
    inputs: str = "inputs"
    """The name of the network's first layer."""
    blocks: str = "encoder.stack.blocks"
    """The name of its blocks."""

    def start(self, network: nn.Module) -> None:
        """Load the weights that training starts from, and fix the lowest layers."""
        with torch.no_grad():
            own = network.state_dict()
            for name, tensor in safetensors.torch.load_file(self.initial).items():
                own[name].copy_(tensor)
        if self.freeze_layers:
            network.get_submodule(self.inputs).requires_grad_(False)
            for block in list(network.get_submodule(self.blocks).children())[: self.freeze_layers]:
                block.requires_grad_(False)


@dataclass(frozen=True)
class AdoptedModel:
    """A pretrained model with its head, as a run of a task."""

    options: Mapping[str, Any]
    """Data and model options of the run."""
    weights: Mapping[str, Tensor]
    write: Callable[[Path], DataReport]
    """Write what `load` of the task reads into a folder; what it is."""


def load_pretrained(
    data: PretrainedOptions,
    folder: Path,
    kind: type = EncoderArchitecture,
    **names: str,
) -> PretrainedPart | None:
    """What was written into a run folder of a pretrained model; None for other runs.

    Args:
        data: the data options.
        folder: where the run has its data.
        kind: the class of its architecture.
        names: those of the first layer and of the blocks, as in `PretrainedPart`.
    """
    if data.pretrained is None:
        return None
    path = folder / ARCHITECTURE
    try:
        values = read_json(path, MAX_CONFIG)
    except FileNotFoundError:
        raise RegardError(f"{path}: is missing: restore it from a copy of the run") from None
    try:
        architecture: Any = make(kind, values)
    except (RegardError, TypeError, AttributeError) as error:
        raise RegardError(f"{path}: not a {kind.__name__} ({error})") from error
    if data.freeze_layers > architecture.layers:
        raise RegardError(
            f"option freeze_layers: the model has {architecture.layers} layers, got "
            f"{data.freeze_layers}"
        )
    return PretrainedPart(architecture, folder / INITIAL, data.freeze_layers, **names)


def copy_pretrained(
    source: str, folder: Path, head: str, build: Build
) -> tuple[Tokenizer, EncoderArchitecture, str]:
    """Write the encoder of a pretrained model into a run whose head is trained anew.

    Args:
        source: the folder of the model.
        folder: where the run has its data.
        head: text_head or token_head, the one that the run will have.
        build: makes the network.
    """
    checkpoint = open_checkpoint(Path(source))
    tokenizer, rows, architecture = _read(checkpoint, head)
    sources = {
        **getattr(family_of(checkpoint), head)(),
        **weight_sources(checkpoint, architecture),
    }
    with torch.device("meta"):
        network = build(architecture, 2)
    weights = read_weights(checkpoint, network, sources, rows, new_head=True)
    tokenizer.save(folder / "tokenizer.json")
    return tokenizer, architecture, write_initial(folder, checkpoint, architecture, weights)


def write_initial(
    folder: Path, checkpoint: Checkpoint, architecture: Any, weights: Mapping[str, Tensor]
) -> str:
    """Write what training starts from; a note of what it is."""
    write_architecture(folder, architecture, checkpoint)
    write_whole(folder / INITIAL, lambda stream: save_tensors(stream, weights))
    size = sum(tensor.numel() for tensor in weights.values())
    return f"{size:,} weights of {checkpoint.config.family} from {checkpoint.folder}"


def write_architecture(folder: Path, architecture: Any, checkpoint: Checkpoint) -> None:
    """Write sizes and choices of a model, which `load_pretrained` reads, and its own files."""
    keep_originals(checkpoint, folder / ORIGINALS)
    write_text(folder / ARCHITECTURE, json.dumps(asdict(architecture), indent=1) + "\n")


def adopt_model(
    checkpoint: Checkpoint,
    head: str,
    build: Build,
    options: Callable[[EncoderArchitecture, int], Mapping[str, Any]],
    more: Callable[[Path], None] = lambda folder: None,
) -> AdoptedModel:
    """A pretrained model with its own head.

    Args:
        checkpoint: the model.
        head: text_head or token_head.
        build: makes the network.
        options: data and model options of the run, from the architecture and the number of labels.
        more: writes further files that the task reads.
    """
    own_head: Sources = getattr(family_of(checkpoint), head)()
    count = label_count(checkpoint, own_head)
    labels = checkpoint.config.labels(count)
    tokenizer, rows, architecture = _read(checkpoint, head)
    with torch.device("meta"):
        network = build(architecture, count)
    sources = {**own_head, **weight_sources(checkpoint, architecture)}
    chosen = {"pretrained": str(checkpoint.folder), **options(architecture, count)}
    weights = read_weights(checkpoint, network, sources, rows)

    def write(folder: Path) -> DataReport:
        tokenizer.save(folder / "tokenizer.json")
        write_architecture(folder, architecture, checkpoint)
        Labels(labels).save(folder / "labels.json")
        more(folder)
        return DataReport(
            f"imported from {checkpoint.folder}",
            labels=dict.fromkeys(labels, 0),  # how often each occurred is not known
            vocabularies={"text": tokenizer.size},
        )

    return AdoptedModel(chosen, weights, write)


def _read(checkpoint: Checkpoint, head: str) -> tuple[Tokenizer, Any, EncoderArchitecture]:
    """The tokenizer, the rows of its tokens, and the architecture with as many tokens."""
    architecture = architecture_of(checkpoint)
    if not isinstance(architecture, EncoderArchitecture):
        raise RegardError(
            f"{checkpoint.folder}: {checkpoint.config.family} is not an encoder: expected one of "
            "the BERT family"
        )
    imported = read_tokenizer(
        checkpoint, architecture.vocabulary, prefix_words=head == "token_head"
    )
    _, _, first, last = imported.special
    named = replace(
        architecture,
        vocabulary=imported.tokenizer.size,
        first=first or "<bos>",
        last=last or "<eos>",
    )
    return imported.tokenizer, imported.rows, named
