"""The only training loop, the run folder, and going on after an interruption."""

from regard.training.checkpoints import Position
from regard.training.config import TrainingConfig
from regard.training.folder import RunFolder
from regard.training.loop import Progress, train

__all__ = ["Position", "Progress", "RunFolder", "TrainingConfig", "train"]
