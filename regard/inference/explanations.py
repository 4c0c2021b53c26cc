"""Explanations: a trace of one text with how much each token mattered, by every method."""

from dataclasses import replace
from typing import Any

import numpy as np

from regard.inference.attributions import (
    attention,
    gradient_times_input,
    integrated_gradients,
    leave_one_out,
    masked_error,
)
from regard.inference.questions import ask
from regard.inference.runs import Run
from regard.trace import Attribution, Trace


def explain(run: Run, text: str, *, steps: int = 32, erase: str | None = None) -> Trace:
    """What a run makes of a text, where it looked, and what each token of it mattered.

    The attributions are attention (the mean over heads and layers), attention rollout where layers
    stand on each other, the norm of the gradient with attention as it is and changed, gradient ×
    input, integrated gradients and leave-one-out, each for every output.

    Args:
        run: a trained run.
        text: one text.
        steps: points of the integral, at first.
        erase: how a token is left out: delete or unknown; deleting unless said, but in taggers.
    """
    question = ask(run, text, erase=erase)
    whole = run.trace(text)
    if question is None:
        return whole
    looked, rolled = attention(question)
    integrated = integrated_gradients(question, steps)
    values: dict[str, Any] = {
        "attention": looked,
        "attention rollout": rolled,
        **masked_error(question),
        "gradient × input": gradient_times_input(question),
        "integrated gradients": integrated.values,
        "leave-one-out": leave_one_out(question),
    }
    alone = len(question.places) == 1 and run.name == "classify"
    found = [
        Attribution(method, question.name, row, None if alone else place)
        for method, rows in values.items()
        if rows is not None
        for place, row in zip(question.places, np.asarray(rows, np.float64), strict=True)
    ]
    explained = {
        "outputs": list(question.names),
        "erase": question.erase,
        "log_odds_above_nothing": integrated.difference.tolist(),
        "integration_gap": integrated.gap.tolist(),
    }
    return replace(
        whole,
        attributions=tuple(found),
        prediction={**whole.prediction, "explained": explained},
    )
