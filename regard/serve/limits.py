"""How large a request may be, and how many requests are served at once."""

from dataclasses import dataclass

LARGE_BODY = 65_536
"""Bytes of a body above which it counts as a large one."""


@dataclass(frozen=True)
class Limits:
    """Limits of a server; a request that exceeds one gets a problem that names it."""

    body_bytes: int = 1_000_000
    """Maximum size of a request's body."""
    text_characters: int = 5_000
    """Maximum length of a text."""
    traced_characters: int = 4_000
    """Maximum length of a text to trace: attention maps grow with the square of its length."""
    texts_per_request: int = 64
    """Maximum number of texts in one request."""
    batch_texts: int = 64
    """Maximum number of texts that a model predicts in one batch."""
    waiting_texts: int = 1_024
    """Maximum number of texts that wait for one model."""
    connections: int = 1_024
    """Maximum number of open connections; fewer if the process may not open as many files."""
    connections_per_address: int = 256
    """Maximum number of open connections from one address (IPv6: one network of 64 bits). A further
    one closes the one that has been idle the longest, or gets status 503 if none is idle."""
    head_seconds: float = 10.0
    """Maximum time for the head of a request to arrive, counted from the start of the connection or
    from its last response."""
    idle_seconds: int = 5
    """Time after a response without a further request until the connection is closed."""
    write_seconds: float = 20.0
    """Maximum time that a response waits for a client that does not read it."""
    large_bodies: int = 64
    """Maximum number of bodies of more than `LARGE_BODY` bytes that are received at once."""
    concurrent_requests: int = 256
    """Maximum number of requests that are handled at once."""
    event_streams: int = 32
    """Maximum number of event streams that are open at once."""
    request_seconds: float = 30.0
    """Maximum time for a response, from the last byte of the request."""
    body_seconds: float = 10.0
    """Maximum time for a request's body to arrive."""
    batch_window: float = 0.004
    """Seconds that a model waits for further texts before it predicts a batch."""
    beam: int = 16
    """Maximum beam width."""
    generated_tokens: int = 1_000
    """Maximum number of tokens to generate."""
    completions: int = 8
    """Maximum number of completions of a prompt, and of prompts in one request."""
