"""The optimizer of the training loop, and the schedules of its learning rate."""

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from regard.training.config import HALVING, TrainingConfig

WARM_DOWN = 0.25
"""Last share of the budget over which the schedule warm_down falls to zero."""


def _plain(name: str) -> Any:
    """The method of torch's AdamW as it is written, without the wrappers around it."""
    return inspect.unwrap(getattr(torch.optim.AdamW, name))


class AdamW(torch.optim.AdamW):
    """Decoupled weight decay (Loshchilov and Hutter, 2019, https://arxiv.org/abs/1711.05101).

    The same updates as torch's class, whose methods are wrapped so that torch.compile leaves them
    alone. The wrappers import `torch._dynamo`, a second or two, although nothing is compiled here.

    Of `lazy` tables, an update changes only the rows with a gradient, whether that is sparse or
    not: the average gradients, the decay and the weights of all other rows wait until then.
    """

    def __init__(
        self, parameters: Iterable[Tensor], *, lazy: Iterable[Tensor] = (), **options: Any
    ):
        super().__init__(parameters, **options)
        self.lazy = {id(table) for table in lazy}

    add_param_group = _plain("add_param_group")
    zero_grad = _plain("zero_grad")
    state_dict = _plain("state_dict")
    load_state_dict = _plain("load_state_dict")
    _dense_step = torch.no_grad()(_plain("step"))

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update."""
        lazy = [
            (group, table, table.grad)
            for group in self.param_groups
            for table in group["params"]
            if id(table) in self.lazy and table.grad is not None
        ]
        for _, table, _ in lazy:
            table.grad = None
        loss = self._dense_step(closure)
        for group, table, gradient in lazy:
            self._update_rows(group, table, gradient)
            table.grad = gradient
        return loss

    @torch.no_grad()
    def _update_rows(self, group: dict[str, Any], table: Tensor, gradient: Tensor) -> None:
        """AdamW for the rows with a gradient; `step` counts the updates of the whole table."""
        state = self.state[table]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(table), torch.zeros_like(table)
        if gradient.is_sparse:
            gradient = gradient.coalesce()
            rows, values = gradient.indices()[0], gradient.values()
        else:
            rows = gradient.ne(0).any(1).nonzero()[:, 0]
            values = gradient[rows]
        wholes = table, state["exp_avg"], state["exp_avg_sq"]
        weights, mean, square = parts = [whole.index_select(0, rows) for whole in wholes]
        adamw(
            [weights],
            [values],
            [mean],
            [square],
            [],
            [state["step"]],
            foreach=False,
            fused=bool(group["fused"]),
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )
        for whole, part in zip(wholes, parts, strict=True):
            _set_rows(whole, rows, part)


def _set_rows(whole: Tensor, rows: Tensor, part: Tensor) -> None:
    """Replace some rows; numpy does that three times as fast as torch on the CPU."""
    if whole.device.type == "cpu" and whole.dtype in (torch.float32, torch.float64):
        whole.detach().numpy()[rows.numpy()] = part.numpy()
    else:
        whole.index_copy_(0, rows, part)


@torch.no_grad()
def clip_gradients(parameters: Iterable[Tensor], maximum: float) -> float:
    """Scale all gradients together so that their norm is `maximum` at most; their norm before.

    torch's own function does not take sparse gradients.
    """
    given = [parameter for parameter in parameters if parameter.grad is not None]
    if not any(parameter.grad.is_sparse for parameter in given if parameter.grad is not None):
        return float(nn.utils.clip_grad_norm_(given, maximum))
    values = []
    for parameter in given:
        gradient = parameter.grad
        assert gradient is not None
        if gradient.is_sparse:
            parameter.grad = gradient = gradient.coalesce()
        values.append(gradient._values() if gradient.is_sparse else gradient)
    norm = nn.utils.get_total_norm(values)
    factor = (maximum / (norm + 1e-6)).clamp(max=1.0)
    for value in values:
        value.mul_(factor)
    return float(norm)


def learning_rate(config: TrainingConfig, step: int, share: float, halvings: int) -> float:
    """The learning rate of the update after `step` others, with this share of the budget used up.

    >>> config = TrainingConfig(learning_rate=1.0, warmup=4, schedule="inverse_root")
    >>> [learning_rate(config, step, 0.0, 0) for step in (0, 3, 15)]
    [0.25, 1.0, 0.5]
    """
    warmup = min(1.0, (step + 1) / max(1, config.warmup))
    decay = 1.0
    if config.schedule == "inverse_root":
        decay = min(1.0, (max(1, config.warmup) / (step + 1)) ** 0.5)
    if config.schedule in HALVING:
        decay = 0.5**halvings
    if config.schedule == "warm_down":
        decay *= min(1.0, (1.0 - share) / WARM_DOWN)
    if config.schedule == "cosine":
        decay = 0.5 * (1.0 + math.cos(math.pi * share))
    if config.schedule == "linear":
        decay = max(0.0, 1.0 - share)
    return config.learning_rate * warmup * decay
