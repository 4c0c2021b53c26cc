"""A handful of examples learnt by heart, by one of each kind of model."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard.tasks.registry import TASKS
from regard.tasks.shared.splits import with_corpora
from regard.training.run import make_configs
from tests.tasks.tasks_data import write

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

SMALL = {"width": 24, "heads": 2, "dropout": 0.0, "max_length": 500}
LAYER = {"layers": 1}
LEARNT: list[tuple[str, dict[str, Any]]] = [
    ("translation", {"attention": "additive"}),
    ("translation", {"attention": "dot", "order": "luong", "input_feeding": True}),
    ("translation", {"local": "p", "cell": "lstm"}),
    ("translation", {"model": "transformer", **LAYER}),
    ("translation", {"encoder": "transformer", **LAYER}),
    ("language", {"attention": "additive", "cell": "lstm"}),
    ("language", {"model": "transformer", **LAYER}),
    ("classify", {"pooling": "weighted"}),
    ("classify", {"pooling": "sum", "encoder": "none"}),
    ("classify", {"pooling": "self", "encoder": "none", "experts": 3}),
    ("classify vectors", {"encoder": "transformer"}),
    ("several", {"pooling": "fixed", "queries": 2}),
    ("tag", {"encoder": "recurrent"}),
    ("tag", {"encoder": "self", "crf": False}),
    ("tag vectors", {"encoder": "none", "crf": False}),
]
OPTIONS: dict[str, dict[str, Any]] = {
    "translation": {"tokenizer": "word", "max_tokens": 40},
    "language": {"tokenizer": "word", "window_tokens": 9},
    "classify": {"max_tokens": 40},
    "tag": {"characters": 4, "character_features": 4},
}


@pytest.mark.parametrize(("kind", "options"), LEARNT, ids=lambda value: str(value))
def test_the_loss_goes_to_nothing(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    """A mean loss under 0.02 leaves no room for a mistake among so few examples."""
    name = {"several": "classify"}.get(kind, kind.split()[0])
    given = {"data": write(tmp_path, kind), **OPTIONS[name], **SMALL, **options}
    given |= {"several": True} if kind == "several" else {}
    given |= {"word_dropout": 0.0} if name in ("classify", "tag") else {}
    data, config, _ = make_configs(TASKS[name], given)
    TASKS[name].prepare(data, tmp_path, 1)
    task: Any = with_corpora(TASKS[name].load(data, config, tmp_path), tmp_path)
    model = task.build()
    batch = task.batch(task.plan(9 if name == "language" else 40, 1, 0)[0])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(250):
        loss, _ = task.loss(model, batch, 0.0, [])
        mean = loss.total / task.count(batch)
        mean.backward()
        if mean.item() < 0.02:
            return
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    raise AssertionError(f"the loss is still {mean.item():.3f}")
