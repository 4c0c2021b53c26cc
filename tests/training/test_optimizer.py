"""The optimizer makes the updates of torch's own class."""

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from regard.training.optimizer import AdamW


def _train(kind: type[torch.optim.AdamW]) -> tuple[torch.Tensor, dict]:
    torch.manual_seed(0)
    layer = torch.nn.Linear(5, 3)
    options = {"lr": 0.1, "betas": (0.9, 0.98), "weight_decay": 0.01, "fused": True}
    optimizer = kind(layer.parameters(), **options)
    for _ in range(4):
        layer(torch.randn(7, 5)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        again = kind(layer.parameters(), **options)
        again.load_state_dict(optimizer.state_dict())
        optimizer = again
    return layer.weight.detach(), optimizer.state_dict()


def test_updates_and_states_equal_those_of_torch_bit_for_bit():
    weight, state = _train(AdamW)
    expected, expected_state = _train(torch.optim.AdamW)
    assert torch.equal(weight, expected)
    assert state["param_groups"] == expected_state["param_groups"]
    for number, values in expected_state["state"].items():
        for name, value in values.items():
            assert torch.equal(state["state"][number][name], value)


def test_an_update_calls_the_hooks_of_all_optimizers():
    """The native decoders count updates by such a hook."""
    calls = []
    hook = register_optimizer_step_post_hook(lambda *_: calls.append(1))
    try:
        _train(AdamW)
    finally:
        hook.remove()
    assert len(calls) == 4
