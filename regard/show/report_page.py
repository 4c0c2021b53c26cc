"""A report as one HTML file: headings, paragraphs, tables and pictures, without any script."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from regard.show.text_width import fit_table, terminal_width

STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
.scroll { overflow-x: auto } table { border-collapse: collapse; font-size: 0.92rem }
th, td { padding: 0.3rem 0.7rem; border-bottom: 1px solid #8886; text-align: right }
th:first-child, td:first-child { text-align: left } svg { max-width: 100%; height: auto }
.lead { font-weight: 600 } pre { overflow-x: auto; background: #8882; padding: 0.6rem }
"""


@dataclass(frozen=True)
class Text:
    """A paragraph; the first of a report is its `lead`."""

    text: str
    lead: bool = False


@dataclass(frozen=True)
class Heading:
    """The heading of a section."""

    text: str


@dataclass(frozen=True)
class Code:
    """Commands or other text whose lines stay as they are."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table with a heading for each column."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """An SVG picture that Regard drew."""

    svg: str


Block = Text | Heading | Code | Table | Picture


def report_page(title: str, blocks: Sequence[Block]) -> str:
    """The report as one HTML document that opens from disk, without a network."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{''.join(map(_html, blocks))}</body>\n</html>\n"
    )


def markdown_table(table: Table) -> str:
    """A table in Markdown, the first column to the left and the others to the right."""

    def row(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "| --- |" + " ---: |" * (len(table.columns) - 1)
    return "\n".join([row(table.columns), rule, *map(row, table.rows)])


def terminal_table(table: Table) -> str:
    """A table for the terminal, folded where it is wider."""
    return "\n".join(fit_table([table.columns, *table.rows], terminal_width()))


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h2>{escape(block.text)}</h2>\n"
    if isinstance(block, Code):
        return f"<pre>{escape(block.text)}</pre>\n"
    if isinstance(block, Picture):
        return f"<figure>{block.svg}</figure>\n"
    if isinstance(block, Table):
        head = "".join(f"<th>{escape(name)}</th>" for name in block.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n"
            for row in block.rows
        )
        return f'<div class="scroll"><table><tr>{head}</tr>\n{body}</table></div>\n'
    name = ' class="lead"' if block.lead else ""
    return f"<p{name}>{escape(block.text)}</p>\n"
