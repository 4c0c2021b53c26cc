"""PNG files from arrays of colours and from SVG pictures."""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError

FAMILY = "Inter, 'Helvetica Neue', Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """An array [rows, columns, 3] of red, green and blue as a PNG file.

    8 bits per channel, one IDAT chunk; the byte 0 before each row is its filter type, none.
    """
    rows, width, _ = pixels.shape
    lines = np.zeros((rows, 1 + 3 * width), dtype=np.uint8)
    lines[:, 1:] = pixels.reshape(rows, 3 * width)
    header = struct.pack(">IIBBBBB", width, rows, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def png_from_svg(svg: str, scale: float = 2.0) -> bytes:
    """An SVG picture as a PNG file, with the fonts of this machine.

    Raises RegardError if no font is installed, since the picture would have no text.
    """
    # a letter that leaves no mark means that there is no font
    probe = '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16">{}</svg>'
    word = f'<text y="14" font-family="{FAMILY}">E</text>'
    if _render(probe.format(word), 1.0) == _render(probe.format(""), 1.0):
        raise RegardError(
            "no font is installed, so the PNG would have no text: install one "
            "(such as fonts-dejavu), or write .svg"
        )
    return _render(svg, scale)


def _render(svg: str, scale: float) -> bytes:
    try:
        import resvg_py
    except ImportError:
        raise RegardError(
            "PNG pictures need the package resvg-py: pip install resvg-py, or write .svg"
        ) from None
    try:
        return bytes(
            resvg_py.svg_to_bytes(
                svg_string=svg, zoom=scale, sans_serif_family="DejaVu Sans", background="#ffffff"
            )
        )
    except ValueError as error:
        raise RegardError(f"this picture cannot be drawn as PNG ({error})") from error
