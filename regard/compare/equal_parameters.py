"""Systems of equal size: widths that give all of them the same number of parameters.

Widths of transformers are multiples of their heads, so that few sizes are possible. The hidden size
of their feed-forward networks makes up for what is left.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import islice
from typing import NamedTuple

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


class Size(NamedTuple):
    """A number of parameters, and the options that give it."""

    parameters: int
    options: Mapping[str, int]


@dataclass
class Sizes:
    """The sizes of one system by its width, counted when they are needed."""

    widths: range
    fits: Callable[[int], bool]
    """Whether the system can have this width: it may have to be a multiple of its heads."""
    count: Callable[[int], int]
    adjust: Callable[[int, int], Size | None] = lambda width, parameters: None
    """The size with this width that comes nearest to a number of parameters by other options."""

    def nearest(self, parameters: int) -> Size | None:
        """The size nearest to a number of parameters."""

        def at_least(width: int) -> int:
            possible = self._first_fit(range(width, self.widths.stop))
            return parameters if possible is None else self.count(possible)

        place = self.widths.start + bisect_left(self.widths, parameters, key=at_least)
        above = self._first_fit(range(place, self.widths.stop))
        below = self._first_fit(range(place - 1, self.widths.start - 1, -1))
        widths = [width for width in (above, below) if width is not None]
        sizes = [Size(self.count(width), {"width": width}) for width in widths]
        nearest = min(sizes, key=lambda size: abs(size.parameters - parameters), default=None)
        if nearest is None or abs(nearest.parameters - parameters) <= TOLERANCE / 4 * parameters:
            return nearest
        return self.adjust(nearest.options["width"], parameters) or nearest

    def _first_fit(self, widths: range) -> int | None:
        return next((width for width in widths if self.fits(width)), None)


def equal_sizes(sizes: Sequence[Sizes], start: int) -> list[Size] | None:
    """Sizes that differ by at most 1 %, of widths near `start`; None if there are none."""
    first = sizes[0]
    targets = (w for w in sorted(first.widths, key=lambda w: abs(w - start)) if first.fits(w))
    for width in islice(targets, MAX_TARGETS):
        found = [one.nearest(first.count(width)) for one in sizes]
        chosen = [size for size in found if size is not None]
        counts = [size.parameters for size in chosen]
        if len(counts) == len(sizes) and max(counts) <= (1 + TOLERANCE) * min(counts):
            return chosen
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
    if (chosen := equal_sizes(sizes, start)) is None:
        raise RegardError(
            f"no widths near {start} give all systems the same number of parameters within "
            f"{100 * TOLERANCE:.0f} %: another --width, more --layers or fewer --heads may"
        )
    return tuple(
        replace(system, options={**system.options, **size.options})
        for system, size in zip(systems, chosen, strict=True)
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

    def adjust(width: int, parameters: int) -> Size | None:
        given = system.options.get("feed_forward")
        if given is not None or "feed_forward" not in {field.name for field in fields(spec.model)}:
            return None

        def size(hidden: int) -> Size:
            options = {"width": width, "feed_forward": hidden}
            return Size(count_parameters(spec, {**system.options, **options}, folder), options)

        small, large = size(width), size(2 * width)  # in between, it is a straight line
        if (slope := (large.parameters - small.parameters) / width) <= 0:
            return None
        hidden = width + round((parameters - small.parameters) / slope)
        return size(hidden) if width / 2 <= hidden <= 4 * width else None

    return Sizes(range(max(1, int(start / REACH)), int(start * REACH) + 1), fits, count, adjust)
