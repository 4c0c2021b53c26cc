"""`regard align`: word alignments of a trained aligner or translator, and the error rate of any."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from regard.commands.line_io import EXIT_CODES, number, refuse_overwriting, report_truncated
from regard.commands.run_options import add_quiet
from regard.commands.worker_options import (
    add_many_files,
    has_many_files,
    process_many_files,
    refuse_with_many_files,
)
from regard.devices import add_device
from regard.errors import RegardError


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `align`."""
    align = commands.add_parser(
        "align",
        help="align the words of sentence pairs, and measure the error rate",
        note=EXIT_CODES,
        examples=(
            "regard align runs/align --data test.en test.fr --output links.pharaoh",
            "regard align runs/align --lexicon --output words.tsv",
            "regard align runs/en-fr --both runs/fr-en --data pairs.tsv --gold gold.pharaoh",
        ),
    )
    align.add_argument(
        "folder", type=Path, nargs="?", help="the folder of an align or translation run"
    )
    align.add_argument("--data", nargs="+", metavar="FILE", help="pairs: two files, or a table")
    align.add_argument("--source", metavar="NAME", help="column or file extension of the source")
    align.add_argument("--target", metavar="NAME", help="column or file extension of the target")
    align.add_argument("--output", metavar="FILE", help="output file (default: standard output)")
    align.add_argument("--json", action="store_true", help="print word weights as JSON as well")

    align.add_argument(
        "--soft",
        action="store_true",
        help="print all likely links of an align run with their weights, as in 0-1:0.93, to guide "
        "a translator with `--alignments`",
    )
    align.add_argument(
        "--lexicon",
        action="store_true",
        help="instead of links, print the word pairs that an align run has learned: source, "
        "target, and the probability of each given the other",
    )

    two = align.add_argument_group("Two directions, in translation runs")
    two.add_argument("--both", type=Path, metavar="RUN", help="a run of the opposite direction")
    two.add_argument(
        "--symmetrize",
        choices=("grow-diag-final-and", "intersect", "union", "agree"),
        help="how to combine both directions; agree combines weights, the others links (default: "
        "grow-diag-final-and)",
    )

    where = align.add_argument_group("Attention, in translation runs")
    where.add_argument(
        "--layer", default="auto", metavar="N", help="auto, or a layer, counted from 0"
    )
    where.add_argument(
        "--head", default="auto", metavar="N", help="auto, mean, or a head, counted from 0"
    )
    where.add_argument(
        "--shift",
        default="auto",
        choices=("auto", "0", "1"),
        help="which row aligns a target word: the one that predicts it (0) or has read it (1) "
        "(default: auto)",
    )
    where.add_argument(
        "--extract",
        choices=("argmax", "mutual", "cover", "above"),
        help="how links are extracted from weights (default: cover; argmax with --both)",
    )
    where.add_argument(
        "--erasure",
        type=number,
        default=0.0,
        metavar="WEIGHT",
        help="also erase each source word, and add to its attention weights this many times the "
        "probability that target words lose without it; slower, often better (default: 0)",
    )

    choice = align.add_argument_group("Choice of links")
    choice.add_argument(
        "--threshold",
        type=number,
        help="minimum weight of links, for cover and above in translation runs (default: 0.1; in "
        "align runs, the one chosen in training)",
    )
    choice.add_argument(
        "--dev", nargs="+", metavar="FILE", help="pairs for choosing the head, or the threshold"
    )
    choice.add_argument("--dev-gold", metavar="FILE", help="gold links of the --dev pairs")

    gold = align.add_argument_group("Evaluation")
    gold.add_argument("--gold", metavar="FILE", help="gold links, Pharaoh or NAACL; prints AER")
    gold.add_argument("--hypothesis", metavar="FILE", help="evaluate these links, from any aligner")
    gold.add_argument(
        "--indexed-from",
        type=int,
        choices=(0, 1),
        help="index of the first word in the gold links, if it cannot be inferred",
    )
    gold.add_argument(
        "--hypothesis-indexed-from", type=int, choices=(0, 1), help="the same for --hypothesis"
    )
    gold.add_argument(
        "--reverse-gold", action="store_true", help="the gold links have the target word first"
    )
    add_device(align)
    add_many_files(align)
    add_quiet(align)
    align.set_defaults(run=_align, parser=align)


