"""fastText: the mean of word vectors and a softmax, with its default options."""

import sys
import tempfile
from pathlib import Path

import fasttext
from turns import answer


def read(path: str) -> tuple[list[str], list[str]]:
    """The texts and labels of a table, in lower case as Regard reads them."""
    rows = [line.split("\t") for line in Path(path).read_text("utf-8").splitlines()]
    return [row[0].lower() for row in rows], [row[1] for row in rows]


def main() -> None:
    """Train and predict when asked to."""
    (texts, labels), (tested, _) = read(sys.argv[1]), read(sys.argv[2])
    folder = Path(tempfile.mkdtemp())
    file = folder / "train.txt"
    lines = [f"__label__{label} {text}\n" for text, label in zip(texts, labels, strict=True)]
    file.write_text("".join(lines), "utf-8")
    models = []

    def train() -> str:
        models[:] = [fasttext.train_supervised(str(file), epoch=5, thread=1, verbose=0)]
        models[0].save_model(str(folder / "model.bin"))
        return ""

    def predict() -> list[str]:
        labels, _ = models[0].predict([*texts, *tested])
        return [best.removeprefix("__label__") for (best,) in labels]

    answer({"train, texts · epochs": train, "predict, texts": predict})


if __name__ == "__main__":
    main()
