"""Pictures of looks: what is in them, and what hostile words cannot do."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from regard.looks import from_arrays
from regard.show import matrix, shaded
from regard.show.svg import colour

HOSTILE = ["</script>", "\x1b[31mred", "\u202eright", "a&b<c"]


def test_terminal_shades_grow_with_the_weight():
    look = from_arrays([[0.0, 0.25, 0.5, 1.0]], ["q"], list("abcd"))
    row = shaded(look).splitlines()[1]
    shades = [c for c in row if c in "░▒▓█"]
    assert shades == ["░", "▒", "█"]


def test_terminal_says_what_does_not_fit():
    look = from_arrays(np.full((1, 40), 0.025), ["q"], [f"k{i}" for i in range(40)])
    text = shaded(look, width=60)
    assert all(len(line) <= 60 for line in text.splitlines())
    assert "more keys to the right" in text


def test_hostile_words_are_only_text():
    look = from_arrays(np.eye(4), HOSTILE, HOSTILE)
    assert "\x1b" not in shaded(look)
    assert "\u202e" not in shaded(look)
    texts = [n.text for n in ET.fromstring(matrix(look)).iter() if n.text]
    assert texts.count("</script>") == 2
    assert texts.count("a&b<c") == 2


def test_colours_darken_all_the_way():
    def luminance(code):
        return sum(
            weight * int(code[i : i + 2], 16) for weight, i in ((0.21, 1), (0.72, 3), (0.07, 5))
        )

    shades = [luminance(colour(share / 10)) for share in range(11)]
    assert shades == sorted(shades, reverse=True)


def test_sizes_must_fit():
    with pytest.raises(ValueError, match=r"weights of shape \[2, 2\] do not fit 1 queries and 2"):
        from_arrays(np.eye(2), ["a"], ["b", "c"])
