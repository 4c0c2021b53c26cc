"""`regard generate`: let a language model write."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.commands.run_options import add_quiet, add_run_options, given_options
from regard.devices import add_device
from regard.errors import RegardError
from regard.options import whole_number


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `generate`."""
    generate = commands.add_parser(
        "generate",
        help="generate text with a language model",
        examples=(
            'regard generate runs/stories --prompt "Once upon a time"',
            "regard generate runs/stories --samples 3 --temperature 0.8 --top-p 0.9",
        ),
    )
    generate.add_argument("folder", type=Path, help="the run folder")
    generate.add_argument("--prompt", default="", metavar="TEXT", help="what the text begins with")
    generate.add_argument(
        "--samples",
        type=whole_number(1, 10_000),
        default=1,
        metavar="INT",
        help="number of texts (default: 1)",
    )
    generate.add_argument("--json", action="store_true", help="print all details as JSON")
    if arguments is None or "generate" in arguments:
        add_run_options(generate, arguments, "predict_options", "generation")
    add_device(generate)
    add_quiet(generate)
    generate.set_defaults(run=_generate, parser=generate)


def _generate(chosen: argparse.Namespace) -> int:
    from regard.commands.run_options import load_run

    run = load_run(chosen.folder, chosen.device)
    generation = run.spec.require("generation", chosen.folder, "generate")
    if reason := generation.unavailable(vars(run.data)):
        raise RegardError(f"{chosen.folder}: {reason}: use `regard predict`")
    options = given_options(run, chosen, "predict_options")
    if chosen.samples == 1 and not chosen.json:
        pieces = run.generate(chosen.prompt, **options)
        _write(chosen.prompt)
        for piece in pieces:
            _write(piece)
        _write("\n")
        return 0
    from regard.inference.line_records import as_json_line

    for prediction in run.samples(chosen.prompt, chosen.samples, **options):
        line = " ".join(prediction.output.splitlines())
        if chosen.json:
            record = {"prompt": chosen.prompt, "output": prediction.output}
            line = as_json_line(record | prediction.details)
        _write(line + "\n")
    return 0


def _write(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()
