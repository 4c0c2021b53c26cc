"""Search for the best output, token by token, over any step function: it knows no model.

>>> import torch
>>> def step(tokens, state):  # one more token each time, then the end token 0
...     likely = torch.where(state < 3, tokens + 1, 0)
...     return torch.nn.functional.one_hot(likely, 5).float().log(), state + 1, None
>>> greedy(step, torch.zeros(1), bos=1, eos=0, limit=9)[0].output
[2, 3, 4]
"""

from regard.search.beam import beam
from regard.search.forced import force_decode
from regard.search.greedy import greedy
from regard.search.hypotheses import Hypothesis
from regard.search.penalties import (
    LENGTH_PENALTIES,
    Coverage,
    LengthPenalty,
    no_length_penalty,
    power,
    wu,
)
from regard.search.sampling import sample, stream, text_generator
from regard.search.step import (
    PerSentence,
    RepeatState,
    Shared,
    Step,
    Weights,
    forbid_repeats,
    forbid_tokens,
    pin_attention,
    reorder,
)

__all__ = [
    "LENGTH_PENALTIES",
    "Coverage",
    "Hypothesis",
    "LengthPenalty",
    "PerSentence",
    "RepeatState",
    "Shared",
    "Step",
    "Weights",
    "beam",
    "forbid_repeats",
    "forbid_tokens",
    "force_decode",
    "greedy",
    "no_length_penalty",
    "pin_attention",
    "power",
    "reorder",
    "sample",
    "stream",
    "text_generator",
    "wu",
]
