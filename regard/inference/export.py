"""A trained run as ONNX graphs, with all that is needed to use them elsewhere."""

import io
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from regard import __version__
from regard.data.tokenizer import BOS, EOS, PAD, UNK
from regard.errors import RegardError, unknown
from regard.files import PART, write_text, write_whole
from regard.inference.graphs import Graph, graphs_of
from regard.inference.runs import Run
from regard.layers import CRF
from regard.tasks.algorithm import BLANK, END, Algorithm

FORMATS = ("onnx",)
WORDS = ("tokenizer", "source", "target", "labels", "characters", "features")
"""Files of a run that say what numbers stand for."""
SPECIAL = {"padding": PAD, "unknown": UNK, "begin": BOS, "end": EOS}
NOTES: dict[str, list[str]] = {
    "translation": [
        "encoder.onnx once, then decoder_step.onnx once a word: give it the outputs source.* and "
        "state.* of the encoder, and after each step its own outputs next.* as state.*",
        "the first token is special_tokens.begin; a translation ends with special_tokens.end",
    ],
    "language": [
        "start.onnx once, then model.onnx with any number of tokens at a time: give it the outputs "
        "state.* of the start, and after each call its own outputs next.* as state.*",
        "a text begins with special_tokens.end",
    ],
    "classify": [
        "the softmax of logits is the probability of each label of labels.json; their sigmoid "
        "where several labels may hold at once",
    ],
    "tag": [
        "where there is a file crf.npz, Viterbi over logits and its tables finds the best labels; "
        "otherwise each word has the label of its largest logit",
    ],
    "algorithm": [
        "a symbol is its place in symbols; after the problem come blanks, one for each symbol that "
        "is asked for; what the machine says to blanks is the answer, up to special_symbols.end",
        "where there is a start.onnx, it runs once and then model.onnx once a symbol: give it the "
        "outputs state.* of the start, and after each step its own outputs next.* as state.*",
    ],
}
"""How to use the graphs of each task, for `export.json`."""


def export(run: Run, to: str = "onnx", out: Path | None = None) -> list[Path]:
    """Write the graphs of a run, its words and `export.json`, which describes them.

    Args:
        run: a trained run.
        to: onnx.
        out: the folder to write to; `onnx` in that of the run unless said.
    """
    if to not in FORMATS:
        raise RegardError(unknown("format", to, FORMATS))
    if find_spec("onnx") is None:
        raise RegardError("export needs the package onnx, which is not installed: pip install onnx")
    folder = run.folder.path / to if out is None else out
    _not_a_run(folder)
    made = {
        f"{name}.onnx": (graph, graph.bytes(name)) for name, graph in graphs_of(run.model).items()
    }
    for name, (_, data) in made.items():
        _write(folder / name, data)
    written = [*made, *_copied(run, folder), *_field(run, folder)]
    graphs = {name: graph for name, (graph, _) in made.items()}
    record = _described(run, graphs, written)
    for old in _ours(folder) - {folder / name for name in written}:
        old.unlink(missing_ok=True)  # of another run that was exported here
    write_text(folder / "export.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return [folder / name for name in [*written, "export.json"]]


def _not_a_run(folder: Path) -> None:
    if (folder / "model.safetensors").exists():
        raise RegardError(f"{folder}: is the folder of a run itself: choose another --out")
    if folder.exists() and not folder.is_dir():
        raise RegardError(f"{folder}: is not a folder: choose another --out")
    if folder.exists() and any(folder.iterdir()) and not (folder / "export.json").exists():
        known = _ours(folder)  # those of an export that did not come to its end
        ended = not any(path.suffix in (".onnx", PART) for path in known)
        if ended or any(path not in known for path in folder.iterdir()):
            raise RegardError(f"{folder}: holds something else: choose another --out")


def _ours(folder: Path) -> set[Path]:
    """The files of a folder that an export writes, but for the description."""
    names = {f"{name}.json" for name in (*WORDS, "config")} | {"crf.npz"}
    graphs = {f"{name}.onnx" for name in ("model", "start", "encoder", "decoder_step")}
    return {path for path in folder.iterdir() if path.name in names | graphs or path.suffix == PART}


def _write(path: Path, data: bytes) -> None:
    write_whole(path, lambda part: part.write_bytes(data))


def _copied(run: Run, folder: Path) -> list[str]:
    """Tokenizers, labels and the config, as they are in the run."""
    there = [run.folder.data / f"{name}.json" for name in WORDS]
    found = [run.folder.path / "config.json", *(path for path in there if path.exists())]
    for path in found:
        _write(folder / path.name, path.read_bytes())
    return [path.name for path in found]


def _field(run: Run, folder: Path) -> list[str]:
    """The scores of neighbouring labels, −∞ where one may not follow the other."""
    field = getattr(run.model, "crf", None)
    if not isinstance(field, CRF):
        return []
    tables = {
        "transitions": _forbidden(field.transitions, field.allowed),
        "start": _forbidden(field.start, field.allowed_start),
        "end": _forbidden(field.end, field.allowed_end),
    }
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **tables)
    _write(folder / "crf.npz", stream.getvalue())
    return ["crf.npz"]


def _forbidden(scores: Tensor, allowed: Tensor | None) -> np.ndarray:
    table = scores.detach().float().cpu().numpy()
    return table if allowed is None else np.where(allowed.cpu().numpy(), table, -np.inf)


def _described(run: Run, graphs: dict[str, Graph], written: list[str]) -> dict[str, Any]:
    """What a user has to know of the graphs, in plain values."""
    limits = {
        name: getattr(run.task, name)
        for name in ("max_tokens", "separator")
        if getattr(run.task, name, None) is not None
    }
    return {
        "regard": __version__,
        "task": run.name,
        **_vocabulary(run.task),
        **limits,
        "graphs": {
            name: {
                "inputs": [port.record() for port in graph.inputs],
                "outputs": [port.record() for port in graph.outputs],
            }
            for name, graph in graphs.items()
        },
        "files": written,
        "notes": NOTES.get(run.name, []),
    }


def _vocabulary(task: Any) -> dict[str, Any]:
    """The tokens that mean something to the graphs, or all symbols of an algorithm."""
    if isinstance(task, Algorithm):
        special = {"padding": 0, "blank": BLANK, "end": END}
        return {"special_symbols": special, "symbols": task.data.names()}
    return {"special_tokens": SPECIAL}
