"""Alignment error on a gold set: both directions, symmetrised, guided, and eflomal beside them.

    python benchmarks/alignment.py --data hansards --minutes 20 --out runs/hansards

The folder holds train.en, train.fr, test.en, test.fr and test.gold (or other endings: --endings).
Runs and links that are there already in --out are used as they are, so that a call that
was stopped resumes.
"""

import argparse
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from regard.data import Pair
from regard.inference import Run, load
from regard.inference.align.alignments import align, word_weights
from regard.inference.align.choose_head import choose_heads
from regard.inference.align.extract_links import argmax, mutual
from regard.inference.align.read_pairs import read_every_pair, read_links, reverse_pairs
from regard.inference.align.symmetrize import AGREE, SYMMETRIZATIONS, agree
from regard.metrics import GoldLinks, alignment_metrics, measure, parse_pharaoh
from regard.metrics.gold import zero_based_links
from regard.training.run import train_run

RECURRENT = {"order": "luong", "input_feeding": True}
TRANSFORMER = {"model": "transformer", "align_loss": 2.0}
COMMON = {"lowercase": True, "max_tokens": 100, "evaluate_every": 2000, "average": 1}
COMMON |= {"learning_rate": 2e-3, "schedule": "cosine", "dropout": 0.1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("runs/alignment"), metavar="FOLDER")
    parser.add_argument("--endings", nargs=2, default=["en", "fr"], metavar="ENDING")
    parser.add_argument("--minutes", type=float, default=20.0, help="for each run that is trained")
    parser.add_argument("--steps", type=int, help="in place of minutes, for a try")
    parser.add_argument("--pairs", type=int, help="of the training pairs, so many from the top")
    parser.add_argument("--indexed-from", type=int, choices=(0, 1))
    parser.add_argument("--erasure", type=float, default=1.0, help="in the rows that have it")
    parser.add_argument(
        "--own-erasure", type=float, help="in the links that guide (default: as --erasure)"
    )
    parser.add_argument("--width", type=int, default=256, help="of recurrent models")
    parser.add_argument("--guided-width", type=int, default=128, help="of guided transformers")
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument(
        "--guided-by",
        nargs="*",
        choices=("own", "eflomal"),
        default=["eflomal", "own"],
        help="whose links of the training pairs guide a transformer (default: either's)",
    )
    parser.add_argument("--no-eflomal", action="store_true")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)

    train = _train_files(chosen)
    test = read_every_pair(None, [str(chosen.data / f"test.{end}") for end in chosen.endings])
    lengths = [(len(pair.source.split()), len(pair.target.split())) for pair in test]
    gold = zero_based_links(
        read_links(str(chosen.data / "test.gold")), lengths, first=chosen.indexed_from
    )
    rows = Rows(gold)
    known = None if chosen.no_eflomal else _eflomal(chosen, train, test, rows)
    runs = _trained(chosen, train, "recurrent", RECURRENT)
    places = choose_heads(*runs, list(_some(train, 500)))
    for erasure in sorted({0.0, chosen.erasure}):
        name = "recurrent" + (f" with erasure {erasure:g}" if erasure else "")
        _add_runs(rows, name, runs, test, places, erasure)
    for guide in chosen.guided_by:
        if guide == "eflomal" and known is None:
            rows.leave_out("guided by eflomal", "eflomal is not there")
            continue
        links = chosen.out / f"train.{guide}.pharaoh"
        if not links.exists():
            made = map(_pharaoh, known or ()) if guide == "eflomal" else _own(chosen, train, runs)
            _write_lines(links, made)
        guided = _trained(chosen, train, f"guided.{guide}", TRANSFORMER, links)
        by = "eflomal" if guide == "eflomal" else f"own {AGREE}"
        _add_runs(rows, f"guided by {by}", guided, test, tuple(r.task.guided for r in guided), 0.0)


def _own(chosen: argparse.Namespace, train: list[Path], runs: tuple[Run, Run]) -> Iterator[str]:
    """The links that the first pass finds in the training pairs."""
    pairs = list(_some(train, None))
    ahead, back = choose_heads(*runs, pairs[:500])
    weight = chosen.erasure if chosen.own_erasure is None else chosen.own_erasure
    found = align(runs[0], pairs, ahead, both=(runs[1], back), symmetrize=AGREE, erasure=weight)
    return map(str, found)


