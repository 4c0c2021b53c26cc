"""Learning curves of a run, drawn into its folder."""

from pathlib import Path

from regard.errors import RegardError
from regard.files import write_text, write_whole
from regard.show.curves import draw, read
from regard.show.png import from_svg


def draw_curves(folder: Path) -> str:
    """Draw the learning curves of a run into its folder; why there is no PNG, if there is none."""
    with open(folder / "metrics.jsonl", encoding="utf-8") as lines:
        picture = draw(read(lines), f"Learning curves of {folder.name}")
    write_text(folder / "curves.svg", picture)
    try:
        pixels = from_svg(picture)
    except RegardError as error:
        return f"curves.svg is there, curves.png is not: {error}"
    write_whole(folder / "curves.png", lambda part: part.write_bytes(pixels))
    return ""
