"""Attention maps in plain words, for the titles of pictures."""

from regard.trace.look import Look

LOOK_NAMES = {
    "source": "Attention to the source",
    "past": "Attention to the past",
    "pooling": "Attention of the pooling",
    "pooling.self": "Self-attention of the pooling",
    "encoder.self": "Encoder self-attention",
    "decoder.self": "Decoder self-attention",
    "decoder.source": "Decoder attention to the source",
    "encoder.experts": "Experts of the encoder",
    "decoder.experts": "Experts of the decoder",
    "experts": "Experts of the decision",
    "memory.read": "Read heads of the memory",
    "memory.write": "Write heads of the memory",
}
"""The app has the same table (`page/look-names.js`). Other names are shown as they are."""


def look_title(look: Look, note: str = "") -> str:
    """The name of a look in words, its layer and head, with a note after them.

    >>> from regard.trace.look import from_arrays
    >>> look_title(from_arrays([[1.0]], ["chat"], ["cat"], name="decoder.self", layer=1), "mean")
    'Decoder self-attention · layer 1 · mean'
    """
    return LOOK_NAMES.get(look.name, look.name) + look.title(note).removeprefix(look.name)