class Rows:
    """The table: a line for each way to align, printed as it comes."""

    def __init__(self, gold: Sequence[GoldLinks]) -> None:
        self.gold = gold
        print(
            f"{len(gold)} pairs\n\n| links | AER | precision | recall |\n| --- | --- | --- | --- |"
        )

    def add(self, name: str, found: Sequence[Collection[tuple[int, int]]]) -> None:
        tallies = alignment_metrics([set(links) for links in found], self.gold)
        told = {key: measure(tally) for key, tally in tallies.items()}
        cells = [f"{told['aer'].value:.3f} [{told['aer'].low:.3f}, {told['aer'].high:.3f}]"]
        cells += [f"{told[key].value:.3f}" for key in ("precision", "recall")]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)

    def leave_out(self, name: str, why: str) -> None:
        print(f"| {name} | left out: {why} | | |", flush=True)


def _add_runs(
    rows: Rows,
    name: str,
    runs: tuple[Run, Run],
    test: Sequence[Pair],
    places: tuple[Any, ...],
    erasure: float,
) -> None:
    ahead = [weights for weights, _ in word_weights(runs[0], test, places[0], erasure)]
    back = [
        weights for weights, _ in word_weights(runs[1], reverse_pairs(test), places[1], erasure)
    ]
    forward = [argmax(weights) for weights in ahead]
    backward = [{(s, t) for t, s in argmax(weights)} for weights in back]
    _add_joined(rows, name, forward, backward)
    agreed = [agree(*both) for both in zip(ahead, back, strict=True)]
    for extract in (argmax, mutual):
        links = [extract(weights) for weights in agreed]
        rows.add(f"{name}, {AGREE}, {extract.__name__}", links)


def _add_joined(rows: Rows, name: str, forward: list[Any], backward: list[Any]) -> None:
    rows.add(f"{name}, forward", forward)
    rows.add(f"{name}, backward", backward)
    for how, join in SYMMETRIZATIONS.items():
        joined = [join(one, other) for one, other in zip(forward, backward, strict=True)]
        rows.add(f"{name}, {how}", joined)


def _trained(
    chosen: argparse.Namespace,
    train: list[Path],
    name: str,
    options: dict[str, Any],
    links: Path | None = None,
) -> tuple[Run, Run]:
    runs = []
    for direction, files in (("forward", train), ("backward", train[::-1])):
        folder = chosen.out / f"{name}.{direction}"
        given = COMMON | options | {"data": [str(file) for file in files]}
        given |= {"steps": chosen.steps} if chosen.steps else {"minutes": chosen.minutes}
        width = chosen.width if links is None else chosen.guided_width
        given |= {"width": width, "batch_tokens": chosen.batch_tokens}
        if links is not None:
            guide = links if direction == "forward" else _turned_links(links)
            given["alignments"] = str(guide)
        train_run("translation", given, folder, log=lambda line: None)
        runs.append(load(folder))
    return runs[0], runs[1]


def _turned_links(links: Path) -> Path:
    path = links.with_suffix(".turned.pharaoh")
    lines = links.read_text("utf-8").splitlines()
    back = (" ".join("-".join(link.split("-")[::-1]) for link in line.split()) for line in lines)
    _write_lines(path, back)
    return path


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(line + "\n" for line in lines), "utf-8")


def _train_files(chosen: argparse.Namespace) -> list[Path]:
    files = [chosen.data / f"train.{ending}" for ending in chosen.endings]
    if chosen.pairs is None:
        return files
    short = [chosen.out / file.name for file in files]
    for file, part in zip(files, short, strict=True):
        lines = file.read_text("utf-8").split("\n")[: chosen.pairs]
        _write_lines(part, lines)
    return short


def _some(train: list[Path], most: int | None) -> Iterator[Pair]:
    sides = [file.read_text("utf-8").split("\n")[:-1][:most] for file in train]
    return map(Pair, *sides)


def _eflomal(
    chosen: argparse.Namespace, train: list[Path], test: Sequence[Pair], rows: Rows
) -> list[set[tuple[int, int]]] | None:
    """The links of eflomal on training and test pairs together; those of the training pairs."""
    try:
        from eflomal import Aligner
    except ImportError as error:
        rows.leave_out("eflomal", f"pip install eflomal ({error})")
        return None
    files = [chosen.out / f"eflomal.{way}" for way in ("forward", "backward")]
    pairs = list(chain(_some(train, None), test))
    if not all(file.exists() for file in files):
        sides = [pair.source for pair in pairs], [pair.target for pair in pairs]
        Aligner().align(*sides, *map(str, files))
    found = [
        [set(parse_pharaoh(line).sure) for line in file.read_text().split("\n")[: len(pairs)]]
        for file in files
    ]
    _add_joined(rows, "eflomal", *(links[-len(test) :] for links in found))
    join = SYMMETRIZATIONS["grow-diag-final-and"]
    return [join(*both) for both in zip(*(links[: -len(test)] for links in found), strict=True)]


def _pharaoh(links: Collection[tuple[int, int]]) -> str:
    return " ".join(f"{s}-{t}" for s, t in sorted(links))


if __name__ == "__main__":
    main()
