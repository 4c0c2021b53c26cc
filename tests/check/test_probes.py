"""Faults planted in attention: each subclass differs from the faultless one in one method."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regard.check import PROPERTIES, Finding, Inputs, Report, check

TIME, SOURCE, WIDTH, HEADS, VOCABULARY = 7, 5, 6, 2, 23


def failures(report: Report) -> set[str]:
    return {finding.property for finding in report.failed}


def draw(batch, time, generator):
    return torch.randn(batch, time, WIDTH, generator=generator)


class Attention(nn.Module):
    """Self- or cross-attention without a fault; each subclass plants one."""

    def __init__(self, causal=False):
        super().__init__()
        self.causal = causal
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x, source, mask, need_weights=False):
        q, k, v = (
            projection(y).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for projection, y in ((self.query, x), (self.key, source), (self.value, source))
        )
        allowed = self.visible(mask)[:, None, None, :]
        if self.causal:
            allowed = allowed & self.past(q.shape[-2], k.shape[-2])
        weights = self.weigh(self.scale(need_weights) * q @ k.mT, allowed)
        output = (weights @ v).transpose(1, 2).flatten(2)
        return output, self.shown(weights) if need_weights else None

    def visible(self, mask):
        return mask

    def past(self, queries, keys):
        return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)

    def scale(self, need_weights):
        return (WIDTH // HEADS) ** -0.5

    def weigh(self, scores, allowed):
        empty = ~allowed.any(-1, keepdim=True)
        scores = scores.masked_fill(~allowed & ~empty, -torch.inf)
        return scores.softmax(-1).masked_fill(empty, 0.0)

    def shown(self, weights):
        return weights.mean(1)


class FlippedMask(Attention):
    def visible(self, mask):
        return ~mask


class ForgottenMask(Attention):
    def visible(self, mask):
        return torch.ones_like(mask)


class MaskAfterSoftmax(Attention):
    def weigh(self, scores, allowed):
        return scores.softmax(-1) * allowed


class WrongAxis(Attention):
    def weigh(self, scores, allowed):
        return scores.softmax(-2) * allowed


class LargeNegativeFill(Attention):
    def weigh(self, scores, allowed):
        return scores.masked_fill(~allowed, -1e9).softmax(-1)


class InfiniteFill(Attention):
    def weigh(self, scores, allowed):
        return scores.masked_fill(~allowed, -torch.inf).softmax(-1)


class NanOnlyInGradient(Attention):
    def weigh(self, scores, allowed):
        hidden = torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf)
        weights = (scores + hidden).softmax(-1)
        return weights.where(allowed.any(-1, keepdim=True), 0.0)


class SeesNext(Attention):
    def past(self, queries, keys):
        return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries + 1)


class AlignedTopLeft(Attention):
    def past(self, queries, keys):
        return torch.ones(queries, keys, dtype=torch.bool).tril()


class OtherScaleWhenLooking(Attention):
    def scale(self, need_weights):
        return 1.0 if need_weights else super().scale(need_weights)


class SummedHeads(Attention):
    def shown(self, weights):
        return weights.sum(1)


class AveragedOverBatch(Attention):
    def shown(self, weights):
        return weights.mean((0, 1)).expand(len(weights), -1, -1)


class ShowsScores(Attention):
    def shown(self, weights):
        return weights.mean(1).masked_fill(weights.mean(1) > 0, -1.0)


def self_inputs(batch, generator):
    return Inputs({"x": draw(batch, TIME, generator)}, weights="b t t")


def causal_inputs(batch, generator):
    return Inputs({"x": draw(batch, TIME, generator)}, weights="b t t", causal="t")


def call_self(module, inputs, need_weights):
    return module(inputs["x"], inputs["x"], inputs.mask(), need_weights)


def cross_inputs(batch, generator):
    return Inputs(
        {"x": draw(batch, TIME, generator), "source": draw(batch, SOURCE, generator)},
        axes={"x": "b t w", "source": "b s w"},
        time="t s",
        output="b t w",
        weights="b t s",
    )


def call_cross(module, inputs, need_weights):
    return module(inputs["x"], inputs["source"], inputs.mask("s"), need_weights)


def cached_inputs(batch, generator):
    return Inputs(
        {"x": draw(batch, SOURCE, generator), "cache": draw(batch, TIME, generator)},
        axes={"x": "b q w", "cache": "b k w"},
        time="q k",
        output="b q w",
        weights="b q k",
        causal="q k",
    )


def call_cached(module, inputs, need_weights):
    return module(inputs["x"], inputs["cache"], inputs.mask("k"), need_weights)


SELF, CAUSAL = (self_inputs, call_self, False), (causal_inputs, call_self, True)
CROSS, CACHED = (cross_inputs, call_cross, False), (cached_inputs, call_cached, True)
LEAK = {"padding content", "padding amount", "padding gradient"}
PEEK = {"future", "future gradient", "weights on future"}


@pytest.mark.parametrize(("make_inputs", "call", "causal"), [SELF, CAUSAL, CROSS, CACHED])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nothing_is_found_in_faultless_attention(make_inputs, call, causal, dtype):
    def make(batch, generator):
        return make_inputs(batch, generator).map(lambda _, x, __: x.to(dtype))

    report = check(Attention(causal).to(dtype), make, call)
    report.raise_if_failed()
    assert report.tolerance == {torch.float32: 1e-5, torch.float64: 1e-10}[dtype]
    expected = len(PROPERTIES) - {SELF[0]: 4, CAUSAL[0]: 1, CROSS[0]: 4}.get(make_inputs, 0)
    assert sum(finding.status == "passed" for finding in report.findings) == expected


@pytest.mark.parametrize(
    ("faulty", "setting", "expected"),
    [
        # The full item sees nothing, and an item sees its padding alone.
        (FlippedMask, SELF, LEAK | {"receptive field", "weights sum", "weights on padding"}),
        (ForgottenMask, SELF, LEAK | {"weights on padding"}),
        (ForgottenMask, CROSS, LEAK | {"weights on padding"}),
        # The hidden keys still stand in the denominator.
        (MaskAfterSoftmax, SELF, LEAK | {"weights sum"}),
        # A query's weights depend on the other queries: on padding ones, and on later ones.
        (WrongAxis, SELF, LEAK | {"weights sum"}),
        (WrongAxis, CAUSAL, LEAK | {"weights sum", "future", "future gradient"}),
        (WrongAxis, CROSS, LEAK | {"weights sum"}),
        (LargeNegativeFill, CROSS, {"padding content", "weights on padding"}),
        (LargeNegativeFill, SELF, {"weights on padding"}),
        (InfiniteFill, CROSS, {"empty rows"}),
        (InfiniteFill, SELF, {"empty rows"}),
        (NanOnlyInGradient, CROSS, {"empty rows"}),
        (SeesNext, CAUSAL, PEEK),
        (SeesNext, CACHED, PEEK),
        # The last keys are seen by no query.
        (AlignedTopLeft, CACHED, {"last queries", "receptive field"}),
        (OtherScaleWhenLooking, SELF, {"need_weights"}),
        (SummedHeads, SELF, {"weights sum"}),
        # What an item shows are the weights of others as well, of their padding queries too.
        (AveragedOverBatch, SELF, {"batch", "padding content", "weights on padding"}),
        (ShowsScores, SELF, {"weights sum", "weights sign"}),
    ],
)
def test_planted_fault_in_attention_is_named(faulty, setting, expected):
    make_inputs, call, causal = setting
    assert failures(check(faulty(causal), make_inputs, call)) == expected


def embedded_inputs(batch, generator):
    ids = torch.randint(VOCABULARY, (batch, TIME), generator=generator)
    return Inputs({"ids": ids}, causal="t")


class LanguageModel(nn.Module):
    """Token ids [b t] -> logits [b t n], in two layers that may each forget the causal mask."""

    def __init__(self, *causal):
        super().__init__()
        self.embed, self.score = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.layers = nn.ModuleList(Attention(each) for each in causal)

    def forward(self, ids, mask):
        x = self.embed(ids)
        for layer in self.layers:
            x = x + layer(x, x, mask)[0]
        return self.score(x)


class Convolution(LanguageModel):
    """A convolution that is padded on both sides, or on the left."""

    def __init__(self, left, right):
        super().__init__()
        self.convolve, self.sides = nn.Conv1d(WIDTH, WIDTH, 3), (left, right)

    def forward(self, ids, mask):
        x = self.embed(ids) * mask[..., None]
        return self.score(self.convolve(F.pad(x.mT, self.sides)).mT)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lambda: LanguageModel(True, True), set()),
        (lambda: LanguageModel(True, False), {"future"}),
        (lambda: LanguageModel(False, True), {"future"}),
        (lambda: Convolution(2, 0), set()),
        (lambda: Convolution(1, 1), {"future"}),
    ],
)
def test_causal_language_model_on_token_ids(model, expected):
    report = check(model(), embedded_inputs)
    assert failures(report) == expected
    assert report["future gradient"].where == "gradients reach float tensors only"
    assert report["padding gradient"].status == "not applicable"


def test_axes_are_padded_only_where_said():
    def make_inputs(padded):
        def make(batch, generator):
            return dataclasses.replace(cross_inputs(batch, generator), padded=padded)

        return make

    faulty = ForgottenMask()
    assert failures(check(faulty, make_inputs("t"), call_cross)) == set()
    assert failures(check(faulty, make_inputs("t s"), call_cross)) == LEAK | {"weights on padding"}
    report = check(faulty, make_inputs(""), call_cross)
    assert report["padding content"] == Finding(
        "padding content", "not applicable", None, "no axis is declared padded"
    )


@given(seed=st.integers(0, 2**31), time=st.integers(3, 7))
@settings(max_examples=4, deadline=None)
def test_the_verdict_holds_for_any_seed_and_size(seed, time):
    def make_inputs(batch, generator):
        return Inputs({"x": draw(batch, time, generator)}, weights="b t t", causal="t")

    torch.manual_seed(seed)
    assert failures(check(Attention(True), make_inputs, call_self, seed=seed)) == set()
    assert failures(check(SeesNext(True), make_inputs, call_self, seed=seed)) == PEEK


def test_weights_that_are_not_meant_to_sum_to_one_are_skipped():
    class Sigmoid(Attention):
        def weigh(self, scores, allowed):
            return scores.sigmoid() * allowed

    assert failures(check(Sigmoid(), self_inputs, call_self)) == {"weights sum"}
    assert check(Sigmoid(), self_inputs, call_self, skip=["weights sum"])
    with pytest.raises(ValueError, match="unknown property 'weight sum': did you mean"):
        check(Sigmoid(), self_inputs, call_self, skip=["weight sum"])
