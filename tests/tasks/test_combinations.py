"""Every task with every model, score and structure: it learns, is saved, loaded, used, checked."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.check import Inputs, check
from regard.models import Classifier, LanguageModel, Tagger, Translator
from regard.tasks.registry import TASKS
from regard.tasks.shared.splits import with_corpora
from regard.training.run import make_configs
from tests.tasks.tasks_data import write

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

SCORES = ("dot", "scaled_dot", "cosine", "bilinear", "mlp", "additive", "location")
CELLS = ("elman", "gru", "lstm")
FORMER = {"model": "transformer", "layers": 1}
Options = dict[str, Any]

TRANSLATION: list[Options] = [
    *({"attention": score, "order": order} for score in SCORES for order in ("bahdanau", "luong")),
    *({"attention": score, **FORMER} for score in SCORES),
    *({"attention": "none", "cell": cell} for cell in CELLS),
    *(
        {"input_feeding": feed, "order": order, "cell": cell}
        for feed in (True, False)
        for order in ("bahdanau", "luong")
        for cell in CELLS
    ),
    *({"local": way, "order": order} for way in "mp" for order in ("bahdanau", "luong")),
    *({"encoder": "transformer", "layers": 1, "attention": score} for score in ("dot", "none")),
    *({"decoder": "transformer", "layers": 1, "cell": cell} for cell in CELLS),
    *(
        {"encoder": encoder, "decoder": decoder, "layers": 1}
        for encoder in ("none", "self")
        for decoder in ("recurrent", "transformer")
    ),
    {**FORMER, "experts": 3},
    {**FORMER, "experts": 3, "top_k": 1},
    {**FORMER, "norm": "post", "layers": 2},
    *({"normalize": name} for name in ("sparsemax", "entmax15", "sigmoid", "top_k(2)")),
    {"tied": False},
]
LANGUAGE: list[Options] = [
    *({"attention": score, "split": split} for score in SCORES for split in (True, False)),
    *({"attention": score, **FORMER} for score in SCORES),
    *({"cell": cell, "first": first} for cell in CELLS for first in ("zero", "learned")),
    *({"cell": cell, "attention": "additive", "window": 2} for cell in CELLS),
    {"layers": 2, "tied": False},
    {"word_size": 5},
    {**FORMER, "experts": 3, "top_k": 2},
]
CONDITION: list[Options] = [{"cell": cell} for cell in CELLS] + [FORMER, {"attention": "dot"}]
CLASSIFY: list[Options] = [
    *(
        {"pooling": pooling, "encoder": encoder}
        for pooling in ("sum", "mean", "max", "weighted", "fixed", "self")
        for encoder in ("none", "self", "recurrent", "transformer")
    ),
    *(
        {"attention": score, "pooling": pooling, "encoder": "none"}
        for score in SCORES
        for pooling in ("weighted", "fixed", "self")
    ),
    *({"attention": score, "encoder": "transformer"} for score in SCORES),
    *({"cell": cell, "layers": 2} for cell in CELLS),
    *({"encoder": encoder, "experts": 3} for encoder in ("none", "recurrent", "transformer")),
    {"experts": 3, "top_k": 1},
    {"pooling": "fixed", "queries": 3},
    *({"normalize": name} for name in ("sparsemax", "entmax15", "sigmoid", "top_k(2)")),
]
TAG: list[Options] = [
    *(
        {"encoder": encoder, "crf": crf}
        for encoder in ("none", "self", "recurrent", "recurrent_self", "transformer")
        for crf in (True, False)
    ),
    *(
        {"attention": score, "encoder": encoder}
        for score in SCORES
        for encoder in ("self", "transformer")
    ),
    *({"cell": cell, "crf": False} for cell in CELLS),
    {"characters": 0},
    {"encoder": "transformer", "experts": 3, "crf": False},
]
FEW: list[Options] = [{}, {"encoder": "transformer"}, {"encoder": "self"}, {"encoder": "none"}]
COMBINATIONS: dict[str, tuple[str, Options, list[Options]]] = {
    "translation": ("translation", {"vocabulary": 300, "max_tokens": 40}, TRANSLATION),
    "language": ("language", {"vocabulary": 300, "window_tokens": 7}, LANGUAGE),
    "condition": ("language", {"tokenizer": "word", "condition": "label"}, CONDITION),
    "condition vectors": ("language", {"tokenizer": "word", "condition": "v.npy"}, CONDITION),
    "classify": ("classify", {"max_tokens": 40}, CLASSIFY),
    "several": ("classify", {"max_tokens": 40, "several": True}, FEW),
    "classify vectors": ("classify", {"max_tokens": 40}, FEW),
    "tag": ("tag", {"characters": 4, "character_features": 4}, TAG),
    "tag vectors": ("tag", {}, FEW),
}
ALL = [
    pytest.param(kind, one, id=f"{kind} {' '.join(f'{k}={v}' for k, v in one.items())}")
    for kind, (_, _, found) in COMBINATIONS.items()
    for one in found
]
CHECKED = [  # a check of a translator takes a second: one score for each structure
    one
    for one in ALL
    if one.values[0] != "translation"
    or not {"attention", "normalize", "cell", "tied"} & one.values[1].keys()
    or one.values[1].get("attention") in ("none", "location")
]
SMALL = {"width": 8, "heads": 2, "dropout": 0.0, "max_length": 500}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Options]]:
    """The data of each task, read and tokenised once."""
    made = {}
    for kind, (task, options, _) in COMBINATIONS.items():
        folder = tmp_path_factory.mktemp(kind.replace(" ", "-"))
        given = {"data": write(folder, kind), **options}
        if options.get("condition") == "v.npy":
            given["condition"] = str(folder / "v.npy")
        TASKS[task].prepare(make_configs(TASKS[task], given)[0], folder, 1)
        made[kind] = folder, given
    return made


def task_of(kind: str, options: Options, prepared: Any, **more: Any) -> Any:
    folder, given = prepared[kind]
    name = COMBINATIONS[kind][0]
    known = {**given, **SMALL, **options, **more}
    if "window" not in options and name == "language":
        known["window"] = 4
    data, model, _ = make_configs(TASKS[name], known)
    return with_corpora(TASKS[name].load(data, model, folder), folder)


def learn(task: Any, model: nn.Module, steps: int, rate: float) -> list[float]:
    """The losses of some steps on one batch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    batch = task.batch(task.plan(400, 1, 0)[0])
    losses = []
    model.train()
    for _ in range(steps):
        loss, _ = task.loss(model, batch, 0.0, [])
        mean = loss.total / task.count(batch)
        (mean if loss.extra is None else mean + loss.extra).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(mean.detach()))
    model.eval()
    return losses


