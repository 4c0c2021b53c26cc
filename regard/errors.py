"""Errors that finish the diagnosis: what, where, what was expected, what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class RegardError(Exception):
    """A bad file, config or run folder; the command line prints it in one line and exits with 2."""


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """The message for a name that is not in a table, with the nearest one that is.

    >>> unknown("score", "scaled_dto", ["dot", "scaled_dot"])
    "unknown score 'scaled_dto': did you mean 'scaled_dot'? Known: dot, scaled_dot"
    """
    names = list(known)
    nearest = get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]!r}? " if nearest else ""
    return f"unknown {what} {name!r}: {hint}Known: {', '.join(names)}"
