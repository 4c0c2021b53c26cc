"""A BiLSTM-CRF tagger beside the same one in Flair, with equal sizes and batches.

    python benchmarks/tagging.py --data train.conll --test dev.conll [--sentences 1000]

Files have a word and a tag per line, separated by a tab, and empty lines between sentences. Both
train for one epoch on one thread, from the file to a model on disk with a validation at the end,
and tag the test sentences. Flair runs in an environment of its own, which is made when it is
missing; `peers/turns.py` says how turns are taken.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from peers.turns import environment, report, take_turns

PEERS = Path(__file__).parent / "peers"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="training sentences")
    parser.add_argument("--test", type=Path, required=True, help="sentences to tag")
    parser.add_argument("--sentences", type=int, default=10**9, help="at most, of each file")
    parser.add_argument("--environments", type=Path, default=Path("runs/environments"))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    python = environment(options.environments, "flair", ["torch", "flair", "importlib_metadata"])
    with tempfile.TemporaryDirectory() as folder:
        files, sizes = [], []
        for name, path in (("train.tsv", options.data), ("test.tsv", options.test)):
            blocks = path.read_text("utf-8").strip().split("\n\n")[: options.sentences]
            Path(folder, name).write_text("\n\n".join(blocks) + "\n", "utf-8")
            files.append(str(Path(folder, name)))
            sizes.append((len(blocks), sum(len(block.splitlines()) for block in blocks)))
        commands = {
            "regard": [sys.executable, str(PEERS / "tagging_regard.py"), *files],
            "Flair": [python, str(PEERS / "tagging_flair.py"), *files],
        }
        measured = take_turns(commands, options.rounds)
    (_, words), (sentences, _) = sizes
    print(report(measured, {"train, words": words, "predict, sentences": sentences}))


if __name__ == "__main__":
    main()
