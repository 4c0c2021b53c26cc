"""Pretrained encoders as graphs: a classifier of texts and a tagger of words."""

from regard.inference.export.graph import FLOAT, INT64, Graph, Value
from regard.inference.export.graph_attention import (
    activate,
    linear,
    real_positions,
    zero_masked,
)
from regard.inference.export.graph_layers import Weights, stack
from regard.inference.export.graph_words import embed_text
from regard.inference.export.ports import output_weights
from regard.models.pretrained.encoder import PretrainedEncoder
from regard.models.pretrained.encoder_classifier import PretrainedClassifier
from regard.models.pretrained.encoder_tagger import PretrainedTagger


def pretrained_classifier(model: PretrainedClassifier) -> dict[str, Graph]:
    """words, lengths → logits [b, labels]; weights have the first and the last token too."""
    graph = Graph()
    words = graph.input("words", INT64, "batch", "length")
    lengths = graph.input("lengths", INT64, "batch")
    x = embed_text(model.inputs, words, lengths)
    states, weights = _encode(model.encoder, x, lengths + 2)
    if model.architecture.pooling == "mean":
        pooled = states.sum(1) / (lengths + 2).to(FLOAT).unsqueeze(1)
    else:
        pooled = states.slice(1, 0, 1).squeeze(1)
    if model.dense is not None:
        pooled = activate(model.activation, linear(model.dense, pooled))
    graph.output(
        "logits", linear(model.decision, pooled), FLOAT, "batch", model.decision.out_features
    )
    output_weights(weights, "tokens")
    return {"model": graph}


def pretrained_tagger(model: PretrainedTagger) -> dict[str, Graph]:
    """The tokens of each word, padded with 0 → logits [b, t, labels] of each word."""
    graph = Graph()
    tokens = graph.input("tokens", INT64, "batch", "length", "pieces")
    counts = tokens.above(0).to(INT64).sum(2)
    starts = graph.op("CumSum", counts, 1) - counts
    lengths = counts.sum(1)
    flat = tokens.reshape(0, -1)
    # places of the tokens come first and in order, since those of padding are larger
    place = graph.range(0, flat.size(1)).unsqueeze(0) + (flat < 1).to(INT64) * 2**40
    longest = graph.op("Max", lengths.max(0, keep=True), 1)
    _, order = graph.several("TopK", 2, place, longest, axis=1, largest=0)
    flat = graph.op("GatherElements", flat, order, axis=1)
    x = embed_text(model.inputs, flat, lengths)
    states, weights = _encode(model.encoder, x, lengths + 2)
    at_words = graph.op("Min", starts, x.size(1) - 2) + 1
    at_words = at_words.unsqueeze(2).expand(1, 1, model.encoder.size)
    states = graph.op("GatherElements", states, at_words, axis=1)
    logits = linear(model.decision, states)
    graph.output("logits", logits, FLOAT, "batch", "length", model.decision.out_features)
    output_weights(weights, "tokens")
    return {"model": graph}


def _encode(layer: PretrainedEncoder, x: Value, lengths: Value) -> tuple[Value, Weights]:
    real = real_positions(lengths, x.size(1))
    states, weights, _ = stack(layer.stack, x, real.unsqueeze(1, 2), "encoder")
    return zero_masked(states, real.unsqueeze(2)), weights
