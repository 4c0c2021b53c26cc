"""An imported run is a run: the commands work on it, and pretrained encoders train further."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.inference.import_run import import_run
from regard.training.run import train_run
from regard.training.tensor_files import read_tensors
from tests.pretrained.checkpoints import TEXTS, write_checkpoint

LABELS = {0: "bad", 1: "good"}
TAGS = {0: "O", 1: "B-PER", 2: "I-PER"}
CONLL = "the O\ncats B-PER\nsleep I-PER\n\na O\ndog B-PER\nbarks O\n\nnobody O\nknows O\n\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported")
    write_checkpoint(folder / "texts", "bert", id2label=LABELS)
    write_checkpoint(folder / "words", "roberta", "ForTokenClassification", id2label=TAGS)
    write_checkpoint(folder / "encoder", "bert", "Model")
    import_run(folder / "texts", folder / "classify")
    import_run(folder / "words", folder / "tag")
    rows = [(text, label) for text in TEXTS for label in ("bad", "good")] * 4
    (folder / "texts.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows))
    (folder / "words.conll").write_text(CONLL * 8)
    return folder


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_commands_work_on_an_imported_run(
    task: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, text = str(folder / task), "The unhappy cats are not sleeping ."
    data = str(folder / {"classify": "texts.tsv", "tag": "words.conll"}[task])
    assert main(["predict", run, "--text", text]) == 0
    assert main(["show", run, "--text", text]) == 0
    assert main(["explain", run, "--text", text]) == 0
    assert main(["explain", run, "--faithfulness", "--data", data, "--limit", "3"]) == 0
    assert main(["evaluate", run, "--data", data]) == 0
    assert main(["info", run]) == 0
    assert "imported" in capsys.readouterr().out
    assert main(["train", "--resume", run]) == 2
    assert main(["export", run]) == 0
    assert (folder / task / "onnx" / "model.onnx").exists()


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_explanations_are_of_the_text_without_the_tokens_around_it(task: str, folder: Path) -> None:
    trace = regard.load(folder / task).explain("The unhappy cats are not sleeping .")
    assert trace.attributions
    for attribution in trace.attributions:
        tokens = trace.sides[attribution.side].tokens
        assert len(attribution.values) == len(tokens)
        assert not any(token.special for token in tokens)
        assert np.isfinite(np.asarray(attribution.values, dtype=float)).all()


def test_a_headless_encoder_is_trained_further_and_resumes_to_the_bit(
    folder: Path, tmp_path: Path
) -> None:
    options = {
        "data": [str(folder / "texts.tsv")],
        "pretrained": str(folder / "encoder"),
        "learning_rate": 1e-3,
        "warmup": 2,
    }
    whole = regard.train("classify", out=tmp_path / "whole", epochs=4, **options)
    assert whole.config["training"]["schedule"] == "linear"
    stopping = iter([False, True])
    train_run("classify", {**options, "epochs": 4}, tmp_path / "parts", stop=lambda: next(stopping))
    parts = regard.train("classify", out=tmp_path / "parts", epochs=4, **options)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, parts.model.state_dict()[name])
    start, _ = read_plain(tmp_path / "whole" / "data" / "initial.safetensors")
    own = whole.model.state_dict()
    assert {name for name in own if name not in start} == {"decision.weight", "decision.bias"}
    assert not torch.equal(own["dense.weight"], start["dense.weight"])


def read_plain(path: Path) -> tuple[dict[str, torch.Tensor], None]:
    import safetensors.torch

    return safetensors.torch.load_file(path), None


def test_frozen_layers_keep_their_weights(folder: Path, tmp_path: Path) -> None:
    run = regard.train(
        "tag",
        [str(folder / "words.conll")],
        out=tmp_path / "run",
        pretrained=str(folder / "encoder"),
        freeze_layers=2,
        epochs=1,
        learning_rate=1e-2,
        warmup=0,
    )
    start, _ = read_plain(tmp_path / "run" / "data" / "initial.safetensors")
    weights, _ = read_tensors(tmp_path / "run" / "model.safetensors")
    for name, tensor in start.items():
        fixed = name.startswith(("inputs.", "encoder.stack.blocks.0", "encoder.stack.blocks.1"))
        assert torch.equal(weights[name], tensor) == fixed or not fixed
        if name == "encoder.stack.blocks.2.own.value.weight":
            assert not torch.equal(weights[name], tensor)
    assert run.predict("the cats sleep").output.count(" ") == 2


def test_options_that_the_pretrained_model_decides_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", "classify", "--data", str(folder / "texts.tsv"), "--out"]
    pretrained = ["--pretrained", str(folder / "encoder")]
    assert main([*arguments, str(tmp_path / "a"), *pretrained, "--width", "64"]) == 2
    assert "--width: does not apply with pretrained" in capsys.readouterr().err
    assert main([*arguments, str(tmp_path / "a"), "--freeze-layers", "1"]) == 2
    assert "--freeze-layers: requires pretrained" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_a_packed_run_leaves_out_the_weights_that_training_starts_from(
    folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    regard.train(
        "classify",
        [str(folder / "texts.tsv")],
        out=run,
        pretrained=str(folder / "encoder"),
        steps=1,
    )
    assert main(["pack", str(run), "--to", str(tmp_path / "packed")]) == 0
    assert not (tmp_path / "packed" / "data" / "initial.safetensors").exists()
    assert regard.load(tmp_path / "packed")("A dog barks.") in ("bad", "good")
    assert json.loads((tmp_path / "packed" / "data" / "pretrained.json").read_text())["width"] == 24
