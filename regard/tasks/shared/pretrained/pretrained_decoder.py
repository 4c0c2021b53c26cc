"""A pretrained language model in a run: its architecture, its tokenizer and its weights."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.data import DataReport
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.errors import OptionError, RegardError
from regard.models.pretrained.architecture import DecoderArchitecture
from regard.models.pretrained.language_model import PretrainedLanguageModel
from regard.pretrained.checkpoint import Checkpoint, open_checkpoint
from regard.pretrained.tokenizer_folder import read_decoder_tokenizer
from regard.pretrained.weights_by_name import architecture_of, read_weights, weight_sources
from regard.tasks.shared.pretrained.pretrained_encoder import (
    AdoptedModel,
    PretrainedPart,
    load_pretrained,
    write_architecture,
    write_initial,
)
from regard.tasks.shared.pretrained.pretrained_options import PretrainedOptions

LONGEST_WINDOW = 512
"""Tokens of running text that an imported model is evaluated on at once."""


class _Decoder(NamedTuple):
    tokenizer: Tokenizer
    architecture: DecoderArchitecture
    weights: Mapping[str, Tensor]


def load_decoder(data: PretrainedOptions, folder: Path) -> PretrainedPart | None:
    """The pretrained language model of a run; None for other runs."""
    return load_pretrained(
        data, folder, DecoderArchitecture, inputs="embedding", blocks="body.stack.blocks"
    )


def copy_decoder(source: str, folder: Path, window: int) -> tuple[Tokenizer, str]:
    """Write a pretrained language model into a run; its tokenizer, and a note of what it is."""
    checkpoint = open_checkpoint(Path(source))
    tokenizer, architecture, weights = _read(checkpoint)
    if window > architecture.positions:
        raise OptionError(
            "window_tokens", f"expected at most {architecture.positions}, the model's positions"
        )
    tokenizer.save(folder / "tokenizer.json")
    return tokenizer, write_initial(folder, checkpoint, architecture, weights)


def adopt_decoder(checkpoint: Checkpoint) -> AdoptedModel:
    """A pretrained language model as a run."""
    tokenizer, architecture, weights = _read(checkpoint)
    options: dict[str, Any] = {
        "pretrained": str(checkpoint.folder),
        "window_tokens": min(architecture.positions, LONGEST_WINDOW),
    }

    def write(folder: Path) -> DataReport:
        tokenizer.save(folder / "tokenizer.json")
        write_architecture(folder, architecture, checkpoint)
        return DataReport(
            f"imported from {checkpoint.folder}", vocabularies={"text": tokenizer.size}
        )

    return AdoptedModel(options, weights, write)


def _read(checkpoint: Checkpoint) -> _Decoder:
    architecture = architecture_of(checkpoint)
    if not isinstance(architecture, DecoderArchitecture):
        raise RegardError(
            f"{checkpoint.folder}: {checkpoint.config.family} is not a language model: expected "
            "one like GPT-2 or Llama"
        )
    imported, begins = read_decoder_tokenizer(checkpoint, architecture.vocabulary)
    padding, unknown, begin, _ = imported.special
    named = replace(
        architecture,
        vocabulary=imported.tokenizer.size,
        begins=begins,
        has_padding=padding is not None,
        has_unknown=unknown is not None,
        has_begin=begin is not None,
    )
    with torch.device("meta"):
        network = PretrainedLanguageModel(named, 0.0)
    sources = weight_sources(checkpoint, named)
    weights = read_weights(checkpoint, network, sources, imported.rows)
    return _Decoder(imported.tokenizer, named, weights)
