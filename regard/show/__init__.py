"""Pictures of looks: for the terminal and as SVG."""

from regard.show.svg import matrix
from regard.show.terminal import shaded

__all__ = ["matrix", "shaded"]
