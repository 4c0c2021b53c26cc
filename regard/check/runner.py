"""Find the silent bugs of attention code in any module: leaks, wrong masks, NaN on masked rows."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from regard.check import probes
from regard.check.harness import Call, Deviation, Subject, call_by_signature
from regard.check.inputs import Inputs
from regard.errors import unknown

__all__ = ["CheckFailedError", "Finding", "Inputs", "Report", "check"]

BATCH = 4
TOLERANCES = {
    torch.float64: 1e-10,
    torch.float32: 1e-5,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}


class Property(NamedTuple):
    """How a property is measured, and what to do if it does not hold."""

    probe: Callable[[Subject], Deviation]
    advice: str


PROPERTIES = {
    "repeat": Property(
        probes.repeat,
        "keep no state between calls, and no randomness in eval mode (F.dropout needs training=)",
    ),
    "inputs unchanged": Property(
        probes.inputs_unchanged, "write to a copy: no +=, masked_fill_ or the like on the inputs"
    ),
    "autograd on or off": Property(
        probes.autograd, "the path taken without gradients computes something else: compare them"
    ),
    "finite": Property(
        probes.finite,
        "NaN at a real position: a row is masked that should not be, or a division by zero",
    ),
    "empty rows": Property(
        probes.empty_rows,
        "where a row is fully masked, fill it before the softmax and set its weights to zero after",
    ),
    "batch": Property(
        probes.batch,
        "no statistics, softmax or reshape across the batch axis: items are independent",
    ),
    "padding content": Property(
        probes.padding_content, "hide padding before the softmax, sum, maximum or recurrence"
    ),
    "padding amount": Property(
        probes.padding_amount, "divide and stop by the real lengths, not by the padded size"
    ),
    "padding gradient": Property(
        probes.padding_gradient,
        "padding takes part in the backward pass: mask it, do not cancel it",
    ),
    "future": Property(
        probes.future, "let query i see key j only if j <= i, in every layer, convolution and norm"
    ),
    "future gradient": Property(
        probes.future_gradient, "the future takes part in the backward pass: mask it in every layer"
    ),
    "last queries": Property(
        probes.last_queries,
        "align the causal mask to the end: query i sees key j <= i + keys - queries",
    ),
    "receptive field": Property(
        probes.receptive_field,
        "the mask hides real positions: check for a length off by one or an inverted mask",
    ),
    "need_weights": Property(
        probes.with_weights,
        "the path that returns weights computes something else: share scale and mask",
    ),
    "weights sum": Property(
        probes.weights_sum,
        "softmax over the keys (the last axis), after masking; average the heads",
    ),
    "weights sign": Property(probes.weights_sign, "return the weights, not the scores"),
    "weights on padding": Property(
        probes.weights_on_padding, "fill hidden scores with -inf, and set empty rows to zero"
    ),
    "weights on future": Property(
        probes.weights_on_future, "return the weights after the causal mask, of every layer"
    ),
}
"""Every property that is checked, in the order of the report."""


@dataclass(frozen=True)
class Finding:
    """The result for one property."""

    property: str
    status: Literal["passed", "failed", "not applicable", "skipped"]
    deviation: float | None = None
    """The largest deviation that was measured, relative to the size of what it is in."""
    where: str = ""
    """The place of the largest deviation, or why the property is not applicable."""
    advice: str = ""
    """What to do about a failure."""


class CheckFailedError(AssertionError):
    """A property does not hold; the message is the report."""

    def __init__(self, report: "Report") -> None:
        super().__init__(f"\n{report}")
        self.report = report


@dataclass(frozen=True)
class Report:
    """One finding per property; true if none failed; prints as a table."""

    subject: str
    tolerance: float
    findings: tuple[Finding, ...]

    @property
    def failed(self) -> list[Finding]:
        """The findings that failed."""
        return [finding for finding in self.findings if finding.status == "failed"]

    def __bool__(self) -> bool:
        return not self.failed

    def __getitem__(self, name: str) -> Finding:
        for finding in self.findings:
            if finding.property == name:
                return finding
        raise ValueError(unknown("property", name, PROPERTIES))

    def raise_if_failed(self) -> None:
        """Raise `CheckFailedError`, an AssertionError, with the whole report."""
        if self.failed:
            raise CheckFailedError(self)

    def __str__(self) -> str:
        """The table."""
        width = max(len(finding.property) for finding in self.findings)
        held = sum(finding.status == "passed" for finding in self.findings)
        title = f"{self.subject}: {len(self.failed)} failed, {held} passed"
        lines = [f"{title} (tolerance {self.tolerance:.0e})"]
        for finding in self.findings:
            status = "FAILED" if finding.status == "failed" else finding.status
            size = "" if finding.deviation is None else f"{finding.deviation:.1e}"
            row = f"  {finding.property:<{width}}  {status:<14}  {size:>7}  {finding.where}"
            lines.append(row.rstrip())
            if finding.status == "failed":
                lines.append(f"  {'':<{width}}  -> {finding.advice}")
        return "\n".join(lines)


def check(
    module: Callable[..., Any],
    make_inputs: Callable[[int, torch.Generator], Inputs | Mapping[str, Tensor]],
    call: Call = call_by_signature,
    *,
    seed: int = 0,
    tolerance: float | None = None,
    skip: Collection[str] = (),
    training: bool = False,
) -> Report:
    """Check a module for leaks, wrong masks, NaN and more; the module is left as it was.

    `make_inputs(batch, generator)` returns the tensors by name, or `Inputs` that also say which
    axes are batch and time. `call(module, inputs, need_weights)` calls the module and returns
    `output` or `(output, weights)`; the default goes by the names in the module's signature.

    A property fails when its deviation is above the tolerance: 1e-5 in float32 and 1e-10 in
    float64 by default, since sums in another order differ by about 1e-6 and 1e-15. `skip`
    names properties that are not meant to hold. The module runs in eval mode, unless `training`
    (then without dropout, or nothing repeats).

    >>> def mean(x, mask):
    ...     return (x * mask[..., None]).mean(1)
    >>> def make_inputs(batch, generator):
    ...     return Inputs({"x": torch.randn(batch, 7, 5, generator=generator)}, output="b w")
    >>> for finding in check(mean, make_inputs).failed:
    ...     print(finding.property)
    padding amount
    """
    for name in skip:
        if name not in PROPERTIES:
            raise ValueError(unknown("property", name, PROPERTIES))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        given = make_inputs(BATCH, torch.Generator().manual_seed(seed))
    inputs = _with_lengths(given if isinstance(given, Inputs) else Inputs(given))
    subject = Subject(module, inputs, call, seed, training)
    with subject.untouched():
        if tolerance is None:
            tolerance = _tolerance(subject)
        findings = tuple(
            Finding(name, "skipped") if name in skip else _find(name, subject, tolerance)
            for name in PROPERTIES
        )
    title = getattr(module, "__name__", type(module).__name__)
    return Report(title, tolerance, findings)


def _find(name: str, subject: Subject, tolerance: float) -> Finding:
    probe, advice = PROPERTIES[name]
    try:
        size, where = probe(subject)
    except probes.NotApplicable as reason:
        return Finding(name, "not applicable", None, str(reason))
    except Exception as error:
        error.add_note(f"This happened while checking {name!r}.")
        raise
    if size > tolerance:
        return Finding(name, "failed", size, where, advice)
    return Finding(name, "passed", size, where if size == 0 else "")


def _with_lengths(inputs: Inputs) -> Inputs:
    """The inputs with lengths: one item full, one of a single position, others between."""
    if inputs.size("b") != BATCH:
        raise ValueError(
            f"make_inputs was called for {BATCH} items and returned {inputs.size('b')}"
        )
    for axis in inputs.time_axes:
        if inputs.size(axis) < 3:
            raise ValueError(f"axis {axis!r} has {inputs.size(axis)} positions: make at least 3")
    for name, tensor in inputs.tensors.items():
        if tensor.numel() > 1 and bool((tensor == tensor.flatten()[0]).all()):
            raise ValueError(
                f"tensor {name!r} holds one value only, so that no change of it could be seen"
            )
    device = next(iter(inputs.tensors.values())).device
    lengths = {
        axis: torch.full((BATCH,), inputs.size(axis), device=device) for axis in inputs.time_axes
    }
    for turn, group in enumerate(inputs.groups()):
        least = min(inputs.size(axis) for axis in group)
        short = torch.tensor([0, least - 1, least // 2, 1], device=device).roll(turn)
        for axis in group:
            lengths[axis] = lengths[axis] - short
    return replace(inputs, lengths=lengths)


def _tolerance(subject: Subject) -> float:
    """The tolerance of the least precise dtype among inputs, parameters and outputs."""
    outputs = subject.reference.tensors.values()
    parameters = subject.module.parameters() if isinstance(subject.module, nn.Module) else ()
    dtypes = {x.dtype for x in (*subject.inputs.tensors.values(), *parameters, *outputs)}
    known = [TOLERANCES[dtype] for dtype in dtypes if dtype in TOLERANCES]
    return max(known, default=TOLERANCES[torch.float32])
