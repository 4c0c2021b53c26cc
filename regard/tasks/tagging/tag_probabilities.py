"""The probability of every tag of every word, all other words summed out."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from regard.devices import to_device
from regard.tasks.shared.vector_inputs import read_sequence
from regard.tasks.tagging.task import AnyTagger


@torch.no_grad()
def tag_probabilities(task: Any, model: AnyTagger, texts: Sequence[Any]) -> list[np.ndarray]:
    """An array [words, tags] for each text; tags are in the order of the task's labels.

    A text is a list of words, or a text that is split at white space.
    """
    found: list[np.ndarray] = []
    for text in texts:
        whole: Any = text  # a list of words
        if task.features is not None:
            whole = read_sequence(text, task.features)
        elif isinstance(text, str):
            whole = text.split()
        pieces = [to_device(task.inputs([words]), model) for words in task.split(whole)]
        found.append(
            np.concatenate(
                [
                    model.probabilities(model(words, lengths, letters).logits, lengths)[0]
                    .cpu()
                    .numpy()
                    for words, lengths, letters in pieces
                ]
            )
        )
    return found
