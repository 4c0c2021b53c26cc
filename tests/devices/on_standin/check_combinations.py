"""Every task with models, scores and structures of all kinds learns and answers on the device."""

from typing import Any

import pytest
import torch
from torch import nn

from regard.devices import device_of, to_device
from tests.tasks.test_combinations import ALL, COMBINATIONS, Options, asked, prepared, task_of

__all__ = ["prepared"]
pytestmark = pytest.mark.usefixtures("shapes_unchecked")


def gradients(task: Any, model: nn.Module) -> list[torch.Tensor]:
    """Those of one batch, without dropout of any kind."""
    batch = to_device(task.batch(task.plan(400, 1, 0)[0]), model)
    loss, _ = task.loss(model.eval(), batch, 0.1, [])
    (loss.total if loss.extra is None else loss.total + loss.extra).backward()
    return [p.grad.cpu() for p in model.parameters() if p.grad is not None]


@pytest.mark.parametrize(("kind", "options"), ALL[::3])  # all of them take minutes
def test_it_learns_and_answers_as_on_the_cpu(kind: str, options: Options, prepared: Any) -> None:
    task = task_of(kind, options, prepared)
    torch.manual_seed(1)
    cpu = task.build()
    here = task.build()
    here.load_state_dict(cpu.state_dict())
    here.to("standin")
    assert device_of(here).type == "standin"
    for found, expected in zip(gradients(task, here), gradients(task, cpu), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4)
    texts = asked(kind, prepared)
    more = {"language": {"tokens": 4}, "translation": {"beam": 2}}.get(COMBINATIONS[kind][0], {})
    answers, same = (task.predict(model.eval(), texts, **more) for model in (here, cpu))
    assert [one.output for one in answers] == [one.output for one in same]
