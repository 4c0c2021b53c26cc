"""What each process of the tests of several processes runs: the runs that a file lists."""

import json
import sys
from pathlib import Path

import torch

from regard.training.run import train_run


def train_all(listed: Path) -> None:
    """Train one run after the other; one that says so until an update, where it is stopped."""
    for run in json.loads(listed.read_text()):
        made, last = [], run.get("until")
        train_run(
            run["task"],
            run["options"],
            run["out"],
            report=lambda progress, made=made: made.append(progress.position.step),
            stop=lambda made=made, last=last: made[-1] == last,
        )


if __name__ == "__main__":
    torch.set_num_threads(1)
    train_all(Path(sys.argv[1]))
