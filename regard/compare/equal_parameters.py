"""Systems of equal size: widths that give all of them the same number of parameters."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import islice

from regard.compare.comparison_folder import ComparisonFolder
from regard.compare.grid import System
from regard.compare.prepared_systems import count_parameters
from regard.errors import OptionError, RegardError
from regard.tasks.registry import TaskSpec
from regard.training.run import make_configs

TOLERANCE = 0.01
"""How much larger the largest system may be than the smallest."""
REACH = 12
"""Widths are tried from the given one divided by this to the given one times this."""
MAX_TARGETS = 100


@dataclass
class Sizes:
    """The numbers of parameters of one system by its width, counted when they are needed."""

    widths: range
    fits: Callable[[int], bool]
    """Whether the system can have this width: it may have to be a multiple of its heads."""
    count: Callable[[int], int]

    def nearest(self, parameters: int) -> tuple[int, int] | None:
        """The width that gives about so many parameters, and how many it gives."""

        def at_least(width: int) -> int:
            possible = self._first_fit(range(width, self.widths.stop))
            return parameters if possible is None else self.count(possible)

        place = self.widths.start + bisect_left(self.widths, parameters, key=at_least)
        above = self._first_fit(range(place, self.widths.stop))
        below = self._first_fit(range(place - 1, self.widths.start - 1, -1))
        sizes = [(width, self.count(width)) for width in (above, below) if width is not None]
        return min(sizes, key=lambda size: abs(size[1] - parameters), default=None)

    def _first_fit(self, widths: range) -> int | None:
        return next((width for width in widths if self.fits(width)), None)


def equal_widths(sizes: Sequence[Sizes], start: int) -> list[int] | None:
    """Widths whose numbers of parameters differ by at most 1 %, near `start`; None if none do."""
    first = sizes[0]
    targets = (w for w in sorted(first.widths, key=lambda w: abs(w - start)) if first.fits(w))
    for width in islice(targets, MAX_TARGETS):
        chosen = [one.nearest(first.count(width)) for one in sizes]
        counts = [size[1] for size in chosen if size is not None]
        if len(counts) == len(sizes) and max(counts) <= (1 + TOLERANCE) * min(counts):
            return [size[0] for size in chosen if size is not None]
    return None


def make_equal(
    spec: TaskSpec, systems: Sequence[System], folder: ComparisonFolder
) -> tuple[System, ...]:
    """The systems with widths that give all of them the same number of parameters."""
    defaults = {field.name: field.default for field in fields(spec.model)}
    if "width" not in defaults or any("width" in system.varied for system in systems):
        raise OptionError("equal", "parameters are made equal by width, which must not vary")
    start = int(systems[0].options.get("width", defaults["width"]))
    sizes = [_sizes(spec, system, folder, start) for system in systems]
    if (widths := equal_widths(sizes, start)) is None:
        raise RegardError(
            f"no widths near {start} give all systems the same number of parameters within "
            f"{100 * TOLERANCE:.0f} %: another --width, more --layers or fewer --heads may"
        )
    return tuple(
        replace(system, options={**system.options, "width": width})
        for system, width in zip(systems, widths, strict=True)
    )


def _sizes(spec: TaskSpec, system: System, folder: ComparisonFolder, start: int) -> Sizes:
    @cache
    def count(width: int) -> int:
        return count_parameters(spec, {**system.options, "width": width}, folder)

    @cache
    def fits(width: int) -> bool:
        try:
            make_configs(spec, {**system.options, "width": width})
        except (RegardError, ValueError):
            return False
        return True

    return Sizes(range(max(1, int(start / REACH)), int(start * REACH) + 1), fits, count)
