"""The trace of a sentence pair: where each word attends on the other side, or to nothing."""

import numpy as np
import torch

from regard.data import Pair
from regard.tasks.alignment.align_pairs import align_pairs
from regard.tasks.alignment.chain_aligner import ChainAligner
from regard.tasks.alignment.task import Alignment, format_links, split_pair
from regard.tasks.shared.trace_looks import make_looks
from regard.tasks.shared.trace_sides import text_side, word_spans
from regard.trace import Trace

NOTHING = "∅"
SIDES = {
    "agreement": ("target", "source"),
    "target": ("target", "source_or_none"),
    "source": ("source", "target_or_none"),
}


def trace_pair(task: Alignment, model: ChainAligner, text: str, target: str | None = None) -> Trace:
    """Both directions, with a column for words without counterpart, and their geometric mean.

    Args:
        task: a task of word alignment.
        model: its aligner.
        text: the source, or both sides as `source ||| target`.
        target: the target, if the text is the source only.
    """
    pair = split_pair(text) if target is None else Pair(text, target)
    (found,) = align_pairs(task, model, [pair])
    texts = {"source": pair.source, "target": pair.target}
    sides = {name: text_side(one, word_spans(one)) for name, one in texts.items()}
    sides |= {
        f"{name}_or_none": text_side(one, word_spans(one), last=NOTHING)
        for name, one in texts.items()
    }
    matrices = {
        "agreement": found.weights,
        "target": np.concatenate([found.forward, found.forward_empty[:, None]], 1),
        "source": np.concatenate([found.backward, found.backward_empty[:, None]], 1),
    }
    weights = {name: torch.from_numpy(matrix)[None] for name, matrix in matrices.items()}
    links = format_links(found.links(float(model.threshold)))
    return Trace("align", sides, make_looks(weights, sides, SIDES), links, {"truncated": False})
