"""Export of translators to CTranslate2, by its own converter from `transformers`.

https://opennmt.net/CTranslate2/
"""

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from regard.atomic_files import write_folder
from regard.data.tokenizers.tokenizer import BOS, EOS, UNK
from regard.errors import RegardError
from regard.inference.export.transformers_folder import export_to_huggingface
from regard.inference.run import Run
from regard.models.translator import Translator


def export_to_ctranslate2(run: Run, out: Path) -> list[Path]:
    """Write a model of CTranslate2 to a folder, which must be new."""
    if not isinstance(run.model, Translator):
        raise RegardError(
            f"{run.folder.path}: export to ctranslate2 does not apply to {run.name} runs, but to "
            "translators"
        )
    with tempfile.TemporaryDirectory() as temporary:
        stored = Path(temporary) / "model"
        export_to_huggingface(run, stored)
        _require_packages()
        spec = _spec(run, stored)

        def write(folder: Path) -> None:
            spec.save(str(folder))
            (folder / "README.md").write_bytes((stored / "README.md").read_bytes())

        write_folder(out, write)
    return sorted(path for path in out.rglob("*") if path.is_file())


def _require_packages() -> None:
    for package in ("ctranslate2", "transformers"):
        if find_spec(package) is None:
            raise RegardError(
                f"export to ctranslate2 needs the package {package}, which is not installed: pip "
                f"install {package}"
            )


def _spec(run: Run, stored: Path) -> Any:
    from ctranslate2.converters.transformers import (
        BartLoader,
        PegasusLoader,
        TransformersConverter,
    )
    from transformers import AutoModelForSeq2SeqLM

    if run.task.pretrained is not None:  # type: ignore[attr-defined]
        spec = TransformersConverter(str(stored))._load()
        spec.validate()
        return spec
    model = AutoModelForSeq2SeqLM.from_pretrained(stored)
    before = model.config.model_type == "pegasus"
    model.config.normalize_before, model.config.normalize_embedding = before, False
    spec = (PegasusLoader if before else BartLoader)().get_model_spec(model)
    _split_vocabulary(run, spec)
    spec.validate()
    return spec


def _split_vocabulary(run: Run, spec: Any) -> None:
    """Give each side its own rows and its own names of tokens."""
    task: Any = run.task
    names = [_names(tokenizer) for tokenizer in (task.source, task.target)]
    sources = len(names[0])
    spec.encoder.embeddings[0].weight = spec.encoder.embeddings[0].weight[:sources]
    spec.decoder.embeddings.weight = spec.decoder.embeddings.weight[sources:]
    spec.decoder.projection.weight = spec.decoder.projection.weight[sources:]
    spec.decoder.projection.bias = spec.decoder.projection.bias[sources:]
    spec.register_source_vocabulary(names[0])
    spec.register_target_vocabulary(names[1])
    spec.config.bos_token = spec.config.decoder_start_token = names[1][BOS]
    spec.config.eos_token, spec.config.unk_token = names[1][EOS], names[1][UNK]
    spec.config.add_source_eos = spec.config.add_source_bos = False


def _names(tokenizer: Any) -> list[str]:
    """The names of its tokens in order, as in its file."""
    numbers: dict[str, int] = tokenizer.names()
    return sorted(numbers, key=numbers.__getitem__)
