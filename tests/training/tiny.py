"""Runs so small that a test can afford several: a few lines of data, a few numbers of width."""

import json
from pathlib import Path

import safetensors.torch
import torch

WORDS = ["the", "film", "plot", "was", "is", "very", "not", "great", "bad", "✓", "naïve"]

SMALL = {"width": 8, "dropout": 0.3, "evaluate_every": 3, "save_every": 2, "warmup": 2}
SMALL |= {"schedule": "plateau"}
OPTIONS = {
    "classify": SMALL | {"steps": 14, "batch_tokens": 60, "average": 3, "patience": 4},
    "language": SMALL
    | {"steps": 14, "batch_tokens": 30, "window_tokens": 5, "vocabulary": 300, "accumulate": 2}
    | {"patience": 4, "learning_rate": 0.5, "epochs": 3, "average": 2, "attention": "dot"},
    "tag": SMALL
    | {"steps": 6, "batch_tokens": 60, "characters": 4, "character_features": 4, "ngrams": 4},
    "translation": SMALL | {"steps": 6, "batch_tokens": 60, "vocabulary": 300, "max_tokens": 60},
}
"""Options of a run of each task that saves, validates, averages and halves its learning rate."""


def write_data(folder: Path, task: str, lines: int = 30) -> list[str]:
    """Files for a task; every line is different."""
    texts = [
        " ".join(WORDS[(i * 7 + j * j) % len(WORDS)] for j in range(2 + i % 5)) + f" {i}"
        for i in range(lines)
    ]
    if task == "translation":
        files = {"train.aa": texts, "train.bb": [" ".join(t.split()[::-1]) for t in texts]}
    elif task == "classify":
        files = {"train.tsv": ["text\tlabel", *(f"{t}\t{len(t) % 2}" for t in texts)]}
    elif task == "tag":
        tagged = [
            "".join(f"{w} {'B-X' if w in 'film' else 'O'}\n" for w in t.split()) for t in texts
        ]
        files = {"train.conll": tagged}
    else:
        files = {"train.txt": texts}
    for name, content in files.items():
        (folder / name).write_text("\n".join(content) + "\n", "utf-8")
    return [str(folder / name) for name in files]


def everything(run: Path) -> dict[str, object]:
    """All that two equal runs have in common: weights, state, position, metrics; not the time."""
    contents: dict[str, object] = {}
    for path in sorted([run / "model.safetensors", run / "state/latest.safetensors"]):
        with safetensors.safe_open(path, "pt") as file:
            contents |= {f"{path.name}/{name}": file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            position = json.loads(file.metadata()["regard"]).get("position", {})
        contents[path.name] = {name: value for name, value in position.items() if name != "seconds"}
    lines = (run / "metrics.jsonl").read_text("utf-8").split("\n")
    contents["metrics"] = [
        {name: value for name, value in json.loads(line).items() if name != "seconds"}
        for line in lines
        if line
    ]
    contents["checkpoints"] = sorted(path.name for path in (run / "checkpoints").glob("*"))
    contents["strays"] = sorted(path.name for path in run.rglob("*.part"))
    return contents


def assert_same(found: dict[str, object], expected: dict[str, object]) -> None:
    """Equal to the bit."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(found[name], value), name  # type: ignore[arg-type]
        else:
            assert found[name] == value, (name, found[name], value)
