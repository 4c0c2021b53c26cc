"""The only training loop, the run folder, and going on after an interruption."""

from regard.training.config import TrainingConfig
from regard.training.folder import RunFolder
from regard.training.loop import Progress, train

__all__ = ["Progress", "RunFolder", "TrainingConfig", "train"]
