"""Counts what the attacks tried and how each attempt ended, for the figures in the docs."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field


@dataclass
class Family:
    """Attempts of one kind."""

    outcomes: Counter[str] = field(default_factory=Counter)
    megabytes: float = 0.0
    """The most memory that one attempt took; 0 if it was not measured."""
    cpu_seconds: float = 0.0
    """The most processor time that one attempt took."""

    def __str__(self) -> str:
        ended = ", ".join(f"{kind} {count:,}" for kind, count in sorted(self.outcomes.items()))
        return (
            f"{self.outcomes.total():,} ({ended}), at most {self.cpu_seconds:.2f} s of processor"
            f" time and {self.megabytes:.0f} MB"
        )


FAMILIES: defaultdict[str, Family] = defaultdict(Family)


def count(name: str, kind: str, cpu_seconds: float = 0.0, megabytes: float = 0.0) -> None:
    """Count one attempt of a family."""
    family = FAMILIES[name]
    family.outcomes[kind] += 1
    family.megabytes = max(family.megabytes, megabytes)
    family.cpu_seconds = max(family.cpu_seconds, cpu_seconds)
