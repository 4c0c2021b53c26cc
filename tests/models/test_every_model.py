"""What holds of all models of all kinds: finite gradients, padding, saving, and our own check."""

from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from regard.attention.scores import Location
from regard.check import Inputs, check
from regard.layers import MemoryAttention, MultiHead
from regard.models import Classifier, Tagger
from regard.models.past_attention import PastAttention
from tests.models import catalogue
from tests.models.catalogue import ALL, BATCH, MAKERS, SCORES, inputs, make, one, own_score, run

CHECKED = [(task, name) for task, name in ALL if task != "classifier" or "transformer" not in name]
# Places out of its reach are unseen; with none in reach, weights are zero.
LOCAL = ["receptive field", "weights sum"]
SCORED = [
    ("translator", {}),
    ("translator", {"order": "luong"}),
    ("translator", {"model": "transformer", "layers": 1}),
    ("translator", {"encoder": "transformer", "layers": 1}),
    ("translator", {"decoder": "transformer", "layers": 1}),
    ("language", {}),
    ("language", {"split": True}),
    ("language", {"model": "transformer", "layers": 1}),
    ("classifier", {"pooling": "weighted"}),
    ("classifier", {"pooling": "fixed", "encoder": "none", "queries": 3}),
    ("classifier", {"pooling": "self", "encoder": "self"}),
    ("tagger", {"encoder": "self"}),
    ("tagger", {"encoder": "transformer"}),
]


def finite(model: nn.Module) -> None:
    output = run(model, inputs(), need_weights=True)
    loss = output.logits.logsumexp(-1).sum()
    if output.balance is not None:
        loss = loss + output.balance
    loss.backward()
    assert output.logits.isfinite().all()
    for name, weights in output.weights.items():
        assert weights.ndim == 4, name
        assert len(weights) == BATCH
        assert weights.isfinite().all()
        assert (weights >= 0).all()
    no_keys = any(isinstance(part, Location) for part in model.modules())
    for name, parameter in model.named_parameters():
        unused = name.startswith(("vector.", "crf.")) or (no_keys and ".key." in name)
        assert unused or parameter.grad is not None, f"{name} takes no part"
        assert parameter.grad is None or parameter.grad.isfinite().all(), name


@pytest.mark.parametrize(("task", "name"), ALL)
def test_every_kind_has_finite_gradients_everywhere(task: str, name: str) -> None:
    finite(make(task, name))


@pytest.mark.parametrize("score", [*SCORES, own_score], ids=[*SCORES, "a user's"])
@pytest.mark.parametrize(("task", "config"), SCORED)
def test_every_score_serves_every_kind(task: str, config: dict[str, Any], score: Any) -> None:
    named = {"attention": score} if isinstance(score, str) else {"score": score}
    finite(MAKERS[task][0](**(config | named)))


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(("task", "name"), ALL)
def test_a_users_score_is_called(task: str, name: str) -> None:
    calls = []

    def counting(query: Tensor, key: Tensor) -> Tensor:
        calls.append(query.shape)
        return own_score(query, key)

    model = make(task, name, score=counting)
    run(model, inputs())
    looks = [
        part
        for part in model.modules()
        if isinstance(part, MultiHead | MemoryAttention | PastAttention)
    ]
    weighs = isinstance(model, Classifier) and model.pooling.kind in ("weighted", "fixed")
    assert bool(calls) == bool(looks or weighs)


