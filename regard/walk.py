"""A walk through attention with numbers, on a sentence of six words."""

from collections.abc import Iterable
from pathlib import Path
from typing import SupportsFloat

from regard.attention import steps
from regard.attention.example import early_bird
from regard.errors import RegardError, unknown
from regard.looks import from_arrays
from regard.show import matrix, shaded


def walk(word: str, picture: Path | None = None) -> str:
    """Every step of the attention of one word, and a picture of all of them."""
    example = early_bird()
    if word not in example.words:
        raise RegardError(unknown("word", word, example.words))
    query, key, value = example.project()
    stages = steps(query, key, value)
    row = example.words.index(word)
    look = from_arrays(stages.weights.numpy(), example.words, example.words)
    assert stages.products is not None  # the score is a dot product
    lines = [
        f"Where does “{word}” look in “{' '.join(example.words)}”?",
        "",
        _line("1. its query W_Q·e", query[row]),
        "",
        " " * 20 + "".join(f"{other:>9}" for other in example.words),
        _line("2. query · key", stages.products[row]),
        _line(f"3. divided by √{key.shape[-1]}", stages.scores[row]),
        _line("4. softmax: weights", stages.weights[row])
        + f"   sum {float(stages.weights[row].sum()):.3f}",
        "",
        _line("5. weights · values", stages.output[row]),
        "",
        "All six words at once, a row each; every row sums to 1:",
        "",
        shaded(look),
    ]
    if picture is not None:
        try:
            picture.write_text(matrix(look, "The early bird: who looks where"), encoding="utf-8")
        except OSError as error:
            raise RegardError(f"{picture}: cannot write the picture: {error.strerror}") from None
        lines += ["", f"The picture is in {picture}"]
    return "\n".join(lines)


def _line(name: str, numbers: Iterable[SupportsFloat]) -> str:
    return f"{name:20}" + "".join(f"{float(number):9.3f}" for number in numbers)
