"""Options of algorithms."""

from dataclasses import dataclass
from string import ascii_lowercase
from typing import Annotated, Any, Literal

from regard.errors import OptionError
from regard.options import between, check_fields

TRAINING_DEFAULTS: dict[str, Any] = {
    "epochs": 60,
    "batch_tokens": 512,
    "learning_rate": 3e-3,
    "schedule": "constant",
    "patience": 15,
}


@dataclass(frozen=True)
class AlgorithmData:
    """The algorithm and its problems."""

    kind: Literal["copy", "reverse", "sort", "recall"] = "copy"
    """Algorithm to learn."""
    shortest: Annotated[int, between(1, 10_000)] = 1
    """Length of the shortest problem, in symbols (in pairs, for recall)."""
    longest: Annotated[int, between(1, 10_000)] = 10
    """Length of the longest training problem; tests go up to twice that length."""
    symbols: Annotated[int, between(2, 10**6)] = 20
    """Number of distinct symbols, which are the numbers from 0; recall has letters as keys."""
    growth: Annotated[float, between(0, 10_000)] = 0.0
    """Curriculum: how much the longest problem grows per epoch, starting at 2; 0 turns it off."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.longest < self.shortest:
            raise OptionError("longest", f"expected {self.shortest} or more, got {self.longest}")
        if self.kind == "recall" and self.longest > len(ascii_lowercase):
            raise OptionError(
                "longest",
                f"expected {len(ascii_lowercase)} or fewer pairs in recall, whose "
                f"keys are letters, got {self.longest}",
            )

    @property
    def double(self) -> int:
        """The length of the longest test problem."""
        return min(2 * self.longest, len(ascii_lowercase) if self.kind == "recall" else 2**31)

    def longest_in(self, epoch: int) -> int:
        """The length of the longest problem of an epoch, under the curriculum."""
        if self.growth == 0:
            return self.longest
        return max(self.shortest, min(self.longest, 2 + int(self.growth * epoch)))

    def steps(self, length: int) -> int:
        """Steps of a problem: its symbols, and room for the answer."""
        return 2 * length + 4 if self.kind == "recall" else 2 * length + 1

    def names(self) -> list[str]:
        """All symbols, by number; the first three are padding, blank and end."""
        numbers = [str(number) for number in range(self.symbols)]
        return ["", "_", ".", *numbers, *((*ascii_lowercase, "?") if self.kind == "recall" else ())]
