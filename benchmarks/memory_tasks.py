"""Copy, reverse, sort and recall, learned with a memory, without one, and by a transformer.

Trains each with the defaults of `regard train algorithm`, tests it on new problems of trained
lengths and of lengths up to twice as long, and prints a table in Markdown:

    OMP_NUM_THREADS=1 python benchmarks/memory_tasks.py --kinds copy recall --out runs/memory
"""

import argparse
import resource
import time
from pathlib import Path
from typing import Any, get_type_hints

from regard.corpora.algorithms import ALGORITHMS
from regard.inference import load
from regard.models import AlgorithmConfig
from regard.options import choices
from regard.training.run import train_run

MODELS = choices(get_type_hints(AlgorithmConfig)["model"])

COLUMNS = ("kind", "model", "parameters", "updates", "minutes", "CPU minutes", "trained", "longer")


def measured(kind: str, model: str, folder: Path, **options: Any) -> tuple[str, ...]:
    """Train one machine, or go on with it, and test it: the cells of its row."""
    began, used = time.monotonic(), _cpu()
    _, position = train_run("algorithm", {"kind": kind, "model": model, **options}, folder)
    minutes, cpu = (time.monotonic() - began) / 60, (_cpu() - used) / 60
    run = load(folder)
    found = run.evaluate().metrics
    size = sum(parameter.numel() for parameter in run.model.parameters())
    double = f"exact_match_{run.data.double}"
    rates = [found[f"exact_match_{part}"] for part in ("trained", "longer")]
    shares = [
        f"{100 * rate.value:.1f} [{100 * rate.low:.1f}, {100 * rate.high:.1f}]" for rate in rates
    ]
    last = f"{100 * found[double].value:.1f} ({run.data.double})"
    times = f"{minutes:.1f}", f"{cpu:.1f}"
    return kind, model, f"{size:,}", f"{position.step:,}", *times, *shares, last


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print a row as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", default=list(ALGORITHMS), choices=ALGORITHMS)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--out", type=Path, default=Path("runs/memory_tasks"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, help="100 updates each; default: those of the task")
    chosen = parser.parse_args()
    options = {"seed": chosen.seed} | ({"epochs": chosen.epochs} if chosen.epochs else {})
    print("| " + " | ".join((*COLUMNS, "double")) + " |")
    print("| " + " | ".join("---" for _ in (*COLUMNS, "double")) + " |", flush=True)
    for kind in chosen.kinds:
        for model in chosen.models:
            folder = chosen.out / f"{kind}-{model}-{chosen.seed}"
            print("| " + " | ".join(measured(kind, model, folder, **options)) + " |", flush=True)


if __name__ == "__main__":
    main()
