"""Runs of every task on a device whose tensors do not mix with those of the CPU."""

import json
import math
import urllib.request
from dataclasses import asdict, is_dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.inference.explain.faithfulness import faithfulness
from regard.serve import Server
from regard.training.run import train_run
from tests.pretrained.checkpoints import FAMILIES, FAMILIES_OF_DECODERS, write_checkpoint
from tests.pretrained.translator_checkpoints import TRANSLATORS, write_translator
from tests.tasks.tasks_data import write
from tests.training.tiny import OPTIONS, assert_same, everything, write_data

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
DEVICE = "standin"
STILL = {"dropout": 0.0, "word_dropout": 0.0}
TINY = {"width": 8, "steps": 6, "batch_tokens": 60, "warmup": 2, "evaluate_every": 3}
TRANSFORMER = {"model": "transformer", "layers": 1, "vocabulary": 300, "max_tokens": 60}
TUNED = {name: value for name, value in TINY.items() if name != "width"}
HEADS = {"gpt2": "LMHeadModel", "llama": "ForCausalLM"}
RUNS = {
    "classify": ("classify", OPTIONS["classify"]),
    "classify vectors": ("classify", TINY | {"pooling": "self"}),
    "tag": ("tag", OPTIONS["tag"]),
    "tag, transformer": ("tag", TINY | {"encoder": "transformer", "crf": True}),
    "language": ("language", OPTIONS["language"]),
    "language, transformer": ("language", TINY | {"model": "transformer", "layers": 1}),
    "condition": ("language", TINY | {"condition": "label"}),
    "translation": ("translation", OPTIONS["translation"]),
    "translation, transformer": ("translation", TINY | TRANSFORMER),
    "align": ("align", {"epochs": 3}),
    "algorithm": ("algorithm", {"steps": 4, "longest": 4, "width": 16, "slots": 6}),
    "classify, bert": ("classify", TUNED),
    "tag, roberta": ("tag", TUNED | {"crf": True}),
    "language, gpt2": ("language", TUNED | {"window_tokens": 16}),
    "language, llama": ("language", TUNED | {"window_tokens": 16}),
    "translation, marian": ("translation", TUNED | {"max_tokens": 50}),
    "translation, t5": ("translation", TUNED),
}
"""Tasks and options of the runs by name; the data is that of the first word, and the last word may
be a pretrained model that the run begins with."""
TEXTS = {"translation": "the film was great", "algorithm": "0 1 2"}


def options_of(name: str, folder: Path) -> tuple[str, dict]:
    task, options = RUNS[name]
    kind = {"align": "translation"}.get(name, name.split(",")[0])
    if task == "algorithm":
        return task, options
    if name in OPTIONS:
        return task, options | {"data": write_data(folder, task)}
    return task, options | {"data": write(folder, kind)} | pretrained(name, folder)


def pretrained(name: str, folder: Path) -> dict:
    """The option of a run that begins with a pretrained model."""
    _, _, family = name.partition(", ")
    if family in TRANSLATORS:
        write_translator(folder / "hf", family)
    elif family in (*FAMILIES, *FAMILIES_OF_DECODERS):
        write_checkpoint(folder / "hf", family, HEADS.get(family, "Model"))
    else:
        return {}
    return {"pretrained": str(folder / "hf")}


@pytest.fixture(scope="module", params=RUNS)
def run(request, tmp_path_factory):
    """A run that was trained on the device."""
    folder = tmp_path_factory.mktemp("run")
    task, options = options_of(request.param, folder)
    lines = []
    train_run(task, options, folder / "whole", log=lines.append, device=DEVICE)
    assert any(line.startswith("device") and "standin:0" in line for line in lines)
    return request.param, folder, task, options


def stop_after(updates):
    steps = []
    return lambda: steps.append(1) or len(steps) > updates


def test_a_resumed_run_is_bit_identical(run, tmp_path):
    _, folder, task, options = run
    _, position = train_run(task, options, tmp_path / "a", device=DEVICE, stop=stop_after(1))
    assert not position.done
    train_run(task, options, tmp_path / "a", device=DEVICE)
    assert_same(everything(tmp_path / "a"), everything(folder / "whole"))


def test_it_answers_as_on_the_cpu(run):
    name, folder, _, options = run
    here, cpu = (regard.load(folder / "whole", device) for device in (DEVICE, "cpu"))
    assert {p.device.type for p in here.model.parameters()} == {DEVICE}
    assert here.device.type == DEVICE
    assert cpu.device.type == "cpu"
    for answer in (predict, prefer, evaluate, trace, score, explain, align, generate):
        assert_close(answer(name, here, options), answer(name, cpu, options), answer.__name__)


