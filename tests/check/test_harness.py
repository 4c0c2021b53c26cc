"""Faults planted in what a layer keeps, writes and returns; and what the check leaves behind."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.check import Inputs, Report, check

TIME, WIDTH = 7, 6
LEAK = {"padding content", "padding amount", "padding gradient"}


def failures(report: Report) -> set[str]:
    return {finding.property for finding in report.failed}


def draw(batch, time, generator):
    return torch.randn(batch, time, WIDTH, generator=generator)


class Residual(nn.Module):
    """x + f(x), with what else is planted: forward(x, mask) -> output."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask):
        return x + self.inner(x).tanh()


class BatchStatistics(Residual):
    def forward(self, x, mask):
        return super().forward(x, mask) - x[mask].mean(0)


class OwnStatistics(Residual):
    def forward(self, x, mask):
        weight = mask[..., None].to(x)
        mean = (x * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True).clamp_min(1)
        return super().forward(x, mask) - mean


class Remembers(Residual):
    last: Tensor | None = None

    def forward(self, x, mask):
        output = super().forward(x, mask)
        before, self.last = self.last, output.detach()
        return output if before is None else output + 0.1 * before.mean()


class Counts(Residual):
    """Remembers in a buffer, written in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x, mask):
        self.seen += 1
        return super().forward(x, mask) + self.seen


class AppendsToList(Residual):
    def __init__(self):
        super().__init__()
        self.history: list[Tensor] = []

    def forward(self, x, mask):
        self.history.append(x)
        return super().forward(x, mask) * len(self.history)


class DropsAlways(Residual):
    def forward(self, x, mask):
        return F.dropout(super().forward(x, mask), 0.3)


class DropsInTraining(Residual):
    def forward(self, x, mask):
        return F.dropout(super().forward(x, mask), 0.3, self.training)


class WritesToInput(Residual):
    def forward(self, x, mask):
        x += 1
        return super().forward(x, mask)


class OtherPathWithoutGradient(Residual):
    def forward(self, x, mask):
        output = super().forward(x, mask)
        return output if torch.is_grad_enabled() else output.half().float()


class StraightThroughPadding(Residual):
    """Adds something that is zero, and whose gradient is not."""

    def forward(self, x, mask):
        total = x.sum(1, keepdim=True)
        return super().forward(x, mask) + (total - total.detach())


class DividesByZero(Residual):
    def forward(self, x, mask):
        return super().forward(x, mask) / (x[..., :1] > 0).to(x) * (x[..., :1] > 0)


def residual_inputs(batch, generator):
    return {"x": draw(batch, TIME, generator)}


@pytest.mark.parametrize("mended", [Residual, OwnStatistics, DropsInTraining])
def test_nothing_is_found_in_faultless_layers(mended):
    assert failures(check(mended(), residual_inputs)) == set()


@pytest.mark.parametrize(
    ("faulty", "expected"),
    [
        (BatchStatistics, {"batch"}),
        (Remembers, {"repeat"}),
        (Counts, {"repeat"}),
        (AppendsToList, {"repeat"}),
        # Other sizes draw other numbers.
        (DropsAlways, {"repeat", "batch", "padding amount"}),
        (WritesToInput, {"inputs unchanged"}),
        (OtherPathWithoutGradient, {"autograd on or off"}),
        (StraightThroughPadding, {"padding gradient"}),
        (DividesByZero, {"finite", "empty rows"}),
    ],
)
def test_planted_fault_in_a_layer_is_named(faulty, expected):
    assert failures(check(faulty(), residual_inputs)) == expected


def test_future_that_shows_in_the_gradient_alone():
    def make_inputs(batch, generator):
        return Inputs({"x": draw(batch, TIME, generator)}, causal="t", padded="")

    assert failures(check(StraightThroughPadding(), make_inputs)) == {"future gradient"}
    assert failures(check(Residual(), make_inputs)) == set()


def test_torch_batch_norm_mixes_items_in_training_mode_only():
    class Normed(Residual):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(WIDTH)

        def forward(self, x, mask):
            return self.norm(super().forward(x, mask).mT).mT

    assert failures(check(Normed(), residual_inputs)) == set()
    assert failures(check(Normed(), residual_inputs, training=True)) == LEAK | {"batch"}


def test_tolerance_can_be_given():
    report = check(OtherPathWithoutGradient(), residual_inputs, tolerance=1e-2)
    assert report
    assert 1e-5 < report["autograd on or off"].deviation < 1e-2


def test_module_gradients_and_random_state_are_left_as_found():
    class Everything(Counts):
        last = None

        def __init__(self):
            super().__init__()
            self.norm, self.history = nn.BatchNorm1d(WIDTH), []

        def forward(self, x, mask):
            self.last, self.other = x, 1
            self.history.append(x)
            torch.rand(3)
            self.norm(x.mT)
            with torch.no_grad():
                self.inner.weight.add_(1)
            return super().forward(x, mask)

    module = Everything()
    module.norm.eval()
    module.inner.weight.grad = torch.ones(WIDTH, WIDTH)
    before, state = copy.deepcopy(module.state_dict()), torch.get_rng_state()
    assert "repeat" in failures(check(module, residual_inputs, training=True))
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert torch.equal(module.inner.weight.grad, torch.ones(WIDTH, WIDTH))
    assert module.inner.bias.grad is None
    assert module.training
    assert not module.norm.training
    assert module.last is None
    assert not hasattr(module, "other")
    assert module.history == []
    assert torch.equal(torch.get_rng_state(), state)


def test_module_is_left_as_found_when_a_call_fails():
    class Fails(Counts):
        def forward(self, x, mask):
            if self.seen == 1:
                raise KeyError("broken")
            return super().forward(x, mask)

    module = Fails()
    with pytest.raises(KeyError, match="broken") as raised:
        check(module, residual_inputs)
    assert module.seen == 0
    assert module.training
    assert raised.value.__notes__ == ["This happened while checking 'repeat'."]
