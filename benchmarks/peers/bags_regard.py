"""Regard: a classifier without an encoder that pools by the mean, with its default options."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from turns import answer

import regard
from regard.training.run import train_run


def main() -> None:
    """Train and predict when asked to."""
    texts = [
        line.split("\t")[0]
        for path in sys.argv[1:3]
        for line in Path(path).read_text("utf-8").splitlines()
    ]
    folder, runs = Path(tempfile.mkdtemp()), []
    options = {"data": [sys.argv[1]], "encoder": "none", "pooling": "mean", "epochs": 5}
    options["word_ngrams"] = 0  # fastText has none by default either

    def train() -> str:
        out = folder / f"run-{len(runs)}"
        train_run("classify", options, out, data_cache=False)
        runs.append(regard.load(out))
        return ""

    def predict() -> list[str]:
        predictions: Any = runs[-1].predict(texts)
        return [prediction.output for prediction in predictions]

    answer({"train, texts · epochs": train, "predict, texts": predict})


if __name__ == "__main__":
    main()
