"""Export a trained run as ONNX graphs, with the files that are needed to use them."""

import hashlib
import io
import json
import os
from collections.abc import Mapping, Set
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import ZipFile, ZipInfo

import numpy as np
from torch import Tensor

from regard import __version__
from regard.atomic_files import is_partial_file, make_folder, write_output
from regard.data.tokenizers.recipes import HIDDEN
from regard.data.tokenizers.tokenizer import BOS, EOS, PAD, UNK
from regard.errors import RegardError, unknown
from regard.inference.export import Graph, graphs_of, left_out
from regard.inference.run import Run
from regard.layers import CRF
from regard.models import LanguageModel
from regard.progress import track
from regard.training.stored_runs.model_card import CARD, model_card
from regard.training.stored_runs.run_summary import summarize_run
from regard.verified_files import MAX_CONFIG, file_digest, read_json

FORMATS = ("onnx", "huggingface", "ctranslate2")
DESCRIPTION = "export.json"
VOCABULARY_FILES = ("tokenizer", "source", "target", "labels", "characters", "features")
"""Files of a run that map tokens, labels and characters to ids."""
SPECIAL_TOKENS = {"padding": PAD, "unknown": UNK, "begin": BOS, "end": EOS}


def export(
    run: Run, to: str = "onnx", out: Path | None = None, *, overwrite: bool = False
) -> list[Path]:
    """Write the graphs of a run, its vocabularies and `export.json`, which describes them.

    Args:
        run: a trained run.
        to: the format: onnx, huggingface or ctranslate2.
        out: the folder to write to (default: `onnx` in that of the run).
        overwrite: whether to replace files that no export wrote, or that were changed since.
    """
    if to not in FORMATS:
        raise RegardError(unknown("format", to, FORMATS))
    if to != "onnx":
        return _export_elsewhere(run, to, out)
    if find_spec("onnx") is None:
        raise RegardError("export needs the package onnx, which is not installed: pip install onnx")
    folder = run.folder.path / to if out is None else out
    _check_folder(folder)
    graphs = {f"{name}.onnx": graph for name, graph in graphs_of(run.model).items()}
    tracked = track(graphs.items(), "exporting graphs", unit="graphs")
    files = {name: graph.bytes(Path(name).stem) for name, graph in tracked}
    files |= _run_files(run) | _crf_file(run)
    files[CARD] = model_card(summarize_run(run.folder.path)).encode()
    digests = {name: _digest(data) for name, data in files.items()}
    if out is None:  # in the run folder, which may come from somebody else
        run.folder.refuse_links(folder, *(folder / name for name in [*files, DESCRIPTION]))
    earlier = _earlier_digests(folder)
    if not overwrite:
        _refuse_foreign_files(folder, digests, earlier)
    make_folder(folder)
    for name, data in files.items():
        _write(folder / name, data)
    for path in _stale_files(folder, set(files), earlier):
        path.unlink(missing_ok=True)
    record = _description(run, graphs, list(files)) | {"digests": digests}
    _write(folder / DESCRIPTION, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    return [folder / name for name in [*files, DESCRIPTION]]


def _export_elsewhere(run: Run, to: str, out: Path | None) -> list[Path]:
    """Write the folder of another package, which must be new."""
    from regard.inference.export.ctranslate2 import export_to_ctranslate2
    from regard.inference.export.transformers_folder import export_to_huggingface

    folder = run.folder.path / to if out is None else out
    _check_folder(folder)
    if out is None:
        run.folder.refuse_links(folder)
    write = export_to_huggingface if to == "huggingface" else export_to_ctranslate2
    return write(run, folder)


def _check_folder(folder: Path) -> None:
    if (folder / "model.safetensors").exists():
        raise RegardError(f"{folder}: is itself a run folder: choose another --out")
    if folder.exists() and not folder.is_dir():
        raise RegardError(f"{folder}: is not a folder: choose another --out")


def _earlier_digests(folder: Path) -> dict[str, str]:
    """The digests of the files that an earlier export wrote, by name."""
    path = folder / DESCRIPTION
    try:
        digests = read_json(path, MAX_CONFIG)["digests"] if _is_regular(path) else {}
        own = {name: digest for name, digest in digests.items() if Path(name).name == name}
        return own | {DESCRIPTION: file_digest(path)} if own else {}
    except (OSError, RegardError, KeyError, TypeError, AttributeError):
        return {}


def _refuse_foreign_files(folder: Path, new: Mapping[str, str], earlier: Mapping[str, str]) -> None:
    """Refuse to replace files that no export wrote.

    A file with the content that it would get is no loss: an interrupted export left it.
    """
    foreign = [
        name
        for name in [*new, DESCRIPTION]
        if os.path.lexists(folder / name)
        and not _has_digest(folder / name, new.get(name), earlier.get(name))
    ]
    if foreign:
        raise RegardError(
            f"{folder}: {', '.join(foreign)} {'was' if len(foreign) == 1 else 'were'} not written "
            "by an export, or changed since: choose another --out, or replace with --overwrite"
        )


def _stale_files(folder: Path, names: Set[str], earlier: Mapping[str, str]) -> list[Path]:
    """Files of an earlier export that this one does not have, and of one that was killed."""
    others = earlier.keys() - names - {DESCRIPTION}
    unchanged = [folder / name for name in others if _has_digest(folder / name, earlier[name])]
    partial = [path for path in folder.iterdir() if is_partial_file(path)]
    ours = names | others | {DESCRIPTION}
    return unchanged + [path for path in partial if path.name.rsplit(".", 2)[0] in ours]


def _has_digest(path: Path, *digests: str | None) -> bool:
    return _is_regular(path) and file_digest(path) in digests


def _is_regular(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(path: Path, data: bytes) -> None:
    write_output(path, lambda stream: stream.write(data))


def _run_files(run: Run) -> dict[str, bytes]:
    """The tokenizers, labels and config of the run."""
    vocabularies = [run.folder.data / f"{name}.json" for name in VOCABULARY_FILES]
    present = [run.folder.path / "config.json", *(path for path in vocabularies if path.exists())]
    return {path.name: _without_marks(path.read_bytes()) for path in present}


def _without_marks(content: bytes) -> bytes:
    """A tokenizer whose decoder removes the mark of tokens that no text encodes to."""
    if HIDDEN.encode() not in content:
        return content
    state = json.loads(content)
    remove = {"type": "Replace", "pattern": {"String": HIDDEN}, "content": ""}
    steps = [remove] if state["decoder"] is None else [remove, state["decoder"]]
    state["decoder"] = {"type": "Sequence", "decoders": steps}
    return json.dumps(state, ensure_ascii=False).encode()


def _crf_file(run: Run) -> dict[str, bytes]:
    """The transition scores of a CRF, −∞ where one label may not follow the other."""
    crf = getattr(run.model, "crf", None)
    if not isinstance(crf, CRF):
        return {}
    tables = {
        "transitions": _with_constraint(crf.transitions, crf.allowed),
        "start": _with_constraint(crf.start, crf.allowed_start),
        "end": _with_constraint(crf.end, crf.allowed_end),
    }
    stream = io.BytesIO()
    with ZipFile(stream, "w") as archive:
        for name, table in tables.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, table, allow_pickle=False)
            # without the time, which np.savez writes: the same run gives the same file
            archive.writestr(ZipInfo(f"{name}.npy"), content.getvalue())
    return {"crf.npz": stream.getvalue()}


def _with_constraint(scores: Tensor, allowed: Tensor | None) -> np.ndarray:
    table = scores.detach().float().cpu().numpy()
    return table if allowed is None else np.where(allowed.cpu().numpy(), table, -np.inf)


def _description(run: Run, graphs: dict[str, Graph], written: list[str]) -> dict[str, Any]:
    """What a user has to know about the graphs, as JSON values."""
    limits = {
        name: getattr(run.task, name)
        for name in ("max_tokens", "separator")
        if getattr(run.task, name, None) is not None
    }
    return {
        "regard": __version__,
        "task": run.name,
        **_vocabulary(run),
        **limits,
        **({"first_token": run.model.start_token} if isinstance(run.model, LanguageModel) else {}),
        "graphs": {
            name: {
                "inputs": [port.record() for port in graph.inputs],
                "outputs": [port.record() for port in graph.outputs],
            }
            for name, graph in graphs.items()
        },
        "files": written,
        "notes": [*run.spec.export_notes, *filter(None, [left_out(run.model)])],
    }


def _vocabulary(run: Run) -> Mapping[str, Any]:
    """The tokens or symbols that mean something to the graphs."""
    vocabulary = run.spec.export_vocabulary
    return {"special_tokens": SPECIAL_TOKENS} if vocabulary is None else vocabulary(run.task)
