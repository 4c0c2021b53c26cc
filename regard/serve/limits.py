"""What one request may ask for, and how many may ask at once."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds that keep a server answering; each is named in the problem that it leads to."""

    body: int = 1_000_000
    """Bytes of a request."""
    text: int = 5_000
    """Characters of a text."""
    explained: int = 4_000
    """Characters of a text whose looks are asked for: they grow with its square."""
    batch: int = 64
    """Texts of a request."""
    together: int = 64
    """Texts that a model reads at once."""
    waiting: int = 1_024
    """Texts that may wait for a model."""
    concurrent: int = 256
    """Requests that are worked on at once."""
    followers: int = 32
    """Event streams that are open at once."""
    seconds: float = 30.0
    """Time for a request, from its last byte to its answer."""
    reading: float = 10.0
    """Time for a request's body to arrive."""
    window: float = 0.004
    """Seconds that a model waits for company once a text has come."""
    beam: int = 16
    """Width of a beam."""
    written: int = 1_000
    """Tokens that a language model writes."""
    choices: int = 8
    """Continuations of a prompt."""
