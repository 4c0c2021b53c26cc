"""Minimal pairs ("great", "not great"): what reads words, and what reads sentences.

    python benchmarks/pairs.py [--out runs/pairs] [--threads 2]

Trains classifiers on the built-in opinions without votes of n-grams, each with the command that is
printed and no option but how it pools and what gives words their context, and counts in how many
minimal pairs both texts are right. Runs that are there already are not trained again, and those
that were interrupted go on. Exit code 1 if a bar is missed.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regard.corpora import make_corpus
from regard.inference import load
from regard.metrics import Measurement, accuracy, measure

CONTEXT, SUM = 0.95, 0.60
"""Bars: the least that pooling with context gets right, and the most that the sum does."""


class Trial(NamedTuple):
    """One way to read a text."""

    name: str
    options: str
    context: bool = True
    """Whether words are read in their context, or it is the plain sum."""


TRIALS = (
    Trial("recurrent-weighted", ""),
    Trial("recurrent-sum", "--pooling sum"),
    Trial("self", "--encoder none --pooling self"),
    Trial("sum", "--encoder none --pooling sum", context=False),
)


def both_right(run: Path) -> tuple[Measurement, Measurement, int]:
    """How many texts of the pairs are right, and in how many pairs both are; how many pairs."""
    pairs = make_corpus("sentiment").pairs
    found = load(run)([example.text for example in pairs], batch_size=256)
    right = np.array([out == e.labels[0] for out, e in zip(found, pairs, strict=True)])
    both = right.reshape(-1, 2).all(1)  # two lines after two
    each, together = (measure(accuracy(list(part), [True] * len(part))) for part in (right, both))
    return each, together, len(both)


def main() -> int:
    """Train, count, and say which bars are met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/pairs"), help="where runs go")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    rows, missed = [], False
    for trial in TRIALS:
        run = chosen.out / trial.name
        command = ["train", "classify", "--word-ngrams", "0", *trial.options.split()]
        command += ["--out", str(run)]
        print(f"$ regard {' '.join(command)}", file=sys.stderr, flush=True)
        subprocess.run(
            [sys.executable, "-m", "regard", *command],
            env=os.environ | {"OMP_NUM_THREADS": str(chosen.threads)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        each, both, count = both_right(run)
        test = load(run).evaluate().metrics["accuracy"]
        met = both.value >= CONTEXT if trial.context else both.value <= SUM
        missed = missed or not met
        bar = f"≥ {CONTEXT:.0%}" if trial.context else f"≤ {SUM:.0%}"
        rows.append(
            f"| `regard train classify --word-ngrams 0 {trial.options}`".rstrip()
            + f" | {test.value:.1%} "
            f"| {each.value:.1%} | **{both.value:.1%}** [{both.low:.1%}, {both.high:.1%}] "
            f"| {bar} | {'PASS' if met else 'MISS'} |"
        )
        print(rows[-1], flush=True)
    print(f"\n{count} pairs")
    print("| command | test | pairs, each text | pairs, both right | bar | |")
    print("| --- | --- | --- | --- | --- | --- |")
    print("\n".join(rows))
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
