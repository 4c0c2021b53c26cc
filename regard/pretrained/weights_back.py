"""The weights of a run by the names of the pretrained model that it was made from.

Every conversion moves numbers without changing them, so that converting their places shows where
each came from. Rows that no token of the run has, and types of a second text, were never read:
they are zero.
"""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.errors import RegardError
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.families import Sources
from regard.pretrained.weights_by_name import compare_shapes, locate_sources

MOST_UNUSED_ROWS = 100_000
"""Rows of a vocabulary that no token has."""


def weights_back(
    checkpoint: Checkpoint, network: nn.Module, sources: Sources, rows: Int[Any, "v"]
) -> dict[str, Tensor]:
    """Tensors with names and shapes that `checkpoint` lists.

    Args:
        checkpoint: the names and shapes of the pretrained model's weights.
        network: the network of the run.
        sources: where each of its weights came from.
        rows: the row of each token in the tables of the pretrained model.
    """
    back: dict[str, Tensor] = {}
    state = network.state_dict()
    unused = checkpoint.config.size("vocab_size") - 1 - int(rows.max())
    if not 0 <= unused <= MOST_UNUSED_ROWS:
        raise RegardError(
            f"{checkpoint.config.path}: vocab_size does not fit the tokens of the run: restore it "
            "from a copy, or import the model again"
        )
    for ours, (source, names) in locate_sources(checkpoint, network, sources).items():
        tensor = state[ours].detach().cpu().float()
        compare_shapes(checkpoint, source, names, tuple(tensor.shape))
        for name in names:
            back.setdefault(name, torch.zeros(checkpoint.shapes[name]))
        first, *others = names
        size = back[first].numel()
        places = torch.arange(1, size + 1, dtype=torch.float64).view(back[first].shape)
        zeros = (torch.zeros(checkpoint.shapes[n], dtype=torch.float64) for n in others)
        found = source.convert(places, *zeros).long() - 1
        if source.vocabulary:
            if len(tensor) != len(rows):
                raise RegardError(
                    f"{checkpoint.folder}: has the tokenizer of another model: restore it from a "
                    "copy, or import the model again"
                )
            known = torch.from_numpy(rows)
            found, tensor = found[known[known >= 0]], tensor[known >= 0]
        back[first].view(-1)[found.flatten()] = tensor.flatten()
    return back