@pytest.mark.parametrize(("task", "name"), ALL)
def test_padding_and_neighbours_change_nothing(task: str, name: str) -> None:
    model, batch = make(task, name).double().eval(), inputs()
    together = run(model, batch, need_weights=True)
    for row in range(BATCH):
        alone = run(model, one(batch, row), need_weights=True)
        real = int(batch["lengths"][row]) if isinstance(model, Tagger) else None
        torch.testing.assert_close(together.logits[row, :real], alone.logits[0])
        assert together.weights.keys() == alone.weights.keys()
        for place, look in alone.weights.items():
            _, _, queries, keys = look.shape
            padded = together.weights[place][row]
            torch.testing.assert_close(padded[:, :queries, :keys], look[0])
            assert not padded[:, :queries, keys:].any()


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(("task", "name"), ALL)
def test_looking_changes_nothing(task: str, name: str) -> None:
    model, batch = make(task, name).double().eval(), inputs()
    blind = run(model, batch)
    assert not blind.weights
    torch.testing.assert_close(blind.logits, run(model, batch, need_weights=True).logits)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(("task", "name"), ALL)
def test_saved_and_loaded_it_is_the_same(task: str, name: str, tmp_path: Any) -> None:
    model, batch = make(task, name).eval(), inputs()
    state = model.state_dict()
    storages = [tensor.data_ptr() for tensor in state.values() if tensor.numel()]
    assert len(storages) == len(set(storages)), "a tensor is saved twice"
    save_file(state, tmp_path / "model.safetensors")
    other = make(task, name).eval()
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(run(model, batch).logits, run(other, batch).logits)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(("task", "name"), CHECKED)
def test_regard_check_finds_nothing(task: str, name: str) -> None:
    model = make(task, name).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # what begins at zero hides much
    check(
        model,
        lambda batch, generator: _made(task, model, batch, generator),
        _called(task),
        skip=LOCAL if "local" in name else [],
    ).raise_if_failed()


def _made(task: str, model: nn.Module, batch: int, generator: torch.Generator) -> Inputs:
    def words(high: int, *shape: int) -> Tensor:
        return torch.randint(1, high, (batch, *shape), generator=generator)

    source = words(catalogue.SOURCE_WORDS, catalogue.SOURCE)
    target = words(catalogue.TARGET_WORDS, catalogue.TARGET)
    if task == "translator":
        looks = {
            place: "b _ t s" if place.endswith("source") else "b _ t t"
            for place in run(model, inputs(), need_weights=True).weights
            if not place.startswith("encoder") and not place.endswith("experts")
        }
        return Inputs(
            {"source": source, "target": target},
            axes={"source": "b s", "target": "b t"},
            time="s t",
            output="b t v",
            weights=looks or None,
            causal="t",
            padded="s",
        )
    if task == "language":
        looked = run(model, inputs(), need_weights=True).weights
        looks = {place: "b _ t t" for place in looked if place.endswith("self")}
        return Inputs(
            {"target": target}, output="b t v", weights=looks or None, causal="t", padded=""
        )
    if task == "tagger":
        spelt = words(catalogue.CHARACTERS, catalogue.SOURCE, catalogue.LETTERS)
        return Inputs({"source": source, "characters": spelt}, output="b t l")
    return Inputs({"source": source}, output="b c")


def _called(task: str) -> Any:
    def call(model: nn.Module, given: Inputs, need_weights: bool) -> Any:
        if task == "translator":
            arguments = given["source"], given.lengths["s"], given["target"], given.lengths["t"]
            output = model(*arguments, need_weights=need_weights)
        elif task == "language":
            state = model.start(len(given["target"]))
            output, _ = model(given["target"], state, need_weights=need_weights)
        elif task == "tagger":
            output = model(given["source"], given.lengths["t"], given["characters"])
        else:
            output = model(given["source"], given.lengths["t"])
        looks = {place: look for place, look in output.weights.items() if _paired(place)}
        return output.logits, looks if need_weights and looks else None

    return call


def _paired(place: str) -> bool:
    """Whether the check can say of these weights who looks at whom."""
    return (place.startswith("decoder") and not place.endswith("experts")) or place == "source"


@pytest.mark.parametrize("task", catalogue.MAKERS)
def test_the_default_model_of_every_task_attends(task):
    maker, _ = catalogue.MAKERS[task]
    assert catalogue.run(maker(), catalogue.inputs(), need_weights=True).weights
