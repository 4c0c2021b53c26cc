"""Attention of a recurrent language model over its own past states."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import attend, masks, scores
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score


class Backwards(nn.Module):
    """(W q)_{i-j}: the query alone says how far back to look; "location" counted from the query.

    So it means the same wherever in the text the query stands. Key and query stand on one axis,
    whose end both share.
    """

    def __init__(self, query_size: int, window: int) -> None:
        super().__init__()
        self.where = nn.Linear(query_size, window, bias=False)

    def forward(
        self, query: Float[Tensor, "b q d"], key: Float[Tensor, "b k d"]
    ) -> Float[Tensor, "b q k"]:
        """The scores; keys that are not before the query or too far back are for a mask to hide."""
        batch, queries, _ = query.shape
        keys = key.shape[1]
        position = torch.arange(keys, device=query.device)
        back = position[keys - queries :, None] - position - 1
        back = back.clamp(0, self.where.out_features - 1).expand(batch, -1, -1)
        fit: Tensor = self.where(query).gather(-1, back)
        return fit


class LookBack(nn.Module):
    """c_t = attend(h_t, {h_{t-n} … h_{t-1}}), joined to the state: tanh(W [h_t; c_t] + b).

    With `split`, each state is brought into three parts, a key, a value and one that predicts; the
    query is the key part of the current state. After Daniluk et al., 2017,
    https://arxiv.org/abs/1702.04521, whose states are cut into the three parts as they are.
    """

    def __init__(
        self,
        width: int,
        *,
        score: str | Score = "additive",
        normalize: str | Normalizer = "softmax",
        split: bool = False,
        window: int = 64,
    ) -> None:
        """Make the score.

        Args:
            width: size of the states.
            score: any score.
            normalize: any normalizer.
            split: states have a part each for key, value and prediction.
            window: how many states it reaches back.
        """
        super().__init__()
        if window < 1:
            raise ValueError(
                f"attention over past states needs a window of 1 at least; got {window}"
            )
        self.parts = nn.Linear(width, 3 * width) if split else None
        self.score: Score = (
            Backwards(width, window) if score == "location" else scores.make(score, width, width)
        )
        self.normalize, self.window = normalize, window
        self.join = nn.Linear(2 * width, width)

    def forward(
        self,
        states: Float[Tensor, "b t w"],
        past: Float[Tensor, "b n w"],
        *,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "b t w"], Float[Tensor, "b m w"], Float[Tensor, "b t k"] | None]:
        """Joined states, the past that the next call needs, and weights over past and states."""
        memory = torch.cat([past, states], 1)
        key, value, predict = memory, memory, memory
        if self.parts is not None:
            key, value, predict = self.parts(memory).chunk(3, -1)
        new = past.shape[1]
        # keys are the states before the current one, at most `window` of them
        mask = masks.causal() & masks.others() & masks.window(self.window + 1)
        attended = attend(
            key[:, new:],
            key,
            value,
            mask,
            score=self.score,
            normalize=self.normalize,
            need_weights=need_weights,
        )
        joined = self.join(torch.cat([predict[:, new:], attended.output], -1)).tanh()
        return joined, memory[:, -self.window :], attended.weights
