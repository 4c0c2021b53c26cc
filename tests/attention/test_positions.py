"""Positions against their formulas, a number at a time."""

import math

import pytest
import torch

from regard.attention import attend, positions


def test_sinusoids():
    got = positions.sinusoids(5, 6, offset=3, dtype=torch.float64)
    for t in range(5):
        for i in range(3):
            angle = (t + 3) / 10000 ** (2 * i / 6)
            assert got[t, 2 * i].item() == pytest.approx(math.sin(angle))
            assert got[t, 2 * i + 1].item() == pytest.approx(math.cos(angle))


def test_rotation_by_complex_numbers():
    vectors = torch.randn(2, 5, 6, dtype=torch.float64)
    got = torch.view_as_complex(positions.rotate(vectors, offset=7).unflatten(-1, (3, 2)))
    plain = torch.view_as_complex(vectors.unflatten(-1, (3, 2)))
    for t in range(5):
        for i in range(3):
            turn = complex(math.cos(a := (t + 7) * 10000 ** (-2 * i / 6)), math.sin(a))
            torch.testing.assert_close(got[:, t, i], plain[:, t, i] * turn)


def test_rotated_scores_depend_on_distance_alone():
    query, key = torch.randn(6, dtype=torch.float64), torch.randn(6, dtype=torch.float64)

    def score(i, j):
        left = positions.rotate(query[None], offset=i)
        return (left @ positions.rotate(key[None], offset=j).T).item()

    assert score(3, 1) == pytest.approx(score(103, 101))
    assert score(3, 1) != pytest.approx(score(4, 1))
    assert positions.rotate(query[None]).norm().item() == pytest.approx(query.norm().item())


def test_linear_bias():
    assert positions.slopes(8) == [2**-n for n in range(1, 9)]
    assert positions.slopes(4) == [2**-2, 2**-4, 2**-6, 2**-8]
    assert positions.slopes(6)[:4] == positions.slopes(4)
    assert positions.slopes(6)[4:] == [2**-1, 2**-3]
    bias = positions.linear_bias(3, 2, 5)
    for h, slope in enumerate(positions.slopes(3)):
        for q in range(2):
            for k in range(5):
                assert bias[h, q, k].item() == pytest.approx(-slope * abs(q + 3 - k))
    vectors = torch.zeros(1, 3, 5, 4)
    weights = attend(vectors[:, :, -2:], vectors, vectors, bias=bias).weights
    assert (weights[0, 0, 1].diff() > 0).all()


def test_learned():
    table = positions.Learned(5, 3)
    assert torch.equal(table(2, offset=3), table.weight[3:])
    with pytest.raises(ValueError, match="learned up to 5; requested 6: truncate the text"):
        table(2, offset=4)


def test_odd_sizes_are_refused():
    with pytest.raises(ValueError, match="width must be even; got 3"):
        positions.sinusoids(2, 3)
    with pytest.raises(ValueError, match="size must be even; got 3"):
        positions.rotate(torch.zeros(2, 3))
