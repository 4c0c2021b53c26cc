"""Exported graphs of imported models in onnxruntime, held against the models themselves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.data.batches import pad
from regard.inference.export import graphs_of
from regard.inference.import_run import import_run
from tests.inference.export.test_onnx import assert_same, documented, following, opened, run
from tests.pretrained.checkpoints import FAMILIES, FAMILIES_OF_DECODERS, TEXTS, write_checkpoint
from tests.pretrained.translator_checkpoints import PAIRS, TRANSLATORS, write_translator

__all__ = ["documented"]
pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
LABELS = {0: "bad", 1: "good", 2: "neither"}
HEADS = {"gpt2": "LMHeadModel"}


def imported(folder: Path, family: str, head: str, **settings: Any) -> Any:
    write_checkpoint(folder / "hf", family, head, **settings)
    return regard.load(import_run(folder / "hf", folder / "run").path)


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_encoders_have_the_same_outputs_and_weights(family: str, tmp_path: Path) -> None:
    texts = imported(tmp_path / "a", family, "ForSequenceClassification", id2label=LABELS)
    words, lengths = texts.task._pad(texts.task._read([*TEXTS, ""]))
    output = texts.model(words, lengths, need_weights=True)
    (session,) = [opened(graph) for graph in graphs_of(texts.model).values()]
    found = run(session, {"words": words, "lengths": lengths})
    assert_same(found, output.logits, output.weights)
    tagger = imported(tmp_path / "b", family, "ForTokenClassification", id2label=LABELS)
    words, lengths, tokens = tagger.task.inputs([text.split() for text in TEXTS])
    output = tagger.model(words, lengths, tokens, need_weights=True)
    (session,) = [opened(graph) for graph in graphs_of(tagger.model).values()]
    assert_same(run(session, {"tokens": tokens}), output.logits, output.weights)


def test_the_mean_of_all_tokens(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "hf", "bert", "Model", hidden_act="gelu_new")
    (tmp_path / "hf" / "1_Pooling").mkdir()
    (tmp_path / "hf" / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    data = tmp_path / "texts.tsv"
    data.write_text("".join(f"{text}\t{label}\n" for text in TEXTS for label in ("no", "yes") * 2))
    given = {"pretrained": str(tmp_path / "hf"), "out": tmp_path / "run", "steps": 1}
    trained = regard.train("classify", [str(data)], **given)
    assert trained.model.architecture.pooling == "mean"
    words, lengths = trained.task._pad(trained.task._read(TEXTS))
    with torch.no_grad():
        output = trained.model.eval()(words, lengths, need_weights=True)
    (session,) = [opened(graph) for graph in graphs_of(trained.model).values()]
    assert_same(run(session, {"words": words, "lengths": lengths}), output.logits, output.weights)


@pytest.mark.parametrize("family", FAMILIES_OF_DECODERS)
@torch.no_grad()
def test_language_models_have_the_same_outputs_and_weights(family: str, tmp_path: Path) -> None:
    loaded = imported(tmp_path, family, HEADS.get(family, "ForCausalLM"))
    start, session = (opened(graph) for graph in graphs_of(loaded.model).values())
    tokens, _ = pad([np.array(ids[:9]) for ids in loaded.task.tokenizer.ids(TEXTS)])
    state = loaded.model.start(len(tokens))
    passed = run(start, {"batch": [len(tokens)]})
    for piece in (tokens[:, :4], tokens[:, 4:5], tokens[:, 5:]):
        output, state = loaded.model(piece, state, need_weights=True)
        found = run(session, passed | {"tokens": piece})
        assert_same(found, output.logits, output.weights)
        passed = following(found)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_an_imported_language_model_writes_the_same_elsewhere(
    family: str, tmp_path: Path, documented: dict[str, Any]
) -> None:
    loaded = imported(tmp_path, family, HEADS.get(family, "ForCausalLM"))
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "onnx")]) == 0
    prompt = "The dog"
    found = documented["continue_text"](tmp_path / "onnx", prompt, limit=8)
    expected = loaded.predict(prompt, tokens=8, temperature=0.0).output
    assert found == expected


@pytest.mark.parametrize("kind", TRANSLATORS)
@torch.no_grad()
def test_translators_have_the_same_outputs_and_weights(kind: str, tmp_path: Path) -> None:
    write_translator(tmp_path / "hf", kind)
    loaded: Any = regard.load(import_run(tmp_path / "hf", tmp_path / "run").path)
    encoder, step = (opened(graph) for graph in graphs_of(loaded.model).values())
    source, lengths = pad([np.array(row) for row in loaded.task.source.ids([a for a, _ in PAIRS])])
    context = loaded.model.encode(source, lengths, need_weights=True)
    state = loaded.model.start(context)
    passed = run(encoder, {"source": source, "lengths": lengths})
    assert_same(passed, context.lengths, context.weights, "source.lengths")
    for number in (2, 7, 12, 5):
        words = torch.full((len(PAIRS),), number)
        chances, state, weights = loaded.model.step(words, state)
        found = run(step, passed | {"token": words})
        assert_same(found, chances, weights, "log_probabilities")
        passed |= following(found)


def test_an_imported_translator_writes_the_same_elsewhere(
    tmp_path: Path, documented: dict[str, Any]
) -> None:
    write_translator(tmp_path / "hf", "marian", 1.0)
    loaded = regard.load(import_run(tmp_path / "hf", tmp_path / "run").path)
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "onnx")]) == 0
    for text in ("A dog barks.", "The dog sleeps."):  # longer ones end at the last position
        found, _ = documented["translate"](tmp_path / "onnx", text)
        assert found.strip() == loaded.predict(text, beam=1).output
