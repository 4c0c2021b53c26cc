"""Pictures as files: SVG, PNG or PDF, by the ending of the file's name."""

from contextlib import suppress
from os import PathLike
from pathlib import Path

from regard.atomic_files import write_output
from regard.errors import RegardError
from regard.show.pdf import pdf_from_svg
from regard.show.png import png_from_svg

PICTURE_FORMATS = ("svg", "png", "pdf")


def picture_format(path: str | PathLike[str], option: str) -> str:
    """The format of a picture file, from its ending; RegardError if it is no picture."""
    ending = Path(path).suffix.lstrip(".").lower()
    if ending not in PICTURE_FORMATS:
        expected = ", ".join(f".{one}" for one in PICTURE_FORMATS)
        raise RegardError(f"{option} {path}: expected a file that ends in one of {expected}")
    return ending


def picture_bytes(svg: str, file_format: str) -> bytes:
    """An SVG picture as a file of this format."""
    if file_format == "png":
        return png_from_svg(svg)
    if file_format == "pdf":
        return pdf_from_svg(svg)
    return svg.encode("utf-8", "replace")


def write_picture(path: str | PathLike[str], svg: str) -> Path:
    """Write an SVG picture in the format that the ending of the file's name says."""
    target = Path(path)
    data = picture_bytes(svg, picture_format(target, "picture"))
    with suppress(OSError):  # the error of writing says more
        target.parent.mkdir(parents=True, exist_ok=True)
    write_output(target, lambda stream: stream.write(data))
    return target
