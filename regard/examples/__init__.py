"""Trained runs that come with the package, by name: `example:NAME`.

They are small, packed (without training text) and in half precision; `scripts/train_examples.py`
trains them on the built-in corpora.
"""

from os import PathLike, fspath
from pathlib import Path

from regard.errors import RegardError, unknown

FOLDER = Path(__file__).parent
PREFIX = "example:"
ORDER = "translation transformer sentiment entities language copy"
"""The examples as one would show them, with spaces between them."""


def example_names() -> list[str]:
    """The names of the examples, in the order in which one would show them."""
    names = [path.parent.name for path in FOLDER.glob("*/config.json")]
    order = {name: place for place, name in enumerate(ORDER.split())}
    return sorted(names, key=lambda name: (order.get(name, len(order)), name))


def example_path(path: str | PathLike[str]) -> Path:
    """The folder of an example for `example:NAME`; other paths as they are.

    `example:` is the folder with all of them.

    >>> example_path("runs/en-fr").as_posix()
    'runs/en-fr'
    >>> example_path("example:") == FOLDER
    True
    """
    text = fspath(path)
    if not text.startswith(PREFIX):
        return Path(path)
    name = text.removeprefix(PREFIX)
    if name and name not in example_names():
        raise RegardError(unknown("example", name, example_names()))
    return FOLDER / name


def shown_path(path: Path) -> str:
    """A path as a user would write it: `example:NAME` for an example.

    >>> shown_path(FOLDER / "copy"), shown_path(Path("runs/en-fr"))
    ('example:copy', 'runs/en-fr')
    """
    return f"{PREFIX}{path.name}" if path.parent == FOLDER else str(path)


def is_example(path: Path) -> bool:
    """Whether a run came with the package: nothing is written into its folder."""
    return path.resolve().is_relative_to(FOLDER.resolve())