def _align(chosen: argparse.Namespace) -> int:
    _check(chosen)
    if chosen.hypothesis is not None:
        return _measure_hypothesis(chosen)
    from regard.commands.run_options import load_run
    from regard.inference.align.alignments import align
    from regard.inference.align.check_direction import check_opposite
    from regard.inference.align.forced_pairs import attention_sizes
    from regard.inference.align.read_pairs import read_every_pair

    run = load_run(chosen.folder, chosen.device)
    if has_many_files(chosen, *(chosen.data or ())):
        return _align_files(chosen, run)
    if run.spec.aligner is not None:
        return _align_directly(chosen, run)
    for name in ("lexicon", "soft"):
        if getattr(chosen, name):
            raise RegardError(f"{chosen.folder}: --{name} does not apply to {run.name} runs")
    attention_sizes(run)  # refuses a run that cannot align
    both = None
    if chosen.both is not None:
        both = load_run(chosen.both, chosen.device)
        attention_sizes(both)
    pairs = read_every_pair(run, chosen.data, chosen.source, chosen.target)
    if both is not None:
        check_opposite(run, both, pairs)
    gold = None
    if chosen.gold is not None:
        gold = _gold(chosen.gold, pairs, chosen.indexed_from, chosen.reverse_gold)
    place, other = _places(chosen, run, both, pairs)
    places = f"{chosen.folder}: {place}" + ("" if both is None else f"; {chosen.both}: {other}")
    chosen.display.line(places)
    lines: list[str] = []
    links: list[tuple[tuple[int, int], ...]] = []
    truncated = 0
    for one in align(
        run,
        pairs,
        place,
        both=None if both is None or other is None else (both, other),
        symmetrize=chosen.symmetrize or "grow-diag-final-and",
        extract=chosen.extract or ("cover" if both is None else "argmax"),
        threshold=0.1 if chosen.threshold is None else chosen.threshold,
        erasure=chosen.erasure,
    ):
        lines.append(_record(one) if chosen.json else str(one))
        links.append(one.links)
        truncated += one.truncated
    _write(chosen, lines)
    if gold is not None:
        _print_scores(_scores(links, gold), sys.stderr, False)
    return report_truncated(truncated)


def _align_directly(chosen: argparse.Namespace, run: Any) -> int:
    """Alignments, or the lexicon, of a run whose model is an aligner."""
    from regard.inference.align.read_pairs import read_every_pair
    from regard.inference.align.trained_aligner import (
        align_directly,
        choose_threshold,
        soft_links,
        word_aligner,
    )

    attention = {"layer": "auto", "head": "auto", "shift": "auto", "erasure": 0.0}
    for name in ("both", "symmetrize", "extract", *attention):
        if getattr(chosen, name) != attention.get(name):
            raise RegardError(f"--{name} does not apply to {run.name} runs")
    if chosen.lexicon:
        entries = word_aligner(run).lexicon(run.task, run.model)
        _write(chosen, [f"{s}\t{t}\t{p:.4g}\t{q:.4g}" for s, t, p, q in entries])
        return 0
    pairs = read_every_pair(run, chosen.data, chosen.source, chosen.target)
    if chosen.soft:
        if chosen.gold is not None:
            raise RegardError("--gold does not apply to --soft")
        _write(chosen, list(soft_links(run, pairs)))
        return 0
    gold = None
    if chosen.gold is not None:
        gold = _gold(chosen.gold, pairs, chosen.indexed_from, chosen.reverse_gold)
    threshold = chosen.threshold
    if chosen.dev is not None and threshold is None:
        dev = read_every_pair(run, chosen.dev, chosen.source, chosen.target)
        dev_gold = _gold(chosen.dev_gold, dev, chosen.indexed_from, chosen.reverse_gold)
        threshold = choose_threshold(run, dev, dev_gold)
    least = word_aligner(run).threshold(run.model) if threshold is None else threshold
    found = list(align_directly(run, pairs, threshold))
    chosen.display.line(f"{chosen.folder}: links of weight {least:.2g} or more")
    _write(chosen, [_record(one) if chosen.json else str(one) for one in found])
    if gold is not None:
        _print_scores(_scores([one.links for one in found], gold), sys.stderr, False)
    return 0


