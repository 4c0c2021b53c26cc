"""A pretrained language model as a run."""

from regard.pretrained.checkpoint import Checkpoint
from regard.tasks.shared.pretrained.pretrained_decoder import adopt_decoder
from regard.tasks.shared.pretrained.pretrained_encoder import AdoptedModel


def adopt(checkpoint: Checkpoint) -> AdoptedModel:
    """A language model like GPT-2 or Llama."""
    return adopt_decoder(checkpoint)
