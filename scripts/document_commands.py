"""Writes docs/reference/commands.md: every command with all its options, from the parsers.

python scripts/document_commands.py
"""

import argparse
import re
import sys
from pathlib import Path

from regard.cli import make_parser

PAGE = Path(__file__).parents[1] / "docs/reference/commands.md"
HEAD = """# Command line

Every command with its options, as `regard COMMAND --help` prints them; written from the parsers by
`scripts/document_commands.py`. The guide is [The command line](../commands.md).
"""


def parsers(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """A parser and those of its subcommands, in order."""
    found = [parser]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                found += parsers(child)
    return found


def cells(action: argparse.Action) -> tuple[str, str]:
    """The names of an option with its value, and its help."""
    names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    value = ""
    if action.option_strings and action.nargs != 0:
        choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else None
        metavar = action.metavar if isinstance(action.metavar, str) else None
        value = " " + (metavar or choices or action.dest.upper())
    help_text = " ".join((action.help or "").replace("%%", "%").split())
    name = f"{names}{value}".replace("|", "\\|")
    return f"`{name}`", re.sub(r"([|<*_])", r"\\\1", help_text)


def section(parser: argparse.ArgumentParser) -> list[str]:
    """What the page says of one command."""
    lines = [f"## {parser.prog}", "", parser.description or "", ""]
    for group in parser._action_groups:
        actions = [a for a in group._group_actions if a.help != argparse.SUPPRESS]
        actions = [a for a in actions if not isinstance(a, argparse._HelpAction)]
        actions = [a for a in actions if not isinstance(a, argparse._SubParsersAction)]
        if not actions:
            continue
        title = (group.title or "options").capitalize()
        lines += [f"**{title}**", "", "| option | meaning |", "| --- | --- |"]
        lines += [f"| {name} | {text} |" for name, text in map(cells, actions)]
        lines.append("")
    examples = getattr(parser, "examples", ())
    if examples:
        lines += ["```text", *examples, "```", ""]
    return lines


def command_page() -> str:
    """The whole page."""
    found = parsers(make_parser(None))
    return HEAD + "\n" + "\n".join(line for one in found for line in section(one)).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(command_page(), encoding="utf-8")
    sys.exit(0)
