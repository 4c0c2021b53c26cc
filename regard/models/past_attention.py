"""Attention of a recurrent language model to its own past states."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention import attend, masks, scores
from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score


class RelativeLocation(nn.Module):
    """(W q)_{i-j}: a location score whose positions are counted back from the query.

    It depends on the query and on the distance alone, not on the position in the text. Queries are
    the last positions of the keys.
    """

    def __init__(self, query_size: int, window: int) -> None:
        super().__init__()
        self.where = nn.Linear(query_size, window, bias=False)

    def forward(
        self, query: Float[Tensor, "b q d"], key: Float[Tensor, "b k d"]
    ) -> Float[Tensor, "b q k"]:
        """The scores; a mask has to hide keys that are not before the query or too far back."""
        batch, queries, _ = query.shape
        keys = key.shape[1]
        position = torch.arange(keys, device=query.device)
        back = position[keys - queries :, None] - position - 1
        back = back.clamp(0, self.where.out_features - 1).expand(batch, -1, -1)
        scores: Tensor = self.where(query).gather(-1, back)
        return scores


class PastAttention(nn.Module):
    """c_t = attend(h_t, {h_{t-n} … h_{t-1}}), joined to the state: tanh(W [h_t; c_t] + b).

    With `split`, a linear layer makes a key, a value and a prediction part of each state; the query
    is the key part of the current state. After Daniluk et al., 2017,
    https://arxiv.org/abs/1702.04521, who split the states themselves into the three parts.
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
            split: states have separate parts for key, value and prediction.
            window: number of past states that are attended to.
        """
        super().__init__()
        if window < 1:
            raise ValueError(f"attention to past states needs a window of 1 or more; got {window}")
        self.parts = nn.Linear(width, 3 * width) if split else None
        self.score: Score = (
            RelativeLocation(width, window)
            if score == "location"
            else scores.make_score(score, width, width)
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
        mask = masks.past() & masks.window(self.window + 1)
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
