"""The trace of a classified text: what each word attended to, and what pooling attended to."""

from typing import Any

import numpy as np
from torch import Tensor

from regard.data.batches import pad, pad_vectors
from regard.devices import to_device
from regard.models import Classifier
from regard.models.pretrained.encoder_classifier import PretrainedClassifier
from regard.tasks.classification.task import AnyClassifier, Classification
from regard.tasks.shared.trace_looks import ALTERNATIVES, expert_side, make_looks
from regard.tasks.shared.trace_sides import named_side, numbered_side, text_side
from regard.tasks.shared.vector_inputs import read_sequence
from regard.trace import Alternative, Side, Trace

STRONGEST = 10
"""Number of n-grams whose votes are listed."""
SIDES = {
    "pooling": ("queries", "text"),
    "pooling.self": ("text", "text"),
    "encoder.self": ("text", "text"),
    "encoder.experts": ("text", "experts"),
    "experts": ("decision", "experts"),
}


def trace_text(task: Classification, model: AnyClassifier, text: str) -> Trace:
    """One text through a classifier."""
    side, inputs = _read(task, text)
    prediction, output = task.predict_with_output(model, text, inputs)
    weights = {name: tensor[0] for name, tensor in output.weights.items()}
    sides = {"text": side}
    if not isinstance(model, PretrainedClassifier):
        weights, sides = _with_pooling(model, weights, side)
    probabilities = sorted(prediction.details["probabilities"].items(), key=lambda pair: -pair[1])
    return Trace(
        "classify",
        sides,
        make_looks(weights, sides, SIDES),
        prediction.output,
        {**prediction.details, "truncated": prediction.truncated, **_votes(task, model, inputs)},
        (tuple(Alternative(label, p) for label, p in probabilities[:ALTERNATIVES]),),
    )


def _votes(
    task: Classification, model: AnyClassifier, inputs: tuple[Tensor, Tensor]
) -> dict[str, Any]:
    """The n-grams of the text with the strongest votes, and what each adds to the logits."""
    if isinstance(model, PretrainedClassifier) or model.naive_bayes is None:
        return {}
    (ids,), _ = to_device(inputs, model)
    votes = model.naive_bayes.votes_of_ngrams(ids)
    vocabulary = task.tokenizer.vocabulary()
    words = [vocabulary[i] for i in ids.tolist()]
    strongest = sorted(votes, key=lambda vote: -max(abs(logit) for logit in vote[2]))
    return {
        "network_weight": float(model.naive_bayes.network_weight),
        "votes": [
            {
                "ngram": " ".join(words[start:end]),
                "logits": dict(zip(task.labels.names, logits, strict=True)),
            }
            for start, end, logits in strongest[:STRONGEST]
        ],
    }


def _with_pooling(
    model: Classifier, weights: dict[str, Tensor], text: Side
) -> tuple[dict[str, Tensor], dict[str, Side]]:
    """The weights, with those of pooling as one look, and the sides that they compare."""
    # the queries of pooling come as heads: they are the rows of one look
    pooled = weights.pop("pooling")[:, 0]
    kind = model.pooling.kind
    queries = [f"query {i + 1}" for i in range(len(pooled))] if kind == "fixed" else [kind]
    sides = {"text": text, "queries": named_side(queries), **expert_side(weights)}
    if "experts" in weights:
        sides["decision"] = named_side(["decision"])
    return {**weights, "pooling": pooled[None]}, sides


def _read(task: Classification, text: str) -> tuple[Side, tuple[Tensor, Tensor]]:
    """The side of a text, or of vectors, and the tensors that a classifier reads."""
    if task.features is not None:
        vectors = read_sequence(text, task.features)[: task.max_tokens]
        return numbered_side(len(vectors)), pad_vectors([vectors])
    encoded = task.tokenizer.encode(text)
    ids = np.array(encoded.ids[: task.max_tokens], dtype=np.int64)
    offsets = encoded.offsets[: task.max_tokens]
    return text_side(text, offsets, **task.frame), pad([ids])
