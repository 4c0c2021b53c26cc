"""What is explained: the outputs of a model for one text, and a way to read the text with gaps.

Whatever the task, an output is one choice among several (a label, a tag, the next word), and what
is explained is its log-odds, ln p / (1 - p): unlike a probability it is not bounded, and for two
labels it is linear where the model is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.tokenizers.recipes import WORD_LEVEL
from regard.data.tokenizers.tokenizer import UNK, Tokenizer
from regard.devices import device_of
from regard.models.output import Weights
from regard.tasks.shared.attention_flow import Flow
from regard.trace import Side

ERASE = ("delete", "unknown")
"""How a token is erased: deleted, or replaced by the unknown token."""
BATCH_TOKENS = 8192
"""Tokens that are read in one batch."""


class Reading(NamedTuple):
    """What a model computes for some versions of a text."""

    log_probabilities: Float[Tensor, "b v"]
    weights: Weights


@dataclass(frozen=True)
class ExplainTarget:
    """One text under a model, and the outputs that are explained."""

    network: nn.Module
    """A copy of the model that shares its weights: hooks on it do not reach the model itself."""
    input_layers: tuple[nn.Module, ...]
    """The layers that turn tokens into vectors [b, t, e]."""
    output_attention: tuple[nn.Module, ...]
    """The attention modules next to the output, whose weights stand for the model's attention."""
    read: Callable[[Tensor, Tensor, bool], Reading]
    """From kept tokens [b, t], the position of each version's output [b] and whether weights are
    needed, to the log-probabilities at that position."""
    side_name: str
    """The name of the side that is read, as in the trace."""
    side: Side
    positions: tuple[int, ...]
    """Where in the output each explained choice stands."""
    chosen: tuple[int, ...]
    """What the model chose there."""
    names: tuple[str, ...]
    """The same as text."""
    visible: Bool[np.ndarray, "o t"]
    """The tokens that each output depends on and that can be erased."""
    units: Int[np.ndarray, "t"]
    """Tokens that are erased together, those of a word, have the same number."""
    flow: Flow
    """From the weights of one version of the text to the attention of each output over tokens."""
    erase: str
    """How tokens are erased: delete or unknown."""
    whole_output: bool = False
    """Whether the one explained choice is the whole output, rather than one position of it."""
    votes: Float[np.ndarray, "o t"] | None = None
    """What the n-grams of the tokens add to the log-odds of each output, where they vote."""

    @property
    def tokens(self) -> int:
        """The number of tokens of the side."""
        return len(self.side.tokens)

    @property
    def batch_size(self) -> int:
        """The number of versions of the text that are read in one batch."""
        return max(1, BATCH_TOKENS // (self.tokens + len(self.positions)))

    def log_odds(self, kept: Bool[Tensor, "b t"], which: Int[Tensor, "b"]) -> Float[Tensor, "b"]:
        """ln p / (1 - p) of output number `which` for versions of the text."""
        positions, chosen = self.outputs(which)
        reading = self.read(kept.to(positions.device), positions, False)
        return log_odds(reading.log_probabilities, chosen)

    def outputs(self, which: Int[Tensor, "b"]) -> tuple[Int[Tensor, "b"], Int[Tensor, "b"]]:
        """The positions of outputs and what was chosen there, on the device of the model."""
        device, numbers = device_of(self.network), which.tolist()
        positions = [self.positions[i] for i in numbers]
        chosen = [self.chosen[i] for i in numbers]
        return torch.tensor(positions, device=device), torch.tensor(chosen, device=device)

    def all_tokens(self, versions: int) -> Bool[Tensor, "b t"]:
        """Versions of the text with nothing erased, on the device of the model."""
        device = device_of(self.network)
        return torch.ones(versions, self.tokens, dtype=torch.bool, device=device)


def log_odds(
    log_probabilities: Float[Tensor, "b v"], chosen: Int[Tensor, "b"]
) -> Float[Tensor, "b"]:
    """ln p / (1 - p) from log-probabilities, exact where p is near 1 too."""
    own = log_probabilities.gather(1, chosen[:, None])
    others = log_probabilities.scatter(1, chosen[:, None], float("-inf")).logsumexp(1)
    return own[:, 0] - others


def erase_tokens(
    ids: Int[Tensor, "t"], kept: Bool[Tensor, "b t"], erase: str = "delete"
) -> tuple[Int[Tensor, "b u"], Int[Tensor, "b"]]:
    """Versions of a text with only these tokens kept, and their lengths.

    >>> erase_tokens(torch.tensor([7, 8, 9]), torch.tensor([[True, False, True]]))
    (tensor([[7, 9]]), tensor([2]))
    """
    versions = ids.expand(len(kept), -1)
    if erase == "unknown":
        lengths = torch.full((len(kept),), len(ids), device=kept.device)
        return torch.where(kept, versions, UNK), lengths
    # a stable sort moves the kept tokens to the front and keeps their order
    order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)
    lengths = kept.sum(1)
    longest = max(1, int(lengths.max()))
    left = versions.gather(1, order)[:, :longest]
    return left * (torch.arange(longest, device=left.device) < lengths[:, None]), lengths


def word_units(tokenizer: Tokenizer, side: Side) -> Int[np.ndarray, "t"]:
    """Numbers by which the pieces of a word are erased together.

    A tokenizer of words separates punctuation on purpose, so that each of its tokens is a unit.
    """
    if tokenizer.kind in WORD_LEVEL:
        return np.arange(len(side.tokens))
    numbers, last = [], -1
    previous: int | None = None
    for token in side.tokens:
        if token.word is None or token.word != previous:
            last += 1
        numbers.append(last)
        previous = token.word
    return np.array(numbers)
