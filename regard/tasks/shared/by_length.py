"""A metric by length of the input."""

from collections.abc import Sequence

import numpy as np

from regard.metrics import Measurement, Tally, by_length


def by_input_length(tally: Tally, lengths: Sequence[int]) -> dict[str, Measurement]:
    """The metric in buckets of input length, by the name of the bucket."""
    buckets = by_length(tally, np.array(lengths))
    return {str(bucket): value for bucket, value in buckets.items()}
