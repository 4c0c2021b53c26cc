"""What of a classifier is explained: its label, or each label where several may hold."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from regard.devices import device_of
from regard.models import Classifier
from regard.models.pretrained.encoder_classifier import PretrainedClassifier
from regard.tasks.classification.task import AnyClassifier, Classification
from regard.tasks.shared.attention_flow import flow_from_first, flow_to_pooling
from regard.tasks.shared.attention_modules import attention_modules
from regard.tasks.shared.explain_target import (
    ExplainTarget,
    Reading,
    erase_tokens,
    word_units,
)
from regard.tasks.shared.trace_sides import text_side


def explain_labels(
    task: Classification, network: AnyClassifier, text: str, erase: str | None, every: bool
) -> ExplainTarget | None:
    """The chosen label; each of several labels is an output of its own, which says no or yes."""
    erase = erase or "delete"
    encoded = task.tokenizer.encode(text)
    device = device_of(network)
    ids = torch.tensor(encoded.ids[: task.max_tokens], device=device)
    if not len(ids):
        return None

    def read(kept: Tensor, positions: Tensor, need_weights: bool) -> Reading:
        output = network(*erase_tokens(ids, kept, erase), need_weights=need_weights)
        if not task.several:
            return Reading(output.logits.log_softmax(-1), output.weights)
        own = output.logits[torch.arange(len(kept), device=device), positions]
        return Reading(torch.stack([0 * own, own], 1).log_softmax(-1), output.weights)

    positions = torch.arange(len(task.labels) if task.several else 1, device=device)
    kept = torch.ones(len(positions), len(ids), dtype=torch.bool, device=device)
    best = read(kept, positions, False).log_probabilities.argmax(-1).tolist()
    labels = task.labels.names
    side = text_side(text, encoded.offsets[: len(ids)])
    return ExplainTarget(
        network=network,
        input_layers=_input_layers(network),
        output_attention=_output_attention(network),
        read=read,
        side_name="text" if task.pretrained is None else "tokens",
        side=side,
        positions=tuple(positions.tolist()),
        chosen=tuple(best),
        names=_names(labels, best) if task.several else (labels[best[0]],),
        visible=kept.cpu().numpy(),
        units=word_units(task.tokenizer, side),
        flow=flow_to_pooling if task.pretrained is None else flow_from_first,
        erase=erase,
        whole_output=len(positions) == 1,
        votes=_votes(task, network, ids, best),
    )


def _input_layers(network: AnyClassifier) -> tuple[nn.Module, ...]:
    """Word vectors, and the presence of words in n-grams: gradients cover all that is read."""
    words: nn.Module = network.inputs.words  # type: ignore[assignment]
    if not isinstance(network, Classifier) or network.naive_bayes is None:
        return (words,)
    return (words, network.naive_bayes.evidence.presence)


def _votes(
    task: Classification, network: AnyClassifier, ids: Tensor, chosen: Sequence[int]
) -> np.ndarray | None:
    """The votes for each choice above those for the others, [o, t]."""
    if not isinstance(network, Classifier) or network.naive_bayes is None:
        return None
    with torch.no_grad():
        votes = network.naive_bayes.votes(ids).cpu()
    if task.several:
        signs = torch.tensor([1.0 if yes else -1.0 for yes in chosen])
        rows = votes.T * signs[:, None]
    else:
        others = (votes.sum(1) - votes[:, chosen[0]]) / (votes.shape[1] - 1)
        rows = (votes[:, chosen[0]] - others)[None]
    values: np.ndarray = rows.double().numpy()
    return values


def _names(labels: Sequence[str], chosen: Sequence[int]) -> tuple[str, ...]:
    """The decision on each of several labels in words."""
    return tuple(f"{'' if yes else 'not '}{name}" for name, yes in zip(labels, chosen, strict=True))


def _output_attention(network: AnyClassifier) -> tuple[nn.Module, ...]:
    """Pooling where it has weights, or else every attention of the encoder."""
    modules = attention_modules(network)
    if isinstance(network, PretrainedClassifier):
        return modules
    return (network.pooling,) if network.pooling in modules else modules
