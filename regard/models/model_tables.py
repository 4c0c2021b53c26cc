"""The tables of encoders and decoders; a part is imported when it is first used."""

from typing import Any

from regard.plugins import Table

ENCODERS: Table[Any] = Table(
    "encoder",
    "regard.encoders",
    {
        "none": "regard.models.encoders:IdentityEncoder",
        "self": "regard.models.encoders:SelfAttentionEncoder",
        "recurrent": "regard.models.encoders:RecurrentEncoder",
        "recurrent_self": "regard.models.encoders:RecurrentSelfEncoder",
        "transformer": "regard.models.encoders:TransformerEncoder",
    },
)
"""Encoders by name; other packages add rows in the group `regard.encoders`."""

DECODERS: Table[Any] = Table(
    "decoder",
    "regard.decoders",
    {
        "recurrent": "regard.models.decoders:RecurrentDecoder",
        "transformer": "regard.models.decoders:TransformerDecoder",
    },
)
"""Decoders by name; other packages add rows in the group `regard.decoders`."""
