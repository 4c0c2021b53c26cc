"""The contract of the inputs: axes by name, and every mistake named."""

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.check import Inputs, Report, check

TIME, WIDTH = 7, 6
LEAK = {"padding content", "padding amount", "padding gradient"}


def failures(report: Report) -> set[str]:
    return {finding.property for finding in report.failed}


def draw(batch, time, generator):
    return torch.randn(batch, time, WIDTH, generator=generator)


def same(x):
    return x


def mean_pool(x, mask):
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp_min(1)


class Recurrent(nn.Module):
    """A two-way GRU as encoder: all states by place, and the last ones."""

    def __init__(self, packed):
        super().__init__()
        self.packed = packed
        self.recur = nn.GRU(WIDTH, WIDTH, bidirectional=True, batch_first=True)

    def forward(self, x, lengths):
        if not self.packed:
            states, final = self.recur(x)
        else:
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            states, final = self.recur(packed)
            states, _ = pad_packed_sequence(states, batch_first=True)
        return {"states": states, "final": final}


def test_recurrent_encoder_with_two_outputs():
    def make_inputs(batch, generator):
        x = draw(batch, TIME, generator)
        return Inputs({"x": x}, output={"states": "b t w", "final": "_ b w"})

    report = check(Recurrent(packed=True), make_inputs)
    report.raise_if_failed()
    assert report["empty rows"].where.startswith("an empty t is refused: RuntimeError: Length of")
    assert failures(check(Recurrent(packed=False), make_inputs)) == LEAK


def test_causal_encoder_may_have_a_summary_of_all():
    def make_inputs(batch, generator):
        output = {"states": "b t w", "final": "b w"}
        weights = {"summary": "b t", "each": "b t t"}
        x = draw(batch, TIME, generator)
        return Inputs({"x": x}, output=output, weights=weights, causal="t")

    def encode(x, mask):
        allowed = mask[:, None, :] & torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        each = allowed / allowed.sum(-1, keepdim=True).clamp_min(1)
        summary = mask / mask.sum(-1, keepdim=True).clamp_min(1)
        return each, summary

    class Encoded:
        def __init__(self, x, each, summary):
            self.output = {"states": each @ x, "final": (summary[:, None] @ x)[:, 0]}
            self.weights = {"each": each, "summary": summary}

    report = check(lambda x, mask: Encoded(x, *encode(x, mask)), make_inputs)
    report.raise_if_failed()
    assert all(report[name].status == "passed" for name in ("future", "weights on future"))

    def to_the_end(x, mask):
        each, summary = encode(x, mask)
        return Encoded(x, summary[:, None, :].expand_as(each), summary)

    expected = {"future", "future gradient", "weights on future"}
    assert failures(check(to_the_end, make_inputs)) == expected


def test_output_of_whole_numbers():
    def make_inputs(batch, generator):
        return Inputs({"x": draw(batch, TIME, generator)}, output="b t", causal="t")

    report = check(lambda x: x.argmax(-1), make_inputs)
    report.raise_if_failed()
    assert report["padding gradient"].where == "the output carries no gradient"
    expected = {"padding content", "padding amount", "future"}
    assert failures(check(lambda x: x.argmax(-1).flip(1), make_inputs)) == expected


def test_time_first_inputs():
    def make_inputs(batch, generator):
        x = draw(TIME, batch, generator)
        return Inputs({"x": x}, axes={"x": "t b w"}, output="t b w", causal="t")

    assert failures(check(nn.GRU(WIDTH, WIDTH), make_inputs)) == set()
    backward = nn.GRU(WIDTH, WIDTH, bidirectional=True)
    assert failures(check(backward, make_inputs)) == LEAK | {"future", "future gradient"}


