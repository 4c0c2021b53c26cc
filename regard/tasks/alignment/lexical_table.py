"""The lexical table of an aligner: which words translate which, in both directions."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from regard.tasks.alignment.chain_aligner import ChainAligner
from regard.tasks.alignment.task import Alignment


class Entry(NamedTuple):
    """A pair of words."""

    source: str
    target: str
    target_given_source: float
    source_given_target: float


def lexicon(task: Alignment, model: ChainAligner, least: float = 0.01) -> Iterator[Entry]:
    """Pairs of words that are at least so probable in both directions, the likeliest first.

    Entries are sorted by source word.
    """
    pairs = task.pairs
    tables = [model.direction(side).table.detach().cpu().numpy() for side in (0, 1)]
    target, source = pairs.words_of_cells
    chosen = np.flatnonzero((tables[0] >= least) & (tables[1] >= least))
    order = chosen[np.lexsort((-tables[0][chosen], source[chosen]))]
    for cell in order.tolist():
        yield Entry(
            pairs.words[1][source[cell]],
            pairs.words[0][target[cell]],
            float(tables[0][cell]),
            float(tables[1][cell]),
        )
