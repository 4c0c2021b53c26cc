"""A pretrained translator in a run: its architecture, its tokenizers and its weights."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from regard.data import DataReport
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.errors import RegardError
from regard.models.pretrained.architecture import TranslatorArchitecture
from regard.models.pretrained.encoder_decoder import PretrainedTranslator
from regard.pretrained.checkpoint import Checkpoint, open_checkpoint
from regard.pretrained.translator_tokenizers import read_translator_tokenizers
from regard.pretrained.weights_by_name import architecture_of, read_weights, weight_sources
from regard.tasks.shared.pretrained.pretrained_encoder import (
    AdoptedModel,
    PretrainedPart,
    load_pretrained,
    write_architecture,
    write_initial,
)
from regard.tasks.shared.pretrained.pretrained_options import PretrainedOptions


class ReadTranslator(NamedTuple):
    """A pretrained translator, read from its folder."""

    source: Tokenizer
    target: Tokenizer
    architecture: TranslatorArchitecture
    weights: Mapping[str, Tensor]

    def save_tokenizers(self, folder: Path) -> None:
        """Write what `load` of the task reads."""
        self.source.save(folder / "source.json")
        self.target.save(folder / "target.json")


def load_translator(data: PretrainedOptions, folder: Path) -> PretrainedPart | None:
    """The pretrained translator of a run; None for other runs."""
    return load_pretrained(data, folder, TranslatorArchitecture, inputs="source")


def copy_translator(source: str, folder: Path) -> tuple[ReadTranslator, str]:
    """Write a pretrained translator into a run that trains it further; a note of what it is."""
    checkpoint = open_checkpoint(Path(source))
    translator = _read(checkpoint)
    translator.save_tokenizers(folder)
    note = write_initial(folder, checkpoint, translator.architecture, translator.weights)
    return translator, note


def adopt(checkpoint: Checkpoint) -> AdoptedModel:
    """A pretrained translator as a run."""
    translator = _read(checkpoint)

    def write(folder: Path) -> DataReport:
        translator.save_tokenizers(folder)
        write_architecture(folder, translator.architecture, checkpoint)
        sizes = {"source": translator.source.size, "target": translator.target.size}
        return DataReport(f"imported from {checkpoint.folder}", vocabularies=sizes)

    options = {
        "pretrained": str(checkpoint.folder),
        "max_tokens": translator.architecture.max_tokens,
    }
    return AdoptedModel(options, translator.weights, write)


def _read(checkpoint: Checkpoint) -> ReadTranslator:
    architecture = architecture_of(checkpoint)
    if not isinstance(architecture, TranslatorArchitecture):
        raise RegardError(
            f"{checkpoint.folder}: {checkpoint.config.family} is not a translator: expected one "
            "like BART, Marian or T5"
        )
    tokenizers = read_translator_tokenizers(checkpoint, architecture)
    _, _, begin, end = tokenizers.special
    named = replace(
        architecture,
        vocabulary=len(tokenizers.rows),
        begin_name=begin or "<bos>",
        end_name=end or "<eos>",
    )
    with torch.device("meta"):
        network = PretrainedTranslator(named, 0.0)
    sources = weight_sources(checkpoint, named)
    weights = read_weights(checkpoint, network, sources, tokenizers.rows)
    return ReadTranslator(tokenizers.source, tokenizers.target, named, weights)
