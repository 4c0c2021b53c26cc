"""Networks are large: training builds one and loading the result another, and no more.

What is built on torch's meta device, to compare sizes with the file, takes no memory and does not
count.
"""

from collections import Counter

import pytest
import torch
from torch import nn

import regard
from tests.training.tiny import OPTIONS, write_data


@pytest.mark.parametrize("task", OPTIONS)
def test_training_builds_two_networks_and_loading_builds_one(task, tmp_path, monkeypatch):
    data, options = write_data(tmp_path, task), OPTIONS[task] | {"steps": 1}
    run = regard.train(task, data, out=tmp_path / "first", **options)
    modules = len(list(run.model.modules()))
    calls: Counter[str] = Counter()

    def count(owner: type, method: str, name: str) -> None:
        original = getattr(owner, method)

        def counted(*arguments, **keywords):
            calls[name] += torch.get_default_device().type != "meta"
            return original(*arguments, **keywords)

        monkeypatch.setattr(owner, method, counted)

    count(type(run.task), "build", "builds")
    count(type(run.model), "__init__", "networks")
    count(nn.Module, "__init__", "modules")
    regard.load(tmp_path / "first")
    assert calls == {"builds": 1, "networks": 1, "modules": modules}
    calls.clear()
    regard.train(task, data, out=tmp_path / "second", **options)
    objective = 1  # the loss as a module, around the network
    assert calls == {"builds": 2, "networks": 2, "modules": 2 * modules + objective}
