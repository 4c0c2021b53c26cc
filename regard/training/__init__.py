"""Training: the loop, the run folder, and resuming after an interruption."""

from typing import TYPE_CHECKING

from regard.lazy_imports import export_lazily

if TYPE_CHECKING:
    from regard.training.config import TrainingConfig
    from regard.training.loop import Progress, train
    from regard.training.run_folder import RunFolder
    from regard.training.state import Position

__all__ = ["Position", "Progress", "RunFolder", "TrainingConfig", "train"]

export_lazily(
    __name__,
    {
        "Position": "regard.training.state:Position",
        "Progress": "regard.training.loop:Progress",
        "RunFolder": "regard.training.run_folder:RunFolder",
        "TrainingConfig": "regard.training.config:TrainingConfig",
        "train": "regard.training.loop:train",
    },
)
