"""`regard demo`: the main job on built-in data, as the commands that a user would type."""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.commands.run_options import add_quiet
from regard.commands.terminal.training_summary import executable, next_lines

TEXT = "Paul will not photograph the boring book next week ."


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `demo`, which runs other commands."""
    demo = commands.add_parser(
        "demo",
        help="train a translator with and without attention, and compare both",
        examples=(
            "regard demo",
            "regard demo --out try --minutes 0.5",
        ),
    )
    demo.add_argument(
        "--out", type=Path, default=Path("demo"), metavar="FOLDER", help="output folder"
    )
    demo.add_argument(
        "--minutes",
        type=float,
        default=1.0,
        help="training time of each model (default: 1)",
    )
    add_quiet(demo)
    demo.set_defaults(run=_demo, parser=demo)


def lines(out: Path, minutes: float) -> list[list[str]]:
    """The commands, as words."""
    data, with_attention, without = out / "data", out / "attention", out / "none"
    pairs = {
        part: [f"{data}/{part}.en", f"{data}/{part}.fr"] for part in ("train", "valid", "test")
    }
    train = [
        *("train", "translation", "--data", *pairs["train"], "--valid", *pairs["valid"]),
        *f"--minutes {minutes} --width 128 --batch-tokens 512 --learning-rate 0.002".split(),
        *("--evaluate-every", "300"),
    ]
    return [
        ["data", "make", "translation", "--out", str(data)],
        [*train, "--out", str(with_attention)],
        [*train, "--attention", "none", "--out", str(without)],
        ["evaluate", str(with_attention), str(without), "--data", *pairs["test"]],
        [
            *("align", str(with_attention), "--data", *pairs["test"]),
            *("--gold", f"{data}/test.alignments", "--indexed-from", "0"),
            *("--output", f"{out}/test.pharaoh"),
        ],
        ["show", str(with_attention), "--text", TEXT],
        ["show", str(with_attention), "--text", TEXT, "--to", str(out / "look.html")],
    ]


def _demo(chosen: argparse.Namespace) -> int:
    for words in lines(chosen.out, chosen.minutes):
        if chosen.quiet and words[0] != "show" and words[0] != "data":
            words = [*words, "--quiet"]
        print(f"\n$ regard {shlex.join(words)}", flush=True)
        if code := int(chosen.main(words)):
            return code
    regard, runs = executable(), f"{chosen.out}/attention {chosen.out}/none"
    print(f"\nOpen {chosen.out / 'look.html'} in a browser: it needs no network.")
    commands = (f"{regard} serve {runs}", f"{regard} predict {chosen.out}/attention")
    print("\n".join(next_lines([*commands, f"{regard} train --help"])))
    return 0
