"""Writes the table of results into docs/experiments.md, from a folder of `regard experiment`.

    regard experiment all --out FOLDER
    python scripts/document_experiments.py FOLDER

Everything between the comments `<!-- results -->` and `<!-- end results -->` is replaced, except
rows of experiments that the folder has no result of. Minutes are processor time: experiments use
one thread, and the clock of a machine that does other things says little.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from regard.show.report_page import Table, markdown_table

PAGE = Path(__file__).parents[1] / "docs/experiments.md"
SECTION = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- end results -->\n)", re.DOTALL)
COMMAND = re.compile(r"`regard experiment ([\w-]+)(?: --size \w+)?`")
SHOWN = 4
"""Numbers per experiment; all of them are in its result.json."""


def read_results(folder: Path) -> list[dict[str, Any]]:
    """The results in a folder, in the order of the list of experiments."""
    from regard.experiments import EXPERIMENTS

    paths = [folder / name / "result.json" for name in EXPERIMENTS]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]


def describe_number(name: str, number: dict[str, Any]) -> str:
    """A number with its interval over seeds."""
    mean, low, high = (format_number(number[part]) for part in ("mean", "low", "high"))
    return f"{name}: {mean}" + (f" [{low}, {high}]" if low else "")


def format_number(value: float | None) -> str:
    """Three digits, or a whole number; empty for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def describe_minutes(seconds: float) -> str:
    """Minutes with one digit; of a moment that it is one."""
    return "< 0.1" if seconds < 6 else f"{seconds / 60:.1f}"


def kept_rows(section: str) -> dict[str, list[str]]:
    """The rows of a table that was written before, by the name of the experiment."""
    lines = [line for line in section.splitlines() if COMMAND.search(line)]
    rows = [[cell.replace("\\|", "|") for cell in line.strip("| ").split(" | ")] for line in lines]
    return {COMMAND.findall(row[0])[-1]: row for row in rows}


def results_table(results: list[dict[str, Any]], before: dict[str, list[str]]) -> str:
    """One row per experiment; those without a result stay as they were before."""
    from regard.experiments import EXPERIMENTS

    made = dict(before)
    for one in results:
        numbers = [describe_number(*item) for item in list(one["numbers"].items())[:SHOWN]]
        size = "" if one["size"] == "default" else f" --size {one['size']}"
        made[one["name"]] = [
            f"{one['claim']} ({one['source']})<br>`regard experiment {one['name']}{size}`",
            f"{one['summary'][:1].upper()}{one['summary'][1:]}<br>{'<br>'.join(numbers)}",
            "**held**" if one["held"] else "**did not hold**",
            describe_minutes(one["processor_seconds"]),
        ]
    rows = [made[name] for name in EXPERIMENTS if name in made]
    heads = ["claim and command", "result, with 95 % intervals over seeds", "held?", "minutes"]
    head, _, *body = markdown_table(Table(heads, rows)).splitlines()
    return "\n".join([head, "| --- | --- | --- | ---: |", *body])


def main() -> int:
    """Replace the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a folder of `regard experiment`")
    results = read_results(parser.parse_args().folder)
    text = PAGE.read_text(encoding="utf-8")
    before = kept_rows("".join(SECTION.findall(text)))
    table = results_table(results, before)
    PAGE.write_text(SECTION.sub(lambda _: f"\n{table}\n\n", text), "utf-8")
    print(f"{len(results)} experiments, {sum(one['held'] for one in results)} claims held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