def asked(kind: str, prepared: Any) -> list[Any]:
    folder, _ = prepared[kind]
    if kind == "condition":
        return ["pos", "neg\tthe film"]
    if kind == "condition vectors":
        return [np.array([1.0, 0.5]), f"{folder}/v.npy[2]\tthe film"]
    if "vectors" in kind:
        return [np.ones((4, 3)), np.zeros(3), f"{folder}/x.npy[2]"]
    return ["the film is good", "nothing known"]


@pytest.mark.parametrize(("kind", "options"), ALL)
def test_it_learns_and_is_saved_loaded_and_used(
    kind: str, options: Options, prepared: Any, tmp_path: Path
) -> None:
    task = task_of(kind, options, prepared)
    model = task.build()
    losses = learn(task, model, 5, 0.02)
    assert np.isfinite(losses).all()
    assert min(losses[1:]) < losses[0]
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    again = task.build().eval()
    again.load_state_dict(load_file(tmp_path / "model.safetensors"))
    texts = asked(kind, prepared)
    more = {"language": {"tokens": 4}, "translation": {"beam": 2}}.get(COMBINATIONS[kind][0], {})
    found = task.predict(model, texts, **more)
    assert len(found) == len(texts)
    assert found == task.predict(again, texts, **more)
    if kind.startswith("tag") and "vectors" not in kind:
        assert [len(one.output.split()) for one in found] == [4, 2]


@pytest.mark.parametrize(("kind", "options"), CHECKED)
def test_regard_check_finds_nothing(kind: str, options: Options, prepared: Any) -> None:
    model = task_of(kind, options, prepared).build().double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # what begins at zero hides much
    skip = ["receptive field", "weights sum"] if options.get("local") else []
    check(model, lambda b, g: inputs_for(model, b, g), call, skip=skip).raise_if_failed()


def inputs_for(model: nn.Module, batch: int, generator: torch.Generator) -> Inputs:
    def words(high: int, *shape: int) -> Tensor:
        return torch.randint(4, high, (batch, *shape), generator=generator)

    if isinstance(model, Translator):
        return Inputs(
            {"source": words(99, 7), "target": words(99, 5)},
            axes={"source": "b s", "target": "b t"},
            time="s t",
            output="b t v",
            causal="t",
            padded="s",
        )
    if isinstance(model, LanguageModel):
        known = model.embedding.words.num_embeddings
        return Inputs({"target": words(known, 7)}, output="b t v", causal="t", padded="")
    vectors = getattr(model.inputs, "project", None)
    if not hasattr(model.inputs, "words"):
        assert vectors is not None
        size = vectors.in_features
        source = torch.randn(batch, 7, size, generator=generator, dtype=torch.float64)
    else:
        source = words(model.inputs.words.num_embeddings, 7)
    given = {"source": source}
    if isinstance(model, Tagger):
        given["characters"] = words(9, 7, 3)
        return Inputs(given, output="b t l")
    return Inputs(given, output="b c")


def call(model: nn.Module, given: Inputs, need_weights: bool) -> Any:
    if isinstance(model, Translator):
        arguments = given["source"], given.lengths["s"], given["target"], given.lengths["t"]
        return model(*arguments).logits
    if isinstance(model, LanguageModel):
        batch = len(given["target"])
        about: dict[str, Tensor] = {}
        if model.label is not None:
            about["label"] = torch.zeros(batch, dtype=torch.long)
        if model.vector is not None:
            about["vector"] = torch.ones(batch, model.vector.in_features, dtype=torch.float64)
        return model(given["target"], model.start(batch, **about))[0].logits
    if isinstance(model, Tagger):
        return model(given["source"], given.lengths["t"], given["characters"]).logits
    assert isinstance(model, Classifier)
    return model(given["source"], given.lengths["t"]).logits
