"""Writes the table of results into docs/experiments.md, from a folder of `regard experiment`.

    regard experiment all --out FOLDER
    python scripts/document_experiments.py FOLDER

Everything between the comments `<!-- results -->` and `<!-- end results -->` is replaced.
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
SHOWN = 6
"""Numbers per experiment; all of them are in its result.json."""


def read_results(folder: Path) -> list[dict[str, Any]]:
    """The results in a folder, in the order of the list of experiments."""
    from regard.experiments import EXPERIMENTS

    paths = [folder / name / "result.json" for name in EXPERIMENTS]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]


def describe_number(name: str, number: dict[str, Any]) -> str:
    """A number with its interval over seeds."""
    ends = "" if number["low"] is None else f" [{number['low']:.3g}, {number['high']:.3g}]"
    return f"{name}: {number['mean']:.3g}{ends}"


def results_table(results: list[dict[str, Any]]) -> str:
    """One row per experiment."""
    rows = []
    for one in results:
        numbers = [describe_number(*item) for item in list(one["numbers"].items())[:SHOWN]]
        size = "" if one["size"] == "default" else f" --size {one['size']}"
        rows.append(
            [
                f"{one['claim']} ({one['source']})",
                f"{one['summary']}<br>{'<br>'.join(numbers)}",
                "**held**" if one["held"] else "**did not hold**",
                f"{one['seconds'] / 60:.1f}",
                f"`regard experiment {one['name']}{size}`",
            ]
        )
    heads = ["claim", "result, with 95 % intervals over seeds", "held?", "minutes", "command"]
    return markdown_table(Table(heads, rows))


def main() -> int:
    """Replace the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a folder of `regard experiment`")
    results = read_results(parser.parse_args().folder)
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(SECTION.sub(lambda _: f"\n{results_table(results)}\n\n", text), "utf-8")
    print(f"{len(results)} experiments, {sum(one['held'] for one in results)} claims held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
