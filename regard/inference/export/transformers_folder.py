"""Export to a folder that the `transformers` package loads."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import safetensors.torch

from regard.atomic_files import write_folder
from regard.errors import RegardError
from regard.inference.run import Run
from regard.models.pretrained.architecture import (
    DecoderArchitecture,
    EncoderArchitecture,
    TranslatorArchitecture,
)
from regard.pretrained.checkpoint import CONFIG, KEPT_FILES, WEIGHTS, Checkpoint, open_originals
from regard.pretrained.checkpoint_config import CheckpointConfig
from regard.pretrained.families import Sources
from regard.pretrained.tokenizer_folder import read_decoder_tokenizer, read_tokenizer
from regard.pretrained.translator_tokenizers import read_translator_tokenizers
from regard.pretrained.weights_back import weights_back
from regard.pretrained.weights_by_name import architecture_of, family_of, weight_sources
from regard.tasks.shared.pretrained.pretrained_encoder import ORIGINALS
from regard.tasks.shared.pretrained.transformers_format import TransformersModel
from regard.training.stored_runs.model_card import model_card
from regard.training.stored_runs.run_summary import summarize_run


def export_to_huggingface(run: Run, out: Path) -> list[Path]:
    """Write config, weights, tokenizer and a model card to a folder, which must be new."""
    kept = run.folder.data / ORIGINALS
    pretrained = getattr(run.task, "pretrained", None) is not None
    model = _pretrained(run, open_originals(kept)) if pretrained else _own(run)

    def write(folder: Path) -> int:
        _write_json(folder / CONFIG, {**model.config, "dtype": "float32"})
        if model.generation:
            _write_json(folder / "generation_config.json", model.generation)
        safetensors.torch.save_file(
            {name: tensor.contiguous() for name, tensor in model.weights.items()},
            folder / WEIGHTS,
            metadata={"format": "pt"},
        )
        for name in KEPT_FILES if pretrained else ():
            if name != CONFIG and (kept / name).is_file():
                (folder / name).write_bytes((kept / name).read_bytes())
        for place, tokenizer in model.tokenizers.items():
            (folder / place).mkdir(exist_ok=True)
            tokenizer.save(folder / place / "tokenizer.json")
        card = model_card(summarize_run(run.folder.path))
        (folder / "README.md").write_text(f"{card}\n{model.note}\n".rstrip() + "\n", "utf-8")
        return sum(path.stat().st_size for path in folder.rglob("*"))

    write_folder(out, write)
    return sorted(path for path in out.rglob("*") if path.is_file())


def _own(run: Run) -> TransformersModel:
    """A model that was trained from random weights."""
    convert = run.spec.to_transformers
    if convert is None:
        raise RegardError(
            f"{run.folder.path}: transformers has no architecture for {run.name} runs that were "
            "not trained from a pretrained model: export them to onnx"
        )
    try:
        model: TransformersModel = convert(run.task, run.model)
    except RegardError as error:
        raise RegardError(
            f"{run.folder.path}: cannot be exported to huggingface: {error}"
        ) from error
    return model


def _pretrained(run: Run, checkpoint: Checkpoint) -> TransformersModel:
    """A model that was imported, with the names and the tokenizer that it came with."""
    architecture: Any = run.model.architecture
    head: Sources = {}
    if isinstance(architecture, EncoderArchitecture):
        checkpoint, head = _with_head(run, checkpoint)
        rows = read_tokenizer(checkpoint, architecture.vocabulary + len(checkpoint.shapes)).rows
    elif isinstance(architecture, DecoderArchitecture):
        rows = read_decoder_tokenizer(checkpoint, 10**9).imported.rows
    else:
        original: TranslatorArchitecture = architecture_of(checkpoint)
        rows = read_translator_tokenizers(checkpoint, original).rows
    sources = {**head, **weight_sources(checkpoint, architecture)}
    weights = weights_back(checkpoint, run.model, sources, rows)
    return TransformersModel(checkpoint.config.values, {}, weights)


def _with_head(run: Run, checkpoint: Checkpoint) -> tuple[Checkpoint, Sources]:
    """The names that an encoder has with its head, which may have been trained anew."""
    family = family_of(checkpoint)
    head: Sources = getattr(family, run.spec.pretrained_head)()
    classes = [name for name, task in family.tasks.items() if task == run.name]
    path = run.folder.path
    network: Any = run.model
    if getattr(network, "crf", None) is not None:
        raise RegardError(f"{path}: --crf: taggers in transformers have no CRF: export to onnx")
    if network.architecture.pooling == "mean":
        raise RegardError(
            f"{path}: classifies by the mean of all tokens, as sentence-transformers do, and "
            f"{classes[0]} by the first one: it cannot be exported to huggingface"
        )
    state = network.state_dict()
    shapes = {
        name if name.startswith(family.prefix) or _of_head(name, head) else family.prefix + name: s
        for name, s in checkpoint.shapes.items()
    }
    for ours, source in head.items():
        if ours in state:
            shapes[source.names[0]] = tuple(state[ours].shape)
    labels = list(run.labels)
    values = {
        **checkpoint.config.values,
        "architectures": classes[:1],
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    config = CheckpointConfig(checkpoint.config.path, values)
    return replace(checkpoint, config=config, shapes=shapes), head


def _of_head(name: str, head: Sources) -> bool:
    return any(name in source.names for source in head.values())


def _write_json(path: Path, values: Any) -> None:
    path.write_text(json.dumps(dict(values), indent=1, ensure_ascii=False) + "\n", "utf-8")
