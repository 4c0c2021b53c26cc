"""PDF files from SVG pictures: lines, letters and colours stay vectors."""

from regard.errors import RegardError


def pdf_from_svg(svg: str) -> bytes:
    """An SVG picture as a PDF of one page with embedded fonts, those of this machine.

    The conversion is that of svg2pdf and resvg, in the package vl-convert-python, which brings all
    that it needs. RegardError where it is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise RegardError(
            "PDF pictures need the package vl-convert-python: pip install 'regard[pdf]', "
            "or write .svg or .png"
        ) from None
    try:
        return bytes(vl_convert.svg_to_pdf(svg))
    except ValueError as error:
        raise RegardError(f"this picture cannot be drawn as PDF ({error})") from error
