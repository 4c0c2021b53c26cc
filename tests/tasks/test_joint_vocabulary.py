"""One vocabulary for both sides of a translator, and one table of word vectors."""

import pytest
import torch

import regard
from regard.cli import main
from regard.models import Translator, TranslatorConfig
from regard.training.tensor_files import read_tensors

PAIRS = [("a b c 7", "x y 7"), ("b c", "y z"), ("c 9", "z 9"), ("a 4", "x 4")] * 6
OPTIONS = {"width": 12, "heads": 2, "steps": 3, "tokenizer": "word", "batch_tokens": 40}


@pytest.fixture(scope="module", params=["recurrent", "transformer"])
def run(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("joint") / "run"
    return regard.train(
        "translation", data=PAIRS, out=out, joint=True, model=request.param, layers=1, **OPTIONS
    )


def test_both_sides_have_the_same_tokens_and_vectors(run):
    task, model = run.task, run.model
    assert task.source.vocabulary() == task.target.vocabulary()
    assert {"a", "x", "7"} <= set(task.source.vocabulary())
    assert model.source.words.weight is model.target.words.weight
    weights, _ = read_tensors(run.folder.model)
    assert torch.equal(weights["source.words.weight"], weights["target.words.weight"])
    size = task.source.size * 12
    separate = Translator(task.config, task.source.size, task.target.size)
    numbers = [sum(p.numel() for p in one.parameters()) for one in (separate, model)]
    assert numbers[0] - numbers[1] == size


def test_vectors_learn_from_the_source_and_from_the_output():
    torch.manual_seed(1)
    model = Translator(TranslatorConfig(width=8, dropout=0.0), 9, 9, joint=True)
    source, target = torch.tensor([[4, 5]]), torch.tensor([[6, 7]])
    logits = model(source, torch.tensor([2]), target).logits
    logits[0, -1, 8].backward()
    gradient = model.target.words.weight.grad
    assert gradient is not None
    assert (gradient[[4, 5, 6, 7, 8]].abs().sum(1) > 0).all()  # source, target, output
    assert gradient[3].abs().sum() == 0


def test_a_joint_run_is_used_like_others(run, tmp_path):
    again = regard.load(run.folder.path)
    assert again.model.source.words.weight is again.model.target.words.weight
    assert again(["a b 7"]) == run(["a b 7"])
    assert again.explain("a b 7").attributions
    assert main(["export", str(run.folder.path), "--out", str(tmp_path / "onnx")]) == 0


def test_sizes_of_a_joint_vocabulary_must_agree():
    with pytest.raises(ValueError, match="a joint vocabulary of 9 and 8 words"):
        Translator(TranslatorConfig(), 9, 8, joint=True)
