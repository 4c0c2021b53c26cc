"""Train the example runs that come with the package.

    python scripts/train_examples.py [NAME ...]

trains all of them, or those that are named, on the built-in corpora, and writes them to
`regard/examples/NAME`: packed, in half precision. Each takes about two minutes of one processor.
What was trained is kept in the work folder, so that the same command resumes after a stop.

Every option is given, so that other defaults of the models change nothing here.
"""

import argparse
import json
import shutil
from pathlib import Path
from random import Random

from regard.cli import main
from regard.corpora import make_corpus
from regard.examples import FOLDER
from regard.inference import load
from regard.inference.explain.faithfulness import faithfulness
from regard.inference.explain.faithfulness_reports import save_report
from regard.number_format import format_value
from regard.training.run_folder import RunFolder
from regard.training.stored_runs.model_card import format_size
from regard.training.stored_runs.run_packing import pack_run
from regard.training.stored_runs.run_summary import summarize_run
from regard.training.tensor_files import half_precision

TRANSLATION = (
    "translation --tokenizer bpe --vocabulary 1200 --dropout 0.1 --batch-tokens 512 "
    "--label-smoothing 0.1 --average 1 --patience 20 --evaluate-every 400"
)
EXAMPLES = {
    "translation": f"{TRANSLATION} --model recurrent --cell gru --attention additive --order luong "
    "--width 96 --layers 1 --learning-rate 0.003 --steps 2400",
    "transformer": f"{TRANSLATION} --model transformer --attention scaled_dot --width 80 "
    "--layers 2 --heads 4 --feed-forward 160 --norm pre --learning-rate 0.003 "
    "--schedule cosine --warmup 300 --steps 4000",
    "sentiment": "classify --word-ngrams 0 --tokenizer word --vocabulary 4000 --pooling weighted "
    "--attention additive --encoder recurrent --cell gru --width 48 --layers 1 --dropout 0.3 "
    "--word-dropout 0.1 --batch-tokens 1024 --label-smoothing 0.1 --average 1 --patience 10 "
    "--evaluate-every 200 --learning-rate 0.003 --steps 1200",
    "entities": "tag --vocabulary 4000 --encoder transformer --attention scaled_dot --width 96 "
    "--characters 16 --character-features 32 --ngrams 0 --layers 2 --heads 4 --feed-forward 96 "
    "--experts 4 --top-k 2 --crf --dropout 0.3 --word-dropout 0.2 --batch-tokens 1024 "
    "--label-smoothing 0.1 --average 1 --patience 20 --evaluate-every 200 --learning-rate 0.003 "
    "--schedule cosine --steps 1200",
    "language": "language --ngrams 0 --tokenizer word --vocabulary 2000 --model transformer "
    "--attention scaled_dot --width 96 --layers 2 --heads 4 --feed-forward 192 --dropout 0.1 "
    "--window-tokens 64 --batch-tokens 1024 --average 1 --patience 20 --evaluate-every 300 "
    "--learning-rate 0.003 --schedule cosine --steps 1500",
    "copy": "algorithm --kind copy --shortest 1 --longest 10 --symbols 20 --model memory "
    "--addressing ntm --controller feed_forward --slots 48 --slot-width 20 --read-heads 2 "
    "--write-heads 1 --width 64 --dropout 0 --batch-tokens 512 --learning-rate 0.003 "
    "--schedule constant --average 1 --patience 15 --evaluate-every 100 --steps 700",
}
"""The options of `regard train` for each example."""
MAX_BYTES = 1_200_000
CHECKPOINTS = {"copy": (20, 40, 60, 80, 100)}
"""Updates whose weights come with an example, for the replay of the Training screen."""
REPORTED = ("translation", "transformer")
"""The examples whose faithfulness is measured, for the Trust screen."""
REPORT_TEXTS = 100


def train_example(name: str, work: Path) -> None:
    """Train one example, evaluate it as it is stored, and replace the one in the package."""
    run, packed = work / name, work / "packed" / name
    kept = ["--keep-every", str(CHECKPOINTS[name][0])] if name in CHECKPOINTS else []
    run_command("train", *EXAMPLES[name].split(), "--seed", "1", *kept, "--out", str(run))
    shutil.rmtree(packed, ignore_errors=True)
    pack_run(run, packed, half=True)
    for step in CHECKPOINTS.get(name, ()):
        add_checkpoint(run, packed, step)
    if name in REPORTED:
        measure_faithfulness(packed)
    run_command("evaluate", str(packed))
    for lines in (packed / "evaluations").glob("*.jsonl"):
        lines.unlink()  # the sentences are part of the built-in corpora
    size = summarize_run(packed).size
    if size > MAX_BYTES:
        raise SystemExit(f"{packed}: has {size:,} bytes: expected at most {MAX_BYTES:,}")
    shutil.rmtree(FOLDER / name, ignore_errors=True)
    shutil.copytree(packed, FOLDER / name)


def add_checkpoint(run: Path, packed: Path, step: int) -> None:
    """Add the weights after so many updates, in half precision."""
    name = f"step-{step}.safetensors"
    folder = RunFolder(packed).checkpoints
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(half_precision(RunFolder(run).checkpoints / name))


def measure_faithfulness(packed: Path) -> None:
    """Save a report on a sample of the built-in test texts."""
    run = load(packed)
    assert run.spec.corpus is not None
    assert run.spec.example_text is not None
    texts = [run.spec.example_text(example) for example in make_corpus(run.spec.corpus, 2_000).test]
    report = faithfulness(run, Random(0).sample(texts, REPORT_TEXTS))
    save_report(run.folder, "built-in", report, limit=REPORT_TEXTS, seed=0)


def run_command(*arguments: str) -> None:
    """Run a command of Regard; its failure is the script's."""
    if code := main(list(arguments)):
        raise SystemExit(code)


def describe(name: str) -> str:
    """Size and metrics of an example, in half precision on the test data."""
    summary = summarize_run(FOLDER / name)
    (evaluation,) = (FOLDER / name / "evaluations").glob("*.json")
    record = json.loads(evaluation.read_text())
    test = record["metrics"][record["main"]]
    return (
        f"{name:12} {format_size(summary.size):>7}  validation: {summary.metric()}, test: "
        f"{format_value(test['value'], test['unit'])}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train the example runs of the package.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(EXAMPLES))
    parser.add_argument("--work", type=Path, default=Path("runs/examples"), metavar="FOLDER")
    chosen = parser.parse_args()
    if wrong := set(chosen.names) - set(EXAMPLES):
        parser.error(f"{', '.join(wrong)}: expected {', '.join(EXAMPLES)}")
    names = chosen.names or list(EXAMPLES)
    for example in names:
        train_example(example, chosen.work)
    print("\n".join(map(describe, names)))
