"""Looks of Hugging Face models."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from regard.trace.look import Look


class _Attention(NamedTuple):
    """What the looks of one field of a model's output are called, and the sides they join."""

    name: str
    query_side: str
    key_side: str


ATTENTION_FIELDS = {
    "attentions": _Attention("self", "text", "text"),
    "encoder_attentions": _Attention("encoder.self", "source", "source"),
    "decoder_attentions": _Attention("decoder.self", "target", "target"),
    "cross_attentions": _Attention("decoder.source", "target", "source"),
}
"""Fields of a model's output that hold attention weights."""


def from_transformers(
    model: Any, inputs: Any, *, tokenizer: Any = None, row: int = 0
) -> tuple[Look, ...]:
    """Every look of a Hugging Face model at one text: one look per layer and head.

    An encoder or a decoder alone has looks called self, from text to text. A model with both has
    encoder.self (source to source), decoder.self (target to target) and decoder.source (target to
    source). The model runs once, in evaluation mode and with eager attention, because the faster
    implementations return no weights; both settings are restored afterwards. Padding is left out.

    Args:
        model: a model object of the package transformers, on any device.
        inputs: what the model takes: a mapping by name, or ids [b, t], or with a tokenizer a text.
            An encoder-decoder model needs decoder_input_ids or labels too.
        tokenizer: names the tokens; default: tokens are named by their ids.
        row: which text of the batch, from 0.
    """
    import torch

    given = _by_name(model, inputs, tokenizer)
    with torch.no_grad(), _eager(model):
        output = model(**given, output_attentions=True, return_dict=True)
    texts = max((len(v) for v in given.values() if isinstance(v, torch.Tensor)), default=1)
    if not 0 <= row < texts:
        raise ValueError(f"row {row}: the batch has {texts} texts, counted from 0")
    tokens = _tokens(model, given, row)
    both = any(output.get(name) for name in ("encoder_attentions", "decoder_attentions"))
    looks: list[Look] = []
    for field, attention in ATTENTION_FIELDS.items():
        if field == "cross_attentions" and not both:
            attention = _Attention("source", "text", "source")
        for layer, weights in enumerate(output.get(field) or ()):
            if weights is not None:
                heads = weights[row].cpu().double().numpy()
                looks += _layer_looks(heads, layer, attention, tokens, tokenizer)
    if not looks:
        raise ValueError(f"{type(model).__name__} returned no attention weights: nothing to show")
    return tuple(looks)


def _layer_looks(
    heads: np.ndarray,
    layer: int,
    attention: _Attention,
    tokens: Mapping[str, tuple[Any, Any]],
    tokenizer: Any,
) -> list[Look]:
    """One look per head of weights [h, q, k], without padding."""
    rows, queries = _side(attention.query_side, heads.shape[1], tokens, tokenizer)
    columns, keys = _side(attention.key_side, heads.shape[2], tokens, tokenizer)
    return [
        Look(
            weights=matrix[np.ix_(rows, columns)],
            queries=queries,
            keys=keys,
            name=attention.name,
            layer=layer,
            head=head,
            query_side=attention.query_side,
            key_side=attention.key_side,
        )
        for head, matrix in enumerate(heads)
    ]


def _by_name(model: Any, inputs: Any, tokenizer: Any) -> dict[str, Any]:
    import torch

    if isinstance(inputs, str):
        if tokenizer is None:
            raise ValueError(
                "a text needs tokenizer=; without one, pass the ids that the model takes"
            )
        inputs = tokenizer(inputs, return_tensors="pt")
    if not isinstance(inputs, Mapping):
        inputs = {"input_ids": torch.atleast_2d(torch.as_tensor(inputs))}
    inputs = {
        name: torch.as_tensor(value) if isinstance(value, list | tuple) else value
        for name, value in inputs.items()
    }
    given = {
        name: value.to(model.device) if isinstance(value, torch.Tensor) else value
        for name, value in inputs.items()
    }
    if getattr(model.config, "is_encoder_decoder", False) and not {
        "decoder_input_ids",
        "decoder_inputs_embeds",
        "labels",
    } & set(given):
        raise ValueError(
            f"{type(model).__name__} has a decoder: its inputs need decoder_input_ids or labels "
            f"too; got {', '.join(given)}"
        )
    return given


@contextmanager
def _eager(model: Any) -> Iterator[None]:
    """The model in evaluation mode with eager attention; restored afterwards, also on errors."""
    configs = list({id(c): c for module in model.modules() for c in _configs(module)}.values())
    before = [getattr(config, "_attn_implementation_internal", None) for config in configs]
    training = {module: module.training for module in model.modules()}
    try:
        model.set_attn_implementation("eager")
        model.eval()
        yield
    finally:
        for config, implementation in zip(configs, before, strict=True):
            config._attn_implementation_internal = implementation
        for module, mode in training.items():
            module.training = mode


def _configs(module: Any) -> Iterator[Any]:
    """The configs of a module that choose the attention implementation, nested ones included."""
    waiting = [getattr(module, "config", None)]
    while waiting:
        config = waiting.pop()
        if hasattr(config, "_attn_implementation_internal"):
            yield config
            waiting += [getattr(config, name, None) for name in getattr(config, "sub_configs", ())]


def _tokens(model: Any, given: Mapping[str, Any], row: int) -> dict[str, tuple[Any, Any]]:
    """The ids and the padding mask of each side; None where they are not known."""
    first = (_row(given, "input_ids", row), _row(given, "attention_mask", row))
    target = _row(given, "decoder_input_ids", row)
    if target is None and "labels" in given and "decoder_inputs_embeds" not in given:
        make = getattr(model, "prepare_decoder_input_ids_from_labels", None)
        target = None if make is None else make(labels=given["labels"])[row].tolist()
    source = first
    if "encoder_hidden_states" in given:
        source = (None, _row(given, "encoder_attention_mask", row))
    mask = _row(given, "decoder_attention_mask", row)
    return {"text": first, "source": source, "target": (target, mask)}


def _row(given: Mapping[str, Any], name: str, row: int) -> list[int] | None:
    value = given.get(name)
    return None if value is None or value.ndim != 2 else value[row].tolist()


def _side(
    name: str, length: int, tokens: Mapping[str, tuple[Any, Any]], tokenizer: Any
) -> tuple[Sequence[int], tuple[str, ...]]:
    """The positions of a side that are not padding, and the names of their tokens."""
    ids, mask = tokens[name]
    kept = [i for i in range(length) if mask is None or len(mask) != length or mask[i]]
    if ids is None or len(ids) != length:
        return kept, tuple(str(i) for i in kept)
    kept_ids = [ids[i] for i in kept]
    names = kept_ids if tokenizer is None else tokenizer.convert_ids_to_tokens(kept_ids)
    return kept, tuple(map(str, names))