def _align_files(chosen: argparse.Namespace, run: Any) -> int:
    """Many files, each of pairs; where the attention is read is chosen once for all of them."""
    from regard.data.readers.columns import SOURCE, TARGET
    from regard.inference.bulk.line_work import LineWork

    unsuitable = ("both", "symmetrize", "lexicon", "soft", "gold", "hypothesis")
    refuse_with_many_files(chosen, *unsuitable)
    if run.spec.aligner is None:
        place = _place_for_files(chosen, run)
        chosen.display.line(f"{chosen.folder}: {place}")
        options: dict[str, Any] = {
            "place": [place.layer, place.head, place.shift],
            "extract": chosen.extract or "cover",
            "threshold": 0.1 if chosen.threshold is None else chosen.threshold,
            "erasure": chosen.erasure,
        }
    else:
        options = {"threshold": chosen.threshold}
    folder = str(run.folder.path.resolve())
    work = LineWork("alignments", folder, ("source", "target"), options, chosen.json, chosen.device)
    roles = [SOURCE.choose(chosen.source), TARGET.choose(chosen.target)]
    return process_many_files(chosen, work, chosen.data, roles)


def _place_for_files(chosen: argparse.Namespace, run: Any) -> Any:
    from regard.inference.align.choose_head import choose_head, validation_pairs

    if chosen.dev is not None:
        return _places(chosen, run, None, [])[0]
    among, pairs = _among(chosen, run), validation_pairs(run)
    if not pairs and len({(place.layer, place.head) for place in among}) > 1:
        raise RegardError(
            f"{chosen.folder}: has no validation pairs on which a head could be chosen for all "
            "files: give --dev and --dev-gold, or --layer and --head"
        )
    return choose_head(run, pairs, among=among)


def _check(chosen: argparse.Namespace) -> None:
    """Options that need each other, and an output that is none of the inputs."""
    inputs = (*(chosen.data or ()), *(chosen.dev or ()), chosen.dev_gold)
    refuse_overwriting(chosen.output, *inputs, chosen.gold, chosen.hypothesis)
    if chosen.hypothesis is not None:
        if chosen.gold is None:
            raise RegardError("--hypothesis requires --gold")
        if chosen.folder is not None:
            raise RegardError("--hypothesis evaluates a file of links: leave out the run")
        return
    if chosen.lexicon and chosen.folder is not None:
        for name in ("data", "gold"):
            if getattr(chosen, name) is not None:
                raise RegardError(f"--{name} does not apply to --lexicon")
        return
    if chosen.folder is None or chosen.data is None:
        raise RegardError("align: expected a run and --data, or --hypothesis and --gold")
    if chosen.symmetrize is not None and chosen.both is None:
        raise RegardError("--symmetrize requires --both, a run of the opposite direction")
    if (chosen.dev is None) != (chosen.dev_gold is None):
        raise RegardError("--dev and --dev-gold: expected both, or neither")
    for name in ("erasure", "threshold"):
        if getattr(chosen, name) is not None and not getattr(chosen, name) >= 0:
            raise RegardError(f"--{name} {getattr(chosen, name)}: expected 0 or more")
    for name in ("layer", "head"):
        value = getattr(chosen, name)
        if not (value == "auto" or value.isdecimal() or (name, value) == ("head", "mean")):
            words = "auto, mean or a number" if name == "head" else "auto or a number"
            raise RegardError(f"--{name} {value}: expected {words}, from 0")


