"""Explanations: the trace of one text with how much each token mattered, by every method."""

from dataclasses import replace
from typing import Any

from regard.inference.explain.explainers import EXPLAINERS
from regard.inference.explain.targets import make_target
from regard.inference.run import Run
from regard.progress import track
from regard.trace import Attribution, Trace


def explain(run: Run, text: str, *, erase: str | None = None) -> Trace:
    """The trace of a text with attributions: one row per method of `EXPLAINERS` and output.

    Args:
        run: a trained run.
        text: one text.
        erase: how a token is left out: delete or unknown (default: delete; in tagging unknown).
    """
    target = make_target(run, text, erase=erase)
    trace = run.trace(text)
    if target is None:
        return trace
    rows: list[Attribution] = []
    details: dict[str, Any] = {"outputs": list(target.names), "erase": target.erase}
    methods = track(EXPLAINERS.items(), "explaining", unit="methods")
    for name, explainer in methods:
        attributions = explainer.method(target)
        if attributions is None:
            continue
        details |= attributions.details
        rows += [
            Attribution(name, target.side_name, row, None if target.whole_output else position)
            for position, row in zip(target.positions, attributions.values, strict=True)
        ]
    # a pretrained encoder looks at more than what is explained: its looks have a side of their own
    sides = dict(trace.sides)
    sides.setdefault(target.side_name, target.side)
    return replace(
        trace,
        sides=sides,
        attributions=tuple(rows),
        prediction={**trace.prediction, "explained": details},
    )
