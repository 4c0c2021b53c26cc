"""Words as graphs: their vectors and positions before the first layer, logits after the last."""

import numpy as np
from torch import Tensor, nn

from regard.attention.positions import Learned
from regard.inference.export.graph import DOUBLE, FLOAT, Value
from regard.inference.export.graph_attention import layer_norm, linear
from regard.models.embedding import Embedding, PositionEncoding, Unembedding, VectorInputs
from regard.models.pretrained.encoder import FIRST, LAST, FramedEmbedding
from regard.models.pretrained.encoder_decoder import (
    UNKNOWN,
    PlacedVectors,
    SourceInputs,
    TargetInputs,
    TargetLogits,
)
from regard.models.pretrained.language_model import PlacedWords, TokenLogits


def embed(layer: nn.Module, given: Value, offset: Value | None = None) -> Value:
    """Vectors [b, t, w] of words [b, t] or of features [b, t, f]; `offset` [b] is a position."""
    if isinstance(layer, VectorInputs):
        return _add_positions(layer.places, linear(layer.project, given), offset)
    if isinstance(layer, PlacedWords):
        return _add_learned(layer.places, _rows(layer.words.weight, given), offset)
    if isinstance(layer, TargetInputs):
        return _place(layer, _rows(layer.table[0].weight, given), offset)
    assert isinstance(layer, Embedding)
    vectors = _rows(layer.words.weight, given) * layer.scale
    if layer.project is not None:
        vectors = linear(layer.project, vectors)
    return _add_positions(layer.places, vectors, offset)


def embed_text(layer: FramedEmbedding, words: Value, lengths: Value) -> Value:
    """What the first block of a pretrained encoder reads, with the tokens around a text."""
    framed = _frame(layer.words.weight, words, lengths, 1)
    framed = layer_norm(layer.norm, _add_learned(layer.places, framed, None))
    return framed if layer.project is None else linear(layer.project, framed)


def embed_source(layer: SourceInputs, words: Value, lengths: Value) -> Value:
    """What the first block of a pretrained translator reads, with the tokens around a source."""
    table = layer.words.weight
    known = (words < len(table)).where(words, UNKNOWN)
    return _place(layer, _frame(table, known, lengths, layer.before), None)


def unembed(layer: Unembedding | TokenLogits | TargetLogits, states: Value) -> tuple[Value, int]:
    """Logits of words, and how many."""
    tied: list[Tensor]
    bias: Tensor
    if isinstance(layer, Unembedding):
        tied, bias = [vectors.words.weight for vectors in layer.tied], layer.bias
    elif isinstance(layer, TokenLogits):
        tied, bias = [layer.tied[0].weight], layer.absent
    else:
        tied, bias = [layer.table[0].weight], layer.bias + layer.absent
        states = states * layer.scale
    table: Tensor = tied[0] if layer.weight is None else layer.weight
    logits = states @ states.graph.weight(table).permute(1, 0)
    return logits + states.graph.weight(bias), len(bias)


def _frame(table: Tensor, words: Value, lengths: Value, before: int) -> Value:
    """Vectors of texts between the first token, where there is one, and the last."""
    graph, size = words.graph, table.shape[1]
    first, last = (graph.constant(table[row].detach().cpu().numpy()) for row in (FIRST, LAST))
    parts = [first.expand(words.size(0), 1, size)] * before
    parts += [_rows(table, words), graph.full(0.0, words.size(0), 1, size)]
    framed = graph.join(parts, 1)
    place = graph.range(0, framed.size(1)).unsqueeze(0)
    at_end = graph.op("Equal", place, (lengths + before).unsqueeze(1))
    return at_end.unsqueeze(2).where(last, framed)


def _rows(table: Tensor, ids: Value) -> Value:
    return ids.graph.op("Gather", ids.graph.weight(table), ids, axis=0)


def _place(layer: PlacedVectors, x: Value, offset: Value | None) -> Value:
    x = _add_learned(layer.places, x * layer.scale, offset)
    if layer.wavy:
        x = _add_sinusoids(x, offset, interleaved=False)
    return x if layer.norm is None else layer_norm(layer.norm, x)


def _add_positions(places: PositionEncoding, x: Value, offset: Value | None) -> Value:
    if places.kind == "none":
        return x
    if isinstance(places.learned, Learned):
        return _add_learned(places.learned, x, offset)
    return _add_sinusoids(x, offset, interleaved=True)


def _add_learned(places: Learned | None, x: Value, offset: Value | None) -> Value:
    return x if places is None else x + _rows(places.weight, _positions(x, offset))


def _add_sinusoids(x: Value, offset: Value | None, *, interleaved: bool) -> Value:
    graph = x.graph
    width = graph.op("Shape", x, start=2).to(DOUBLE)
    half = graph.range(0, x.size(2) / np.array([2])).to(DOUBLE)
    frequency = graph.op("Pow", np.array(10000.0), half * np.array(-2.0) / width)
    angle = _positions(x, offset).to(DOUBLE).unsqueeze(2) * frequency
    waves = [graph.op(kind, angle) for kind in ("Sin", "Cos")]
    if interleaved:
        waves = [graph.join([wave.unsqueeze(3) for wave in waves], 3).reshape(0, 0, -1)]
    return x + graph.join(waves, 2).to(FLOAT)


def _positions(x: Value, offset: Value | None) -> Value:
    """The position of each vector, [1, t], or [b, t] with an offset."""
    position = x.graph.range(0, x.size(1)).unsqueeze(0)
    return position if offset is None else position + offset.unsqueeze(1)
