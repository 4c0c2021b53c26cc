"""Regard: a BiLSTM-CRF over learned word vectors, one epoch, and the tags of other sentences."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from turns import answer

import regard
from regard.training.run import train_run

WIDTH = 256


def main() -> None:
    """Train and predict when asked to."""
    blocks = Path(sys.argv[2]).read_text("utf-8").split("\n\n")
    rows = [[line.split("\t")[0] for line in block.splitlines()] for block in blocks]
    texts = [" ".join(words) for words in rows if words]
    folder, runs = Path(tempfile.mkdtemp()), []
    options = {
        "data": [sys.argv[1]],
        "valid": [sys.argv[2]],
        "encoder": "recurrent",
        "layers": 1,
        "width": WIDTH,
        "characters": 0,
        "ngrams": 0,
        "epochs": 1,
        "batch_tokens": 600,  # about 32 sentences
    }

    def train() -> str:
        out = folder / f"run-{len(runs)}"
        train_run("tag", options, out, data_cache=False)
        runs.append(regard.load(out))
        return ""

    def predict() -> str:
        predictions: Any = runs[-1].predict(texts)
        return f"{sum(len(one.output.split()) for one in predictions):,} words"

    answer({"train, words": train, "predict, sentences": predict})


if __name__ == "__main__":
    main()