def _measure_hypothesis(chosen: argparse.Namespace) -> int:
    from regard.inference.align.read_pairs import read_every_pair, read_links
    from regard.metrics.gold import pad_links, zero_based_links

    pairs = None
    if chosen.data is not None:
        pairs = read_every_pair(None, chosen.data, chosen.source, chosen.target)
    lengths = None if pairs is None else _lengths(pairs)
    raw, known = read_links(chosen.hypothesis), read_links(chosen.gold)
    longest = max(len(raw.sentences), len(known.sentences), len(lengths or ()))
    raw, known = pad_links(raw, longest), pad_links(known, longest)
    gold = zero_based_links(
        known, lengths, first=chosen.indexed_from, target_first=chosen.reverse_gold
    )
    if len(raw.sentences) != len(gold):
        raise RegardError(
            f"{chosen.hypothesis} has links for {len(raw.sentences):,} pairs but {chosen.gold} "
            f"for {len(gold):,}: expected one line per pair"
        )
    found = zero_based_links(
        raw,
        lengths,
        first=chosen.hypothesis_indexed_from,
        option="--hypothesis-indexed-from",
    )
    _print_scores(_scores([links.possible for links in found], gold), sys.stdout, chosen.json)
    return 0


def _gold(path: str, pairs: Sequence[Any] | None, first: int | None, turned: bool) -> list[Any]:
    from regard.inference.align.read_pairs import read_links
    from regard.metrics.gold import zero_based_links

    lengths = None if pairs is None else _lengths(pairs)
    return zero_based_links(read_links(path), lengths, first=first, target_first=turned)


def _lengths(pairs: Sequence[Any]) -> list[tuple[int, int]]:
    return [(len(pair.source.split()), len(pair.target.split())) for pair in pairs]


def _places(
    chosen: argparse.Namespace, run: Any, both: Any, pairs: Sequence[Any]
) -> tuple[Any, Any]:
    """Where to look in each run, as far as the options leave it open."""
    from regard.inference.align.choose_head import choose_head, choose_heads
    from regard.inference.align.read_pairs import read_every_pair, reverse_gold, reverse_pairs

    among = _among(chosen, run)
    if chosen.dev is not None:
        dev = read_every_pair(run, chosen.dev, chosen.source, chosen.target)
        gold = _gold(chosen.dev_gold, dev, chosen.indexed_from, chosen.reverse_gold)
        place = choose_head(run, dev, gold, among)
        if both is None:
            return place, None
        return place, choose_head(
            both, reverse_pairs(dev), reverse_gold(gold), _among(chosen, both)
        )
    if both is None:
        return choose_head(run, pairs, among=among), None
    return choose_heads(run, both, pairs, among, _among(chosen, both))


def _among(chosen: argparse.Namespace, run: Any) -> list[Any]:
    """The places that the options allow."""
    from regard.inference.align.alignments import attention_places
    from regard.inference.align.forced_pairs import attention_sizes

    layers, heads = attention_sizes(run)
    allowed = attention_places(run)
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
    from regard.inference.line_records import alignment_record

    return json.dumps(alignment_record(found), ensure_ascii=False)


def _write(chosen: argparse.Namespace, lines: Sequence[str]) -> None:
    text = "".join(line + "\n" for line in lines)
    if chosen.output in (None, "-"):
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    from regard.atomic_files import write_output

    write_output(Path(chosen.output), lambda stream: stream.write(text.encode("utf-8")))


def _scores(found: Sequence[Iterable[tuple[int, int]]], gold: list[Any]) -> dict[str, Any]:
    from regard.metrics import alignment_metrics, measure

    tallies = alignment_metrics([set(links) for links in found], gold)
    return {name: measure(tally) for name, tally in tallies.items()}


def _print_scores(scores: dict[str, Any], stream: Any, as_json: bool) -> None:
    if as_json:
        print(json.dumps({name: value.record() for name, value in scores.items()}), file=stream)
        return
    for value in scores.values():
        print(f"{value.name:22}{value.text()}", file=stream)
