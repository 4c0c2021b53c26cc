"""Fair comparisons: a grid of systems under an equal budget, tested over seeds and sentences."""

from typing import TYPE_CHECKING

from regard.lazy_imports import export_lazily

if TYPE_CHECKING:
    from regard.compare.comparison import compare
    from regard.compare.comparison_result import ComparisonResult

__all__ = ["ComparisonResult", "compare"]

export_lazily(
    __name__,
    {
        "ComparisonResult": "regard.compare.comparison_result:ComparisonResult",
        "compare": "regard.compare.comparison:compare",
    },
)