def text_of(name, run):
    if name == "classify vectors":
        return np.ones((4, 3), np.float32)
    if name == "condition":
        return "pos\tthe film"
    text = TEXTS.get(run.name, "the film is great")
    return f"{text} ||| {text}" if run.name == "align" else text


def predict(name, run, options):
    more = {"quantize": "none", "beam": 3, "nbest": 2, "weights": True, "coverage": 0.1}
    more = more if run.name == "translation" else {}
    sampled = {"temperature": 1.0, "nbest": 2, "beam": 1} if more else {}
    texts = [text_of(name, run)] * 2
    both = [run.predict(texts, **more), run.predict(texts, **sampled)]
    if run.name == "translation":
        both.append(run.predict(texts, prefixes=["great", "was"]))
        both.append(run.predict(texts, force={0: [1]}))
    return [asdict(one) for predictions in both for one in predictions]


def prefer(name, run, options):
    if run.spec.probabilities is None:
        return None
    return np.concatenate(run.predict_proba([text_of(name, run)])).tolist()


def evaluate(name, run, options):
    given = {} if run.spec.generated is not None else {"data": options["data"]}
    return {key: m.value for key, m in run.evaluate(**given).metrics.items()}


def trace(name, run, options):
    if run.spec.trace is None or name == "classify vectors":
        return None
    return [np.array(look.weights).tolist() for look in run.trace(text_of(name, run)).looks]


def score(name, run, options):
    if run.spec.log_probabilities is None or name == "condition":
        return None
    targets = ["great film"] if run.name == "translation" else None
    texts = [text_of(name, run)]
    found = [run.log_probabilities(texts, targets)]
    if run.name == "language":
        found.append(run.log_probabilities(["the film", "is great"], running=True))
    return [asdict(one) for part in found for one in part]


def explain(name, run, options):
    if run.spec.explain is None or name in ("classify vectors", "condition"):
        return None
    found = run.explain(text_of(name, run))
    if name in ("classify", "tag, transformer", "translation", "language, transformer"):
        faithfulness(run, [text_of(name, run)], positions=1, shuffles=2)
    return [np.array(look.weights).tolist() for look in found.looks]


def align(name, run, options):
    if run.spec.source_attention is None and run.spec.aligner is None:
        return None
    return [sorted(one.links) for one in run.align(options["data"])]


def generate(name, run, options):
    if run.spec.generation is None or name == "condition":
        return None
    pieces = "".join(run.generate("the film", tokens=5, temperature=1.0))
    return [pieces, *(one.output for one in run.samples("the film", 2, tokens=4))]


def assert_close(found, expected, where):
    """Plain values that are equal, numbers to rounding."""
    if is_dataclass(expected):
        found, expected = asdict(found), asdict(expected)
    if isinstance(expected, torch.Tensor | np.ndarray):
        found, expected = found.tolist(), expected.tolist()
    if isinstance(expected, float) and math.isfinite(expected):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-4), where
    elif isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            assert_close(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), where
        for i, value in enumerate(expected):
            assert_close(found[i], value, f"{where}[{i}]")
    elif not isinstance(expected, float):
        assert found == expected, where


def test_it_is_served(run):
    name, folder, _, _ = run
    with Server([folder / "whole"], device=DEVICE) as server:
        (model,) = server.state.models
        assert model.run.device.type == DEVICE
        if name == "classify vectors":
            return
        body = {"inputs": text_of(name, model.run)}
        request = urllib.request.Request(
            f"{server.url}/v1/models/whole/predict",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            assert response.status == 200


@pytest.mark.parametrize("name", ["classify", "language", "tag", "translation"])
@pytest.mark.parametrize("devices", [(DEVICE, "cpu"), ("cpu", DEVICE)])
def test_a_run_moves_between_devices(name, devices, tmp_path):
    first, second = devices
    task, options = options_of(name, tmp_path)
    options |= {k: v for k, v in STILL.items() if k == "dropout" or name in ("classify", "tag")}
    train_run(task, options, tmp_path / "moving", device=first, stop=stop_after(2))
    train_run(task, options, tmp_path / "moving", device=second)
    train_run(task, options, tmp_path / "cpu", device="cpu")
    moved, stayed = (regard.load(tmp_path / folder, "cpu") for folder in ("moving", "cpu"))
    for a, b in zip(moved.model.parameters(), stayed.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)
