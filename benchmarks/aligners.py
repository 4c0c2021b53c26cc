"""The trained aligner beside eflomal: the same pairs, choices on dev, the test pairs once.

    python benchmarks/aligners.py --data hansards --indexed-from 1 --out runs/aligners

The folder holds train, dev and test, each with .en and .fr (or other endings: --endings), and the
gold links dev.gold and test.gold. Both aligners read the sentences of all three. The threshold of
the aligner and the symmetrization of eflomal are the best on dev. Prints a Markdown table.
"""

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from regard.data import Pair
from regard.inference import load
from regard.inference.align.read_pairs import read_every_pair, read_links
from regard.inference.align.symmetrize import SYMMETRIZATIONS
from regard.inference.align.trained_aligner import word_aligner
from regard.metrics import GoldLinks, alignment_metrics, measure, parse_pharaoh
from regard.metrics.gold import zero_based_links
from regard.metrics.tally import metric_value

Links = set[tuple[int, int]]
EFLOMAL = """
import sys
from eflomal import Aligner
source, target, forward, backward = sys.argv[1:]
sides = [open(name, encoding="utf-8").read().split("\\n")[:-1] for name in (source, target)]
Aligner().align(*sides, forward, backward)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("runs/aligners"), metavar="FOLDER")
    parser.add_argument("--endings", nargs=2, default=["en", "fr"], metavar="ENDING")
    parser.add_argument("--indexed-from", type=int, choices=(0, 1), help="of test.gold")
    parser.add_argument(
        "--eflomal", default=sys.executable, metavar="PYTHON", help="one that has eflomal"
    )
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    pairs = {
        part: read_every_pair(None, [str(path) for path in _files(chosen, part)])
        for part in ("train", "dev", "test")
    }
    gold = {
        part: zero_based_links(
            read_links(str(chosen.data / f"{part}.gold")),
            [(len(pair.source.split()), len(pair.target.split())) for pair in pairs[part]],
            first=chosen.indexed_from if part == "test" else None,
        )
        for part in ("dev", "test")
    }
    print("| aligner | AER | precision | recall | AER on dev | seconds (processor) |")
    print("| --- | --- | --- | --- | --- | --- |")
    _eflomal(chosen, pairs, gold)
    _aligner(chosen, pairs, gold)


def _files(chosen: argparse.Namespace, part: str) -> list[Path]:
    return [chosen.data / f"{part}.{ending}" for ending in chosen.endings]


def _timed(command: Sequence[str]) -> str:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{time.monotonic() - start:.0f} ({spent:.0f})"


def _row(
    name: str,
    dev: Sequence[Links],
    test: Sequence[Links],
    gold: dict[str, list[GoldLinks]],
    seconds: str = "",
) -> None:
    found = alignment_metrics(test, gold["test"])
    on_dev = metric_value(alignment_metrics(dev, gold["dev"])["aer"])
    rate = measure(found["aer"])
    interval = f" [{rate.low:.3f}, {rate.high:.3f}]"
    others = " | ".join(f"{metric_value(found[part]):.3f}" for part in ("precision", "recall"))
    print(
        f"| {name} | {rate.value:.4f}{interval} | {others} | {on_dev:.4f} | {seconds} |", flush=True
    )


def _eflomal(
    chosen: argparse.Namespace, pairs: dict[str, list[Pair]], gold: dict[str, Any]
) -> None:
    order = ("train", "dev", "test")
    names = [str(chosen.out / f"eflomal.{part}") for part in ("source", "target", "fwd", "rev")]
    for side, name in zip(("source", "target"), names, strict=False):
        texts = [getattr(pair, side) for part in order for pair in pairs[part]]
        Path(name).write_text("".join(text + "\n" for text in texts), "utf-8")
    seconds = _timed([chosen.eflomal, "-c", EFLOMAL, *names])
    ways = [
        [set(parse_pharaoh(line).sure) for line in Path(name).read_text().split("\n")[:-1]]
        for name in names[2:]
    ]
    joins: dict[str, Callable[[Links, Links], Links]] = {
        "forward": lambda one, other: one,
        "backward": lambda one, other: other,
        **SYMMETRIZATIONS,
    }
    first = len(pairs["train"])
    rows = []
    for name, join in joins.items():
        links = [join(one, other) for one, other in zip(*ways, strict=True)][first:]
        dev, test = links[: len(pairs["dev"])], links[len(pairs["dev"]) :]
        rows.append((metric_value(alignment_metrics(dev, gold["dev"])["aer"]), name, dev, test))
    best = min(rows)[1]
    for _, name, dev, test in rows:
        _row(f"eflomal, `{name}`{' (best on dev)' * (name == best)}", dev, test, gold, seconds)


def _aligner(
    chosen: argparse.Namespace, pairs: dict[str, list[Pair]], gold: dict[str, Any]
) -> None:
    train = [*_files(chosen, "train"), *_files(chosen, "test")]
    command = ["train", "align", "--data", *train, "--valid", *_files(chosen, "dev")]
    command += ["--valid-gold", chosen.data / "dev.gold", "--out", chosen.out / "align"]
    seconds = _timed([sys.executable, "-m", "regard", *map(str, command)])
    run = load(chosen.out / "align")
    aligner = word_aligner(run)
    least = aligner.threshold(run.model)
    dev, test = (aligner.posteriors(run.task, run.model, pairs[part]) for part in ("dev", "test"))
    for side, name in enumerate(("forward", "backward")):
        sides = [[one.best(side) for one in found] for found in (dev, test)]
        _row(f"`regard train align`, {name}", *sides, gold, seconds)
    both = [[one.links(least) for one in found] for found in (dev, test)]
    _row(f"`regard train align`, threshold {least:.2f} (best on dev)", *both, gold, seconds)


if __name__ == "__main__":
    main()
