"""The k best of many candidates, with ties always broken the same way."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

IMPOSSIBLE = float("-inf")
"""The log-probability of a candidate that must not be chosen."""
FOLDED_LINES = 32
FOLDED_FROM = 1 << 14


def best_candidates(
    totals: Float[Tensor, "m c"], k: int, beams: int = 1
) -> tuple[Float[Tensor, "m k"], Int[Tensor, "m k"]]:
    """The k best of each row, best first; among equals the lowest token, then the lowest beam.

    The c candidates are `beams` blocks of a vocabulary each. topk alone leaves the order of equal
    totals open; one candidate more than requested shows whether there are any, and then (rarely)
    those rows are sorted in full. Totals of −∞ come last, in any order.
    """
    k = min(k, totals.shape[1])
    values, index = fast_topk(totals, min(k + 1, totals.shape[1]))
    tied = ((values[:, 1:] == values[:, :-1]) & (values[:, 1:] > IMPOSSIBLE)).any(1)
    values, index = values[:, :k], index[:, :k]
    if tied.any():
        rows = tied.nonzero().squeeze(1)
        values, index = values.clone(), index.clone()
        values[rows], index[rows] = _sorted(totals[rows], k, beams)
    return values, index


def fast_topk(
    totals: Float[Tensor, "m c"], k: int
) -> tuple[Float[Tensor, "m k"], Int[Tensor, "m k"]]:
    """totals.topk(k), several times faster for many totals and small k.

    A row is folded into columns of a few totals each. Of the k best totals none lies outside the
    k columns with the highest maxima, as each of those holds a total at least as good; so only
    these columns, and the few totals that do not fill a line, are searched.
    """
    m, c = totals.shape
    columns = c // FOLDED_LINES
    if columns < 4 * k or totals.numel() < FOLDED_FROM:
        best = totals.topk(k)
        return best.values, best.indices
    folded = totals[:, : FOLDED_LINES * columns].unflatten(1, (FOLDED_LINES, columns))
    near = folded.amax(1).topk(k).indices
    lines = torch.arange(0, FOLDED_LINES * columns, columns, device=totals.device)
    rest = torch.arange(FOLDED_LINES * columns, c, device=totals.device)
    places = torch.cat([(lines[:, None] + near[:, None]).flatten(1), rest.expand(m, -1)], 1)
    values, chosen = totals.gather(1, places).topk(k)
    return values, places.gather(1, chosen)


def _sorted(
    totals: Float[Tensor, "m c"], k: int, beams: int
) -> tuple[Float[Tensor, "m k"], Int[Tensor, "m k"]]:
    vocabulary = totals.shape[1] // beams
    by_token = totals.unflatten(1, (beams, vocabulary)).transpose(1, 2).flatten(1)
    values, place = by_token.sort(dim=1, descending=True, stable=True)
    values, place = values[:, :k], place[:, :k]
    token = torch.div(place, beams, rounding_mode="floor")
    return values, place % beams * vocabulary + token
