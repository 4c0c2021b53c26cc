"""Does the attention of a sentiment classifier explain its labels? SST-2 and the built-in reviews.

    python benchmarks/faithfulness.py --data FOLDER [--texts 200] [--epochs N] [--out FILE]

FOLDER holds sst2/train.tsv and sst2/dev.tsv, a text and its label a line. For each corpus two
classifiers are trained with the defaults, one whose words are read in context (a recurrent network
in both directions) and one whose words stand for themselves, both with weighted pooling; then the
report is written for texts that neither has seen.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random

import torch

import regard
from regard.commands.explain import report
from regard.corpora import write_corpus
from regard.inference.explain.faithfulness import faithfulness, read_texts

MODELS = {
    "weighted pooling of words": {"encoder": "none"},
    "recurrent encoder and weighted pooling": {},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds sst2/")
    parser.add_argument("--texts", type=int, default=200, help="texts of each report")
    parser.add_argument("--epochs", type=int, help="of training (default: the task's)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="also add the reports to a file")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    with tempfile.TemporaryDirectory() as folder:
        for corpus, train, test in _corpora(chosen.data, Path(folder)):
            for model in MODELS:
                text = _report(corpus, model, train, test, Path(folder) / corpus / model, chosen)
                print(text, flush=True)
                if chosen.out is not None:
                    with chosen.out.open("a", encoding="utf-8") as stream:
                        stream.write(text + "\n")


def _corpora(data: Path, folder: Path) -> list[tuple[str, list[str], str]]:
    """Name, training files and test file of each corpus."""
    made = write_corpus("sentiment", folder / "made", 4000).files
    sst2 = data / "sst2"
    return [
        ("built-in", [str(file) for file in made["train"]], str(made["test"][0])),
        ("SST-2", [str(sst2 / "train.tsv")], str(sst2 / "dev.tsv")),
    ]


def _report(
    corpus: str, model: str, train: list[str], test: str, out: Path, chosen: argparse.Namespace
) -> str:
    """Train one model and report, as Markdown."""
    budget = {} if chosen.epochs is None else {"epochs": chosen.epochs}
    options = {"pooling": "weighted", "word_ngrams": 0, **budget, **MODELS[model]}
    run = regard.train("classify", train, out=out, **options)
    right = run.evaluate(test).metrics["accuracy"]
    texts = read_texts(run, test)[0]
    drawn = Random(0).sample(texts, min(chosen.texts, len(texts)))
    found = faithfulness(run, drawn, report=_progress)
    table = "\n".join(report(found))
    return f"### {corpus}: {model}\n\n{right}\n\n```text\n{table}\n```\n"


def _progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{done} of {total} texts", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
