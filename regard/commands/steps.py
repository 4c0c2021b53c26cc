"""`regard steps`: attention with numbers, step by step."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, SupportsFloat

from regard.errors import RegardError, unknown


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `steps`."""
    steps = commands.add_parser(
        "steps",
        help="attention step by step, with numbers, on “The early bird catches the worm”",
        examples=(
            "regard steps",
            "regard steps --word worm --picture steps.svg",
        ),
    )
    steps.add_argument("--word", default="bird", help="the query word (default: bird)")
    steps.add_argument("--picture", type=Path, help="also draw the whole matrix as an SVG file")
    steps.set_defaults(run=_steps, parser=steps)


def _steps(chosen: argparse.Namespace) -> int:
    print(worked_example(chosen.word, chosen.picture))
    return 0


def worked_example(word: str, picture: Path | None = None) -> str:
    """Every step of the attention of one word, and a picture of all of them."""
    from regard.atomic_files import write_output
    from regard.attention import steps
    from regard.attention.worked_example import early_bird
    from regard.show import matrix, shaded_matrix
    from regard.trace import from_arrays

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
        shaded_matrix(look),
    ]
    if picture is not None:
        drawn = matrix(look, "The early bird: who looks where").encode("utf-8")
        write_output(picture, lambda stream: stream.write(drawn))
        lines += ["", f"The picture is in {picture}"]
    return "\n".join(lines)


def _line(name: str, numbers: Iterable[SupportsFloat]) -> str:
    return f"{name:20}" + "".join(f"{float(number):9.3f}" for number in numbers)
