"""The tables of scores and normalizers; a row is imported when it is first used."""

from typing import TYPE_CHECKING, Any

from regard.plugins import Table

if TYPE_CHECKING:
    from regard.attention.normalizers import Normalizer
    from regard.attention.scores import Score

SCORES: "Table[Score | type[Any]]" = Table(
    "score",
    "regard.scores",
    {
        "dot": "regard.attention.scores:dot",
        "scaled_dot": "regard.attention.scores:scaled_dot",
        "cosine": "regard.attention.scores:cosine",
        "bilinear": "regard.attention.scores:Bilinear",
        "general": "regard.attention.scores:Bilinear",
        "mlp": "regard.attention.scores:MLP",
        "additive": "regard.attention.scores:Additive",
        "concat": "regard.attention.scores:Additive",
        "location": "regard.attention.scores:Location",
    },
)
"""Scores by name; other packages add rows in the group `regard.scores`."""

NORMALIZERS: "Table[Normalizer]" = Table(
    "normalizer",
    "regard.normalizers",
    {
        "softmax": "regard.attention.normalizers:softmax",
        "sparsemax": "regard.attention.normalizers:sparsemax",
        "entmax15": "regard.attention.normalizers:entmax15",
        "sigmoid": "regard.attention.normalizers:sigmoid",
        "hard": "regard.attention.normalizers:hard",
        "sum": "regard.attention.normalizers:sum",
        "none": "regard.attention.normalizers:none",
    },
)
"""Normalizers by name; other packages add rows in the group `regard.normalizers`."""
