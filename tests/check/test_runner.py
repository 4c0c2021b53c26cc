"""The report, the deviation it names, the modules of torch, and the documentation's examples."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from regard.check import PROPERTIES, CheckFailedError, Inputs, Report, check

TIME, WIDTH, HEADS = 7, 6, 2
LEAK = {"padding content", "padding amount", "padding gradient"}


def failures(report: Report) -> set[str]:
    return {finding.property for finding in report.failed}


def draw(batch, time, generator):
    return torch.randn(batch, time, WIDTH, generator=generator)


def self_inputs(batch, generator):
    return Inputs({"x": draw(batch, TIME, generator)}, weights="b t t")


def attend(x, mask):
    empty = ~mask.any(-1)[:, None, None]
    weights = (x @ x.mT).masked_fill(~mask[:, None, :] & ~empty, -torch.inf).softmax(-1)
    weights = weights.masked_fill(empty, 0.0)
    return weights @ x, weights


def attend_and_mask(x, mask):
    weights = (x @ x.mT).softmax(-1) * mask[:, None, :]
    return weights @ x, weights


def mean_pool(x, mask):
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True).clamp_min(1)


def mean_of_padded_length(x, mask):
    return (x * mask[..., None]).mean(1)


def mean_of_everything(x):
    return x.mean(1)


def mean_without_last(x, lengths):
    return mean_pool(x, torch.arange(x.shape[1]) < (lengths - 1)[:, None])


def max_pool(x, mask):
    hidden = x.masked_fill(~mask[..., None], -torch.inf).amax(1)
    return hidden.masked_fill(~mask.any(1, keepdim=True), 0.0)


def max_of_zeroed_padding(x, mask):
    return (x * mask[..., None]).amax(1)


def mean_of_nothing(x, mask):
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (mean_pool, set()),
        (max_pool, set()),
        (mean_of_padded_length, {"padding amount"}),
        (mean_of_everything, LEAK),
        (mean_without_last, {"receptive field"}),
        # A zero of the padding is the maximum where all that is real is negative.
        (max_of_zeroed_padding, {"padding amount"}),
        (mean_of_nothing, {"empty rows"}),
    ],
)
def test_pooling_functions(function, expected):
    def make_inputs(batch, generator):
        return Inputs({"x": draw(batch, TIME, generator)}, output="b w")

    report = check(function, make_inputs)
    assert failures(report) == expected
    assert str(report).startswith(function.__name__)


def test_torch_multihead_attention_has_nan_on_empty_rows_only():
    def call(module, inputs, need_weights):
        x = inputs["x"]
        hidden = ~inputs.mask()
        return module(x, x, x, key_padding_mask=hidden, need_weights=need_weights)

    module = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
    report = check(module, self_inputs, call)
    assert failures(report) == {"empty rows"}
    assert report["empty rows"].where == "NaN in output at b=3, t=0 with an empty t"
    assert report["empty rows"].deviation == torch.inf
    assert "fill it before the softmax" in report["empty rows"].advice

    def call_with_wrong_polarity(module, inputs, need_weights):
        x = inputs["x"]
        shown = inputs.mask()
        return module(x, x, x, key_padding_mask=shown, need_weights=need_weights)

    assert {"padding content", "finite"} <= failures(
        check(module, self_inputs, call_with_wrong_polarity)
    )


def test_torch_transformer_layer_has_nan_on_empty_rows_on_its_fast_path_only():
    def call(module, inputs, need_weights):
        return module(inputs["x"], src_key_padding_mask=~inputs.mask())

    def make_inputs(batch, generator):
        return {"x": draw(batch, TIME, generator)}

    def layer(heads):
        return nn.TransformerEncoderLayer(WIDTH, heads, 11, batch_first=True)

    assert failures(check(layer(2), make_inputs, call)) == {"empty rows"}
    # An odd number of heads has no fast path in torch.
    assert failures(check(layer(3), make_inputs, call)) == set()


def test_the_deviation_is_the_one_worked_out_by_hand():
    def shift(x, lengths):
        return x + 0.01 * (x.shape[1] - TIME)

    def make_inputs(batch, generator):
        return Inputs({"x": torch.arange(batch * TIME).reshape(batch, TIME).double()})

    # Real are 0-6, 7, 14-17 and 21-26, and 15 is the median of those that are not zero. Alone and
    # without its six places of padding the 7 of item 1 loses 0.06: 0.06 / (7 + 15). Three more
    # places move the 0 of item 0 the most, by 0.03: 0.03 / (0 + 15).
    finding = check(shift, make_inputs)["padding amount"]
    assert finding.deviation == pytest.approx(0.06 / 22)
    assert finding.where == "output at b=1, t=0 alone and without padding on t"
    more = check(lambda x: shift(x, None) if x.shape[1] > TIME else x, make_inputs)
    assert more["padding amount"].deviation == pytest.approx(0.03 / 15)
    assert more["padding amount"].where == "output at b=0, t=0 after 3 more positions on t"


def test_the_same_seed_gives_the_same_report():
    first, again = (check(attend_and_mask, self_inputs, seed=5) for _ in range(2))
    assert first == again
    assert first != check(attend_and_mask, self_inputs, seed=6)


def test_report_prints_as_a_table_and_raises():
    report = check(attend_and_mask, self_inputs, skip=["receptive field"])
    assert not report
    lines = str(report).splitlines()
    assert lines[0] == "attend_and_mask: 4 failed, 9 passed (tolerance 1e-05)"
    assert len(lines) == 1 + len(PROPERTIES) + 4
    (row,) = (line for line in lines if "weights sum" in line)
    assert re.fullmatch(r"  weights sum +FAILED +\d\.\de-01  sum of weights at b=\d, t=\d", row)
    assert re.search(r"future +not applicable +not declared causal", str(report))
    assert re.search(r"receptive field +skipped\n", str(report))
    with pytest.raises(AssertionError, match="sum of weights at b=") as raised:
        report.raise_if_failed()
    assert isinstance(raised.value, CheckFailedError)
    assert raised.value.report is report
    with pytest.raises(ValueError, match="unknown property 'futur': did you mean 'future'"):
        report["futur"]
    passing = check(attend, self_inputs)
    assert passing
    passing.raise_if_failed()


def test_the_examples_of_the_documentation_run():
    page = Path(__file__).parents[2] / "docs" / "check.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {"__name__": "docs"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    tests = [run for name, run in names.items() if name.startswith("test_") and callable(run)]
    assert tests
    for run in tests:
        run()
