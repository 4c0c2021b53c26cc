"""A pretrained model that labels words, as a run."""

from regard.data import Labels
from regard.pretrained.checkpoint import Checkpoint
from regard.tasks.shared.pretrained.pretrained_encoder import AdoptedModel, adopt_model
from regard.tasks.tagging.task import build_pretrained


def adopt(checkpoint: Checkpoint) -> AdoptedModel:
    """A pretrained encoder with a head for tokens."""
    return adopt_model(
        checkpoint,
        "token_head",
        build_pretrained,
        lambda architecture, labels: {"crf": False},
        lambda folder: Labels(()).save(folder / "characters.json"),
    )