def test_input_with_a_time_axis_twice():
    def make_inputs(batch, generator):
        x = draw(batch, TIME, generator)
        bias = torch.randn(batch, TIME, TIME, generator=generator)
        return Inputs({"x": x, "bias": bias}, axes={"bias": "b t t"})

    def attend(x, bias, mask):
        return bias.masked_fill(~mask[:, None, :], -torch.inf).softmax(-1).nan_to_num() @ x

    def forgets(x, bias, mask):
        return bias.softmax(-1).masked_fill(~mask[:, None, :], 0.0) @ x

    assert failures(check(attend, make_inputs)) == set()
    report = check(forgets, make_inputs)
    assert failures(report) == LEAK
    assert report["padding gradient"].where.startswith("gradient of bias at b=")


X = torch.arange(4.0 * TIME * WIDTH).reshape(4, TIME, WIDTH)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"axes": {"y": "b t w"}}, "unknown tensor in axes 'y'"),
        ({"axes": {"x": "b t"}}, r"'x' has shape \(4, 7, 6\), but its axes are 'b t'"),
        (
            {"tensors": {"x": X, "y": X[:, 1:]}},
            r"'t' has 6 positions in 'y' of shape \(4, 6, 6\), but 7",
        ),
        ({"time": "t s"}, "no tensor has the axis 's'"),
        ({"axes": {"x": "_ t w"}}, "no tensor has the axis 'b'"),
        ({"causal": "s"}, "unknown time axis 's'"),
        ({"padded": "s"}, "unknown time axis 's'"),
        ({"axes": {"x": "b t s"}, "time": "t s", "causal": "t s"}, r"more queries \(7\) than keys"),
        (
            {"axes": {"x": "b s t"}, "time": "t s", "causal": "t s", "padded": "t"},
            "'t' and 's' are causal together, so they are padded together",
        ),
        ({"causal": "t t t"}, "causal names one axis or two"),
        ({"tensors": {"x": X[:3]}}, "was called for 4 items and returned 3"),
        ({"tensors": {"x": X[:, :2]}}, "axis 't' has 2 positions: make at least 3"),
        ({"tensors": {"x": X * 0}}, "tensor 'x' holds one value only"),
        ({"output": "b t"}, r"'output' has shape \(4, 7, 6\), but its axes are 'b t'"),
        ({"output": "b w t"}, r"'output' of shape .* but 't' has 7 positions in the inputs"),
        ({"output": {"states": "b t w"}}, "'states' should be a tensor .* returned Tensor"),
        ({"weights": "b t t"}, r"the call returned none: return \(output, weights\)"),
        ({"output": "b w", "causal": "t"}, "'output' has shape"),
    ],
)
def test_wrong_inputs_are_named(fields, words):
    with pytest.raises(ValueError, match=words):
        check(same, lambda batch, generator: Inputs(**{"tensors": {"x": X}, **fields}))


def test_wrong_contracts_are_named():
    def pooled(batch, generator):
        return Inputs({"x": draw(batch, TIME, generator)}, output="b ...", causal="t")

    with pytest.raises(ValueError, match=r"causal is 't', but the output's axes are 'b \.\.\.'"):
        check(mean_pool, pooled)

    def unnamed(batch, generator):
        return Inputs({"x": draw(batch, TIME, generator)}, output="b _ w")

    with pytest.raises(ValueError, match=r"had shape \(4, 7, 6\), then \(4, 10, 6\): name the"):
        check(same, unnamed)

    def two_of_a_name(batch, generator):
        return Inputs({"x": X}, output={"x": "b t w"}, weights={"x": "b t t"})

    with pytest.raises(ValueError, match="an output and a weight are both called 'x'"):
        check(lambda x: ({"x": x}, {"x": x @ x.mT}), two_of_a_name)

    with pytest.raises(ValueError, match="call it once before the check"):
        check(nn.LazyLinear(3), lambda batch, generator: {"x": X})


def test_inputs_name_what_is_missing():
    inputs = Inputs({"x": X}, lengths={"t": torch.tensor([7, 1, 4, 6])})
    assert inputs.mask().sum(1).tolist() == [7, 1, 4, 6]
    with pytest.raises(ValueError, match="unknown tensor 'y'"):
        inputs["y"]
    with pytest.raises(ValueError, match="unknown time axis 's'"):
        inputs.mask("s")
    with pytest.raises(ValueError, match="unknown axis 's'"):
        inputs.size("s")
