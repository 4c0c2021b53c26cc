"""Classifiers that take the mean of word vectors beside fastText, which does nothing else.

    python benchmarks/bags.py --data train.tsv --test dev.tsv [--environments FOLDER]

Tables have a text and a label per line, separated by a tab. Both train for five epochs on one
thread, from the file to a model on disk, and predict all texts of both files. fastText runs in an
environment of its own, which is made when it is missing; `peers/turns.py` says how turns are taken.
"""

import argparse
import sys
from pathlib import Path

from peers.turns import environment, report, take_turns

PEERS = Path(__file__).parent / "peers"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="training texts")
    parser.add_argument("--test", type=Path, required=True, help="test texts")
    parser.add_argument("--environments", type=Path, default=Path("runs/environments"))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    python = environment(
        options.environments, "fasttext", ["fasttext-wheel", "numpy<2"], constrain=False
    )
    files = [str(path.resolve()) for path in (options.data, options.test)]
    commands = {
        "regard": [sys.executable, str(PEERS / "bags_regard.py"), *files],
        "fastText": [python, str(PEERS / "bags_fasttext.py"), *files],
    }
    texts, tested = (len(Path(path).read_text("utf-8").splitlines()) for path in files)
    measured = take_turns(commands, options.rounds)
    print(report(measured, {"train, texts · epochs": 5 * texts, "predict, texts": texts + tested}))
    for name, turns in measured["predict, texts"].items():
        gold = [line.split("\t")[1] for line in options.test.read_text("utf-8").splitlines()]
        right = sum(a == b for a, b in zip(turns.result[-tested:], gold, strict=True))
        print(f"{name}: accuracy {right / tested:.3f} on the test texts")


if __name__ == "__main__":
    main()
