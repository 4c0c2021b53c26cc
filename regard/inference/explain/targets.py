"""The target of an explanation: one text under a run."""

import torch

from regard.errors import RegardError, unknown
from regard.inference.explain.hooks import share_weights
from regard.inference.run import Run, clean_text
from regard.tasks.shared.explain_target import ERASE, ExplainTarget


def make_target(
    run: Run, text: str, *, erase: str | None = None, every: bool = False
) -> ExplainTarget | None:
    """What is explained of a run on a text; None where there is nothing to read in it.

    Args:
        run: a trained run.
        text: one text.
        erase: delete a token, or replace it by the unknown one (default: delete, where the task
            allows it).
        every: of a language model, explain the prediction after each token, not only the last.
    """
    if erase is not None and erase not in ERASE:
        raise ValueError(unknown("way to erase", erase, ERASE))
    explain = run.spec.require("explain", run.folder.path, "an explanation")
    if getattr(run.task, "features", None) is not None:
        raise RegardError(f"{run.folder.path}: reads vectors, which have no words to explain")
    clean = clean_text(text)
    if not clean.strip():
        return None
    with torch.no_grad():
        target: ExplainTarget | None = explain(
            run.task, share_weights(run.model), clean, erase, every
        )
    return target
