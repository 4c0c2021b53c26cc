"""What each process of the tests of several processes runs: the runs that a file lists."""

import json
import sys
from pathlib import Path

import torch

from regard.inference import train_run


def train_all(listed: Path) -> None:
    """Train one run after the other."""
    for run in json.loads(listed.read_text()):
        train_run(run["task"], run["options"], run["out"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    train_all(Path(sys.argv[1]))
