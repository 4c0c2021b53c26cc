"""A pretrained model that classifies texts, as a run."""

from collections.abc import Mapping
from typing import Any

from regard.errors import RegardError
from regard.models.pretrained.architecture import EncoderArchitecture
from regard.pretrained.checkpoint import Checkpoint
from regard.tasks.classification.task import build_pretrained
from regard.tasks.shared.pretrained.pretrained_encoder import AdoptedModel, adopt_model


def adopt(checkpoint: Checkpoint) -> AdoptedModel:
    """A pretrained encoder with a head for texts."""
    several = checkpoint.config.values.get("problem_type") == "multi_label_classification"

    def options(architecture: EncoderArchitecture, labels: int) -> Mapping[str, Any]:
        if labels < 2 and not several:
            raise RegardError(
                f"{checkpoint.folder}: its head gives one number per text, not a label: such "
                f"models are not supported"
            )
        return {"max_tokens": architecture.max_tokens, "several": several}

    return adopt_model(checkpoint, "text_head", build_pretrained, options)
