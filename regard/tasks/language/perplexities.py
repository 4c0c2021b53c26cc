"""Perplexity of a text, per word, per token and per byte."""

from typing import Any

from regard.metrics import Tally, perplexity


def perplexities(losses: Any, words: Any, tokens: Any, size: Any) -> dict[str, Tally]:
    """Perplexities from the losses of stretches of a text and their numbers of units."""
    return {
        "perplexity_per_word": perplexity(losses, words, "word"),
        "perplexity_per_token": perplexity(losses, tokens, "token"),
        "perplexity_per_byte": perplexity(losses, size, "byte"),
    }
