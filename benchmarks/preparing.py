"""Pairs of sentences from a table to tokenized files, beside Hugging Face datasets and tokenizers.

    python benchmarks/preparing.py --data pairs.tsv [--environments FOLDER]

The table has a source and a target per line, separated by a tab. Regard checks and counts the
pairs, holds a part out and learns two vocabularies; `datasets` reads the table, tokenizes it by
`map` in batches and saves it, once with vocabularies of the same size learned by `tokenizers`
and once with those that Regard has learned, so that nothing is learned. `peers/turns.py` says
how turns are taken.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from peers.turns import environment, report, take_turns

PEERS = Path(__file__).parent / "peers"
WORKS = ("read, learn vocabularies, tokenize, write", "read, tokenize, write")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="a table of pairs")
    parser.add_argument("--environments", type=Path, default=Path("runs/environments"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="of the tokenizers")
    options = parser.parse_args()
    python = environment(options.environments, "datasets", ["datasets", "tokenizers"])
    file, pairs = str(options.data.resolve()), len(options.data.read_bytes().splitlines())
    with tempfile.TemporaryDirectory() as folder:  # of the vocabularies, which datasets takes
        arguments = [file, folder]
        commands = {
            "regard": [sys.executable, str(PEERS / "pairs_regard.py"), *arguments],
            "datasets": [python, str(PEERS / "pairs_datasets.py"), *arguments],
        }
        measured = take_turns(commands, options.rounds, threads=options.threads)
    print(report(measured, dict.fromkeys(WORKS, pairs)))


if __name__ == "__main__":
    main()
