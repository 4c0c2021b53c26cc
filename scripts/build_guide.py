"""Makes the pictures of the guide: live pages from example runs, and plots of experiments.

    python scripts/build_guide.py                        # live pages, before each build of the site
    python scripts/build_guide.py --experiments FOLDER   # plots and verdicts, after experiments

The live pages (docs/guide/live) are small viewers of real traces. They are built by `make docs` and
not kept in the repository. The plots (docs/guide/plots) and verdicts of experiments are kept; they
come from the folder that `regard experiment all --out FOLDER` writes. The verdicts stand in the
chapters between comments, `<!-- experiment NAME -->` and `<!-- end NAME -->`; everything between
them is replaced.
"""

import argparse
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import regard
from regard.attention import attend, masks, scores
from regard.attention.worked_example import early_bird
from regard.show import render_page, trace_from_looks
from regard.show.report_page import Table, markdown_table
from regard.trace import Trace, from_arrays

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs/guide"
SECTION = re.compile(
    r"<!-- experiment (?P<name>[\w-]+) -->\n.*?<!-- end (?P=name) -->\n", re.DOTALL
)


SHOWN = 4
"""Pictures of an experiment that its chapter shows; its report has all."""
STORY = "Viola was a fisher who lived near the lighthouse . Her teacher Oswald owned"


def read_by_example(name: str, text: str, **options: Any) -> Trace:
    """One text through a run that comes with the package."""
    trace: Trace = regard.load(f"example:{name}").trace(text, **options)
    return trace


def early_bird_maps() -> Trace:
    """The worked sentence under four scores: one attention map each."""
    example = early_bird()
    query, key, value = example.project()
    torch.manual_seed(0)
    chosen: dict[str, Any] = {
        "scaled dot product": "scaled_dot",
        "dot product": "dot",
        "cosine": "cosine",
        "additive, untrained": scores.Additive(query_size=4, key_size=4, hidden=8),
    }
    looks = [
        from_arrays(
            attend(query, key, value, score=score).weights, example.words, example.words, name=name
        )
        for name, score in chosen.items()
    ]
    return trace_from_looks(*looks)


def masked_maps() -> Trace:
    """The worked sentence under three masks."""
    example = early_bird()
    query, key, value = example.project()
    chosen = {
        "no mask": None,
        "causal": masks.causal(),
        "window of 3": masks.window(3),
    }
    looks = [
        from_arrays(
            attend(query, key, value, mask).weights, example.words, example.words, name=name
        )
        for name, mask in chosen.items()
    ]
    return trace_from_looks(*looks)


def bank_map() -> Trace:
    """Self-attention without weights: dot products of word vectors, made to sum to one."""
    words, vectors = bank_of_the_river()
    weights = attend(vectors, vectors, vectors, score="dot", normalize="sum").weights
    look = from_arrays(weights, words, words, name="dot products, sum to one")
    return trace_from_looks(look)


def bank_of_the_river() -> tuple[list[str], torch.Tensor]:
    """Four words in a space of three features: money, water, grammar."""
    vectors = [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 2.0, 0.0]]
    return ["bank", "of", "the", "river"], torch.tensor(vectors)


def bottleneck_map() -> Trace:
    """The same translation twice: what a decoder reads without attention, and with it.

    Without attention this is not a model's output but the equation: c = h_T at every step.
    """
    trace = read_by_example("translation", "The small bird is in the black box .")
    first = trace.looks[0]
    weights = [[float(key == first.keys[-1]) for key in first.keys] for _ in first.queries]
    sides = {"query_side": "target", "key_side": "source"}
    without = from_arrays(
        weights, first.queries, first.keys, name="without attention: c = h_T", **sides
    )
    learned = from_arrays(first.weights, first.queries, first.keys, name="with attention", **sides)
    return trace_from_looks(without, learned)


LIVE: dict[str, Callable[[], Trace]] = {
    "language": lambda: read_by_example("language", STORY, tokens=4),
    "bottleneck": bottleneck_map,
    "decoder": lambda: read_by_example("translation", "Paul will not photograph the boring book ."),
    "alignments": lambda: read_by_example("translation", "The small bird is in the black box ."),
    "early-bird": lambda: trace_from_looks(early_bird_maps().looks[0]),
    "scores": early_bird_maps,
    "sentiment": lambda: read_by_example("sentiment", "The film was not really great ."),
    "bank": bank_map,
    "masks": masked_maps,
    "heads": lambda: read_by_example(
        "transformer", "The doctor gives the green apple to the girl ."
    ),
    "memory": lambda: read_by_example("copy", "3 1 4 1 5"),
    "entities": lambda: read_by_example("entities", "Paul Martin works in Paris ."),
}
"""The live pages by name."""


def build_live(folder: Path) -> list[Path]:
    """Write one page per entry of `LIVE`."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for name, make in LIVE.items():
        path = folder / f"{name}.html"
        path.write_text(render_page(make(), title=f"Regard guide · {name}"), encoding="utf-8")
        pages.append(path)
    return pages


def experiment_section(result: dict[str, Any]) -> str:
    """What a chapter shows of one experiment: claim, verdict and plots."""
    name = result["name"]
    outcome = "The claim held" if result["held"] else "The claim did not hold"
    size = "" if result["size"] == "default" else f" --size {result['size']}"
    lines = [
        f"<!-- experiment {name} -->",
        f"**Experiment `{name}`.** *Claim:* {result['claim']} ({result['source']})",
        "",
        f"**{outcome}:** {result['summary']}",
        "",
        *(f"![{name}: {Path(p).stem}](plots/{name}-{p})" for p in result["pictures"][:SHOWN]),
        "",
        *(
            f"{heading}:\n\n{markdown_table(Table(**table))}\n"
            for heading, table in result.get("tables", {}).items()
        ),
        f"Repeat it with `regard experiment {name}{size}`.",
        f"<!-- end {name} -->",
        "",
    ]
    return "\n".join(lines)


def fill_chapters(results: Path, guide: Path) -> list[str]:
    """Put the results of experiments into the chapters; returns the names that were found."""
    plots = guide / "plots"
    plots.mkdir(exist_ok=True)
    filled = []
    for chapter in sorted(guide.glob("*.md")):
        text = chapter.read_text(encoding="utf-8")
        for name in [match["name"] for match in SECTION.finditer(text)]:
            source = results / name / "result.json"
            if not source.is_file():
                print(f"{chapter.name}: no result of {name} in {results}", file=sys.stderr)
                continue
            result = json.loads(source.read_text(encoding="utf-8"))
            for picture in result["pictures"][:SHOWN]:
                shutil.copyfile(results / name / picture, plots / f"{name}-{picture}")
            section = experiment_section(result)
            old = next(match for match in SECTION.finditer(text) if match["name"] == name)
            text = text[: old.start()] + section + text[old.end() :]
            filled.append(name)
        chapter.write_text(text, encoding="utf-8")
    return filled


def main() -> int:
    """Build the live pages, or take in the results of experiments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=Path, help="a folder of `regard experiment`")
    chosen = parser.parse_args()
    if chosen.experiments is not None:
        print(f"filled in: {', '.join(fill_chapters(chosen.experiments, GUIDE)) or 'nothing'}")
        return 0
    pages = build_live(GUIDE / "live")
    print(f"{len(pages)} live pages, {sum(page.stat().st_size for page in pages) / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
