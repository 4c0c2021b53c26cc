"""Looks as arrays and tables, and stacks of the looks of a trace."""

import numpy as np
import pytest

from regard.trace import Trace
from regard.trace.look import from_arrays


def test_looks_of_a_name_are_found_and_stacked():
    numbers = np.arange(2 * 3 * 1 * 2, dtype=np.float64).reshape(2, 3, 1, 2)
    looks = [
        from_arrays(numbers[i, j], ["le"], ["the", "cat"], name="decoder.source", layer=i, head=j)
        for i, j in [(1, 0), (0, 2), (0, 1), (1, 2), (0, 0), (1, 1)]
    ]
    single = from_arrays([[1.0]], ["x"], ["y"], name="pooling")
    trace = Trace("translation", {}, (*looks, single), "le")
    assert np.array_equal(trace.stack("decoder.source"), numbers)
    assert trace.stack("pooling").shape == (1, 1, 1, 1)
    assert trace["decoder.source"] == tuple(looks)
    assert np.array_equal(trace["decoder.source", 1, 2], numbers[1, 2])
    assert "7 looks (decoder.source, pooling)" in repr(trace)
    with pytest.raises(KeyError, match=r"did you mean 'decoder\.source'"):
        trace.stack("decoder.sourc")
    with pytest.raises(KeyError, match="no look 'pooling' of layer 0 and head 0; there are"):
        trace["pooling", 0, 0]
    with pytest.raises(ValueError, match="different numbers of heads"):
        Trace("translation", {}, tuple(looks[:-1]), "").stack("decoder.source")
    wide = from_arrays([[1.0]], ["x"], ["y"], name="decoder.source", layer=2, head=0)
    with pytest.raises(ValueError, match=r"different shapes \[\(1, 1\), \(1, 2\)\]"):
        Trace("translation", {}, (looks[0], wide), "").stack("decoder.source")


def test_a_look_is_an_array_and_a_table():
    look = from_arrays([[0.9, 0.1], [0.2, 0.8]], ["le", "chat"], ["the", "cat"])
    assert np.array_equal(np.asarray(look), look.weights)
    assert np.asarray(look, dtype=np.float32).dtype == np.float32
    copied = np.array(look)
    copied[0, 0] = 0.0
    assert look.weights[0, 0] == 0.9
    frame = look.to_pandas()
    assert frame.loc["chat", "cat"] == 0.8
    assert (list(frame.index), list(frame.columns)) == (["le", "chat"], ["the", "cat"])
    assert repr(look) == "Look(attention, queries → keys, 2 queries × 2 keys)"
