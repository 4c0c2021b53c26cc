"""`regard align`: word alignments of a trained translator, and the error rate of any."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from regard.commands.piping import EXITS, number, told_cut
from regard.errors import RegardError


def add(commands: Any) -> None:
    """Add `align`."""
    align = commands.add_parser(
        "align",
        help="which words of sentence pairs belong together, and how far that is right",
        epilog=EXITS,
    )
    align.add_argument("folder", type=Path, nargs="?", help="the folder of a translation run")
    align.add_argument("--data", nargs="+", metavar="FILE", help="pairs: two files, or a table")
    align.add_argument("--source", metavar="NAME", help="column or file ending of the source")
    align.add_argument("--target", metavar="NAME", help="column or file ending of the target")
    align.add_argument("--output", metavar="FILE", help="default: standard output")
    align.add_argument("--json", action="store_true", help="print weights of words as well")

    two = align.add_argument_group("two directions")
    two.add_argument("--both", type=Path, metavar="RUN", help="a run of the opposite direction")
    two.add_argument(
        "--symmetrize",
        choices=("grow-diag-final-and", "intersect", "union", "agree"),
        help="how to join the links of both; agree joins weights (default: grow-diag-final-and)",
    )

    where = align.add_argument_group("where to look")
    where.add_argument("--layer", default="auto", metavar="N", help="auto, or a layer from 0")
    where.add_argument("--head", default="auto", metavar="N", help="auto, mean, or one from 0")
    where.add_argument(
        "--shift",
        default="auto",
        choices=("auto", "0", "1"),
        help="a word's row: 0 that writes it, 1 that has read it (default: auto)",
    )
    where.add_argument("--dev", nargs="+", metavar="FILE", help="pairs to choose on, by --dev-gold")
    where.add_argument("--dev-gold", metavar="FILE", help="their gold links")
    where.add_argument(
        "--extract",
        choices=("argmax", "mutual", "cover", "above"),
        help="how links are made of weights (default: cover, or argmax with --both)",
    )
    where.add_argument(
        "--threshold",
        type=number,
        default=0.1,
        help="the least weight of links that cover and above make (default: 0.1)",
    )
    where.add_argument(
        "--erasure",
        type=number,
        default=0.0,
        metavar="WEIGHT",
        help="count beside attention what words lose when a source word is erased: slower, often "
        "better (default: 0)",
    )

    gold = align.add_argument_group("how far it is right")
    gold.add_argument("--gold", metavar="FILE", help="gold links, Pharaoh or NAACL: prints AER")
    gold.add_argument("--hypothesis", metavar="FILE", help="links of any aligner, to be measured")
    gold.add_argument(
        "--indexed-from",
        type=int,
        choices=(0, 1),
        help="what the gold links count words from, if they do not tell",
    )
    gold.add_argument(
        "--hypothesis-indexed-from", type=int, choices=(0, 1), help="and what --hypothesis does"
    )
    gold.add_argument(
        "--reverse-gold", action="store_true", help="the gold links have the target word first"
    )
    align.set_defaults(run=_align, parser=align)


def _align(chosen: argparse.Namespace) -> int:
    _check(chosen)
    if chosen.hypothesis is not None:
        return _measure_hypothesis(chosen)
    from regard.inference import load
    from regard.inference.alignments import align
    from regard.inference.directions import check_opposite
    from regard.inference.forcing import translator
    from regard.inference.pairs import read_all

    run = load(chosen.folder)
    translator(run)
    both = None
    if chosen.both is not None:
        both = load(chosen.both)
        translator(both)
    pairs = read_all(run, chosen.data, chosen.source, chosen.target)
    if both is not None:
        check_opposite(run, both, pairs)
    gold = None
    if chosen.gold is not None:
        gold = _gold(chosen.gold, pairs, chosen.indexed_from, chosen.reverse_gold)
    place, other = _places(chosen, run, both, pairs)
    told = f"{chosen.folder}: {place}" + ("" if both is None else f"; {chosen.both}: {other}")
    print(told, file=sys.stderr)
    lines: list[str] = []
    links: list[tuple[tuple[int, int], ...]] = []
    cut = 0
    for one in align(
        run,
        pairs,
        place,
        both=None if both is None or other is None else (both, other),
        symmetrize=chosen.symmetrize or "grow-diag-final-and",
        extract=chosen.extract or ("cover" if both is None else "argmax"),
        threshold=chosen.threshold,
        erasure=chosen.erasure,
    ):
        lines.append(_record(one) if chosen.json else str(one))
        links.append(one.links)
        cut += one.cut
    _write(chosen, lines)
    if gold is not None:
        _print_scores(_scores(links, gold), sys.stderr, False)
    return told_cut(cut)


def _check(chosen: argparse.Namespace) -> None:
    """Options that need each other."""
    if chosen.hypothesis is not None:
        if chosen.gold is None:
            raise RegardError("--hypothesis: expected with --gold, to be measured with")
        if chosen.folder is not None:
            raise RegardError("--hypothesis: expected without a run: it measures a file of links")
        return
    if chosen.folder is None or chosen.data is None:
        raise RegardError("align: expected a run and --data, or --hypothesis and --gold")
    if chosen.symmetrize is not None and chosen.both is None:
        raise RegardError("--symmetrize: expected with --both, a run of the opposite direction")
    if (chosen.dev is None) != (chosen.dev_gold is None):
        raise RegardError("--dev and --dev-gold: expected both, or neither")
    for name in ("erasure", "threshold"):
        if not getattr(chosen, name) >= 0:
            raise RegardError(f"--{name} {getattr(chosen, name)}: expected 0 or more")
    for name in ("layer", "head"):
        value = getattr(chosen, name)
        if not (value == "auto" or value.isdecimal() or (name, value) == ("head", "mean")):
            words = "auto, mean or a number" if name == "head" else "auto or a number"
            raise RegardError(f"--{name} {value}: expected {words}, from 0")


def _measure_hypothesis(chosen: argparse.Namespace) -> int:
    from regard.inference.pairs import read_all, read_links
    from regard.metrics.gold import padded, settled

    pairs = None
    if chosen.data is not None:
        pairs = read_all(None, chosen.data, chosen.source, chosen.target)
    lengths = None if pairs is None else _lengths(pairs)
    raw, known = read_links(chosen.hypothesis), read_links(chosen.gold)
    longest = max(len(raw.sentences), len(known.sentences), len(lengths or ()))
    raw, known = padded(raw, longest), padded(known, longest)
    gold = settled(known, lengths, first=chosen.indexed_from, turned=chosen.reverse_gold)
    if len(raw.sentences) != len(gold):
        raise RegardError(
            f"{chosen.hypothesis} has links for {len(raw.sentences):,} pairs but {chosen.gold} "
            f"for {len(gold):,}: expected one line a pair"
        )
    found = settled(
        raw,
        lengths,
        first=chosen.hypothesis_indexed_from,
        option="--hypothesis-indexed-from",
    )
    _print_scores(_scores([links.possible for links in found], gold), sys.stdout, chosen.json)
    return 0


def _gold(path: str, pairs: Sequence[Any] | None, first: int | None, turned: bool) -> list[Any]:
    from regard.inference.pairs import read_links
    from regard.metrics.gold import settled

    lengths = None if pairs is None else _lengths(pairs)
    return settled(read_links(path), lengths, first=first, turned=turned)


def _lengths(pairs: Sequence[Any]) -> list[tuple[int, int]]:
    return [(len(pair.source.split()), len(pair.target.split())) for pair in pairs]


def _places(
    chosen: argparse.Namespace, run: Any, both: Any, pairs: Sequence[Any]
) -> tuple[Any, Any]:
    """Where to look in each run, as far as the options leave it open."""
    from regard.inference.agreement import choose, choose_both
    from regard.inference.pairs import read_all, turned, turned_gold

    among = _among(chosen, run)
    if chosen.dev is not None:
        dev = read_all(run, chosen.dev, chosen.source, chosen.target)
        gold = _gold(chosen.dev_gold, dev, chosen.indexed_from, chosen.reverse_gold)
        place = choose(run, dev, gold, among)
        if both is None:
            return place, None
        return place, choose(both, turned(dev), turned_gold(gold), _among(chosen, both))
    if both is None:
        return choose(run, pairs, among=among), None
    return choose_both(run, both, pairs, among, _among(chosen, both))


def _among(chosen: argparse.Namespace, run: Any) -> list[Any]:
    """The places that the options allow."""
    from regard.inference.alignments import places, sizes

    layers, heads = sizes(run)
    allowed = places(run)
    for name, count in (("layer", layers), ("head", heads)):
        value = getattr(chosen, name)
        if value == "auto":
            continue
        if value.isdecimal() and int(value) >= count:
            raise RegardError(
                f"--{name} {value}: {run.folder.path} has {count} {name}{'s' * (count != 1)}, "
                f"0 to {count - 1}"
            )
        number = int(value) if value.isdecimal() else (None if heads > 1 else 0)
        allowed = [place for place in allowed if getattr(place, name) == number]
    if chosen.shift != "auto":
        allowed = [place for place in allowed if place.shift == int(chosen.shift)]
    return allowed


def _record(found: Any) -> str:
    record = {
        "source": found.source,
        "target": found.target,
        "links": found.links,
        "weights": [[round(float(w), 6) for w in row] for row in found.weights],
    }
    return json.dumps(record, ensure_ascii=False)


def _write(chosen: argparse.Namespace, lines: Sequence[str]) -> None:
    text = "".join(line + "\n" for line in lines)
    if chosen.output in (None, "-"):
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    from regard.files import write_text

    if not (folder := Path(chosen.output).parent).is_dir():
        raise RegardError(f"{chosen.output}: cannot be written (no folder {folder})")
    write_text(Path(chosen.output), text)


def _scores(found: Sequence[Iterable[tuple[int, int]]], gold: list[Any]) -> dict[str, Any]:
    from regard.metrics import alignment_scores, measure

    tallies = alignment_scores([set(links) for links in found], gold)
    return {name: measure(tally) for name, tally in tallies.items()}


def _print_scores(scores: dict[str, Any], stream: Any, as_json: bool) -> None:
    if as_json:
        print(json.dumps({name: asdict(value) for name, value in scores.items()}), file=stream)
        return
    for name, value in scores.items():
        print(f"{name:12}{value.value:8.4f}  [{value.low:.4f}, {value.high:.4f}]", file=stream)
