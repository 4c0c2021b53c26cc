"""A baseline of explanations: long words matter more."""

import numpy as np

from regard.inference.explain.attributions import Attributions
from regard.inference.explain.explainers import Explainer
from regard.tasks.shared.explain_target import ExplainTarget


def word_length(target: ExplainTarget) -> Attributions:
    """The number of letters of each token, for every output."""
    lengths = np.array([len(token.text) for token in target.side.tokens], dtype=np.float64)
    return Attributions(np.tile(lengths, (len(target.positions), 1)))


WORD_LENGTH = Explainer(word_length, "length")
