"""Run the experiments and the comparison whose results come with the package.

    python scripts/example_results.py

writes them to `regard/examples/experiments` and `regard/examples/comparisons`, without runs, PNG
files and pages. Takes about five minutes of one processor.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from regard.cli import main
from regard.examples import FOLDER

EXPERIMENTS = ("distance", "reweigh", "permutation", "scores", "masking", "gradients")
"""Those that take seconds."""
COMPARISON = "classify --vary pooling=sum,weighted,self --seeds 3 --budget steps=150 --jobs 1"
KEPT = ("result.json", "comparison.json", "report.json", "*.svg")


def keep(made: Path, kind: str) -> None:
    """Replace the results of one kind in the package."""
    shutil.rmtree(FOLDER / kind, ignore_errors=True)
    for path in sorted(path for pattern in KEPT for path in made.glob(f"*/{pattern}")):
        folder = FOLDER / kind / path.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / path.name)


def run_command(*arguments: str) -> None:
    """Run a command of Regard; its failure is the script's."""
    if code := main(list(arguments)):
        raise SystemExit(code)


if __name__ == "__main__":
    with TemporaryDirectory() as work:
        experiments, comparisons = Path(work) / "experiments", Path(work) / "comparisons"
        for name in EXPERIMENTS:
            run_command("experiment", name, "--out", str(experiments))
        run_command("compare", *COMPARISON.split(), "--out", str(comparisons / "pooling"))
        keep(experiments, "experiments")
        keep(comparisons, "comparisons")
