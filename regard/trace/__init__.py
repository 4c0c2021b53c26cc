"""The trace document: what a model read and wrote, and every attention map on the way."""

from regard.trace.document import (
    PACK_THRESHOLD,
    SCHEMA,
    Alternative,
    Attribution,
    Side,
    Token,
    Trace,
    to_document,
)
from regard.trace.look import Look, from_arrays, from_transformers

__all__ = [
    "PACK_THRESHOLD",
    "SCHEMA",
    "Alternative",
    "Attribution",
    "Look",
    "Side",
    "Token",
    "Trace",
    "from_arrays",
    "from_transformers",
    "to_document",
]
