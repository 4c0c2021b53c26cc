"""Learning curves of a run, drawn into its folder."""

from pathlib import Path

from regard.atomic_files import write_text, write_whole
from regard.errors import RegardError
from regard.show.curves import curves_svg, read_curves
from regard.show.png import png_from_svg


def draw_curves(folder: Path) -> str:
    """Draw the learning curves of a run into its folder; the reason if there is no PNG, or ""."""
    with open(folder / "metrics.jsonl", encoding="utf-8", errors="replace") as lines:
        picture = curves_svg(read_curves(lines), f"Learning curves of {folder.name}")
    write_text(folder / "curves.svg", picture)
    try:
        pixels = png_from_svg(picture)
    except RegardError as error:
        return f"wrote curves.svg but not curves.png: {error}"
    write_whole(folder / "curves.png", lambda stream: stream.write(pixels))
    return ""
