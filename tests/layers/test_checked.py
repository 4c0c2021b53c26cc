"""All layers under our own check: no leak, no NaN, and looking changes nothing."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from regard.attention import masks
from regard.check import Inputs, check
from regard.layers import (
    CRF,
    BahdanauStep,
    Block,
    Encoder,
    Experts,
    LuongStep,
    Memory,
    MemoryAttention,
    MultiHead,
    Pooling,
)

T, S, WIDTH, SOURCE = 7, 5, 12, 11
HEADS_LOOK = "b _ t t"


def own(causal: bool, weights: str | dict | None = HEADS_LOOK, output: str = "b t w") -> Callable:
    """One sequence."""

    def make(batch: int, generator: torch.Generator) -> Inputs:
        states = torch.randn(batch, T, WIDTH, generator=generator)
        return Inputs(
            {"states": states}, output=output, weights=weights, causal="t" if causal else None
        )

    return make


def both(causal: bool, weights: str | dict | None) -> Callable:
    """A sequence and a source that it looks at."""

    def make(batch: int, generator: torch.Generator) -> Inputs:
        return Inputs(
            {
                "states": torch.randn(batch, T, WIDTH, generator=generator),
                "source": torch.randn(batch, S, SOURCE, generator=generator),
            },
            axes={"source": "b s w"},
            time="t s",
            output="b t w",
            weights=weights,
            causal="t" if causal else None,
        )

    return make


def seen(inputs: Inputs, *, causal: bool) -> masks.Mask:
    mask = masks.lengths(inputs.lengths["t"])
    return mask & masks.causal() if causal else mask


def self_attention(causal: bool) -> Callable:
    def call(layer: MultiHead, inputs: Inputs, need_weights: bool) -> Any:
        return layer(inputs["states"], mask=seen(inputs, causal=causal), need_weights=need_weights)

    return call


def cross_attention(layer: MultiHead, inputs: Inputs, need_weights: bool) -> Any:
    mask = masks.lengths(inputs.lengths["s"])
    return layer(inputs["states"], inputs["source"], mask=mask, need_weights=need_weights)


def block(causal: bool) -> Callable:
    def call(layer: Block, inputs: Inputs, need_weights: bool) -> Any:
        options: dict[str, Any] = {"need_weights": need_weights, "real": inputs.mask("t")}
        if layer.source is not None:
            options |= {
                "source": inputs["source"],
                "source_mask": masks.lengths(inputs.lengths["s"]),
            }
        passed = layer(inputs["states"], seen(inputs, causal=causal), **options)
        return passed.output, passed.weights

    return call


def cached(layer: Block, inputs: Inputs, need_weights: bool) -> Tensor:
    """The block one position at a time."""
    cache, outputs = None, []
    for states in inputs["states"].split(1, 1):
        passed = layer(states, masks.causal(), cache=cache)
        cache = passed.cache
        outputs.append(passed.output)
    return torch.cat(outputs, 1)


def reading(layer: MemoryAttention, inputs: Inputs, need_weights: bool) -> Any:
    memory = layer.prepare(inputs["source"], inputs.lengths["s"])
    return layer(inputs["states"], memory, need_weights=need_weights)


def decoding(step: nn.Module, inputs: Inputs, need_weights: bool) -> Any:
    """All steps of a decoder, the words given."""
    source = step.reading.prepare(inputs["source"], inputs.lengths["s"])
    state = step.initial(inputs["states"].new_zeros(len(inputs["states"]), WIDTH))
    outputs, rows = [], []
    for word in inputs["states"].unbind(1):
        output, state, weights = step(word, state, source, need_weights=need_weights)
        outputs.append(output)
        rows.append(weights)
    return torch.stack(outputs, 1), torch.stack(rows, 1) if need_weights else None


def remembering(layer: Memory, inputs: Inputs, need_weights: bool) -> Tensor:
    state, reads = layer.initial(len(inputs["states"])), []
    for controller in inputs["states"].unbind(1):
        read, state, _ = layer(controller, state)
        reads.append(read)
    return torch.stack(reads, 1)


def marginals(layer: CRF, inputs: Inputs, need_weights: bool) -> Tensor:
    return layer.marginals(inputs["states"], inputs.lengths["t"])


def mixing(layer: Experts, inputs: Inputs, need_weights: bool) -> Any:
    return layer(inputs["states"], inputs.mask("t"))


CASES: dict[str, tuple[Callable[[], nn.Module], Callable, Callable | None]] = {
    "multihead": (lambda: MultiHead(WIDTH, 3), own(False), self_attention(False)),
    "multihead, causal": (lambda: MultiHead(WIDTH, 3), own(True), self_attention(True)),
    "multihead, rotary and grouped": (
        lambda: MultiHead(WIDTH, 6, key_heads=3, positions="rotary"),
        own(True),
        self_attention(True),
    ),
    "multihead, linear": (
        lambda: MultiHead(WIDTH, 3, positions="linear", score="additive"),
        own(True),
        self_attention(True),
    ),
    "multihead, sparse": (
        lambda: MultiHead(WIDTH, 3, normalize="entmax15"),
        own(True),
        self_attention(True),
    ),
    "multihead, another": (
        lambda: MultiHead(WIDTH, 3, key_width=SOURCE),
        both(False, "b _ t s"),
        cross_attention,
    ),
    **{
        f"pooling, {kind}": (
            lambda kind=kind: Pooling(WIDTH, kind),
            own(False, None if kind == "sum" else "b _ t", "b w"),
            None,
        )
        for kind in ("sum", "mean", "max", "weighted", "fixed")
    },
    "encoder": (lambda: Encoder(WIDTH, 5, layers=2), own(False, None), None),
    "encoder, one direction": (
        lambda: Encoder(WIDTH, 5, cell="lstm", bidirectional=False),
        own(True, None),
        None,
    ),
    **{
        f"reading, {local}": (
            lambda local=local: MemoryAttention(WIDTH, SOURCE, local=local, width=9),
            both(False, "b t s"),
            reading,
        )
        for local in ("none", "m", "p")
    },
    "bahdanau": (
        lambda: BahdanauStep(WIDTH, MemoryAttention(WIDTH, SOURCE)),
        both(True, "b t s"),
        decoding,
    ),
    "luong": (
        lambda: LuongStep(WIDTH, MemoryAttention(WIDTH, SOURCE, score="bilinear"), cell="lstm"),
        both(True, "b t s"),
        decoding,
    ),
    **{
        f"block, {norm}": (
            lambda norm=norm: Block(WIDTH, 3, norm=norm),
            own(False, {"self": HEADS_LOOK}),
            block(False),
        )
        for norm in ("pre", "post")
    },
    "block with a source": (
        lambda: Block(WIDTH, 3, source_width=SOURCE, positions="rotary"),
        both(True, {"self": HEADS_LOOK, "source": "b _ t s"}),
        block(True),
    ),
    "block with experts": (
        lambda: Block(WIDTH, 3, experts=3, top_k=2),
        own(True, {"self": HEADS_LOOK}),
        block(True),
    ),
    "block, one position at a time": (lambda: Block(WIDTH, 3), own(True, None), cached),
    "experts": (lambda: Experts(WIDTH, 5, 3, top_k=1), own(True, None), mixing),
    "memory, ntm": (lambda: Memory(5, 3, WIDTH, addressing="ntm"), own(True, None), remembering),
    "memory, dnc": (lambda: Memory(5, 3, WIDTH, addressing="dnc"), own(True, None), remembering),
    "crf": (lambda: CRF(WIDTH), own(False, None), marginals),
}


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_found(case: str) -> None:
    make, make_inputs, call = CASES[case]
    options = {} if call is None else {"call": call}
    report = check(_stirred(make().double()), _doubled(make_inputs), **options)
    report.raise_if_failed()


def _stirred(layer: nn.Module) -> nn.Module:
    """Some weights begin at zero, and hide what they will do."""
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return layer


def _doubled(make_inputs: Callable) -> Callable:
    def make(batch: int, generator: torch.Generator) -> Inputs:
        return make_inputs(batch, generator).map(lambda _, tensor, names: tensor.double())

    return make
