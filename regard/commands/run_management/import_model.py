"""`regard import`: a pretrained model becomes a run."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.commands.run_options import add_quiet


def add(commands: Any, arguments: Sequence[str] | None) -> None:
    """Add `import`."""
    parser = commands.add_parser(
        "import",
        help="make a run from a pretrained model in Hugging Face's format",
        description="Make a run from a pretrained model: a folder with config.json, "
        "model.safetensors and tokenizer.json, or hf:organization/name for a model of the Hugging "
        "Face hub, which is downloaded (needs regard[hub]). Models of the BERT family that label "
        "texts or words, language models like GPT-2 and Llama, and translators like BART, Marian "
        "(OPUS-MT) and T5 are supported; an encoder without such a head is trained further with "
        "`regard train classify --pretrained FOLDER`.",
        examples=(
            "regard import models/sst2-distilbert --out runs/sst2",
            "regard import models/bert-ner --out runs/ner",
            "regard import hf:HuggingFaceTB/SmolLM2-135M --out runs/smol",
            "regard import models/opus-mt-en-de --out runs/en-de",
        ),
    )
    parser.add_argument(
        "source",
        metavar="FOLDER",
        help="the folder of the pretrained model, or hf:organization/name",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="RUN", help="the run folder that is made"
    )
    add_quiet(parser)
    parser.set_defaults(run=_import, parser=parser)


def _import(chosen: argparse.Namespace) -> int:
    from regard.commands.terminal.training_summary import next_commands, next_lines
    from regard.data.data_report import format_row
    from regard.inference.import_run import import_run
    from regard.training.stored_runs.model_card import card_rows
    from regard.training.stored_runs.run_summary import summarize_run

    path = import_run(chosen.source, chosen.out).path
    run = summarize_run(path)
    for name, value in card_rows(run):
        if name in ("task", "labels", "vocabulary", "pretrained", "parameters"):
            chosen.display.line(format_row(name, value))
    for line in next_lines(next_commands(run)):
        chosen.display.line(line)
    print(path)
    return 0
