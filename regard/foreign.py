"""Looks of models that were made elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from regard.looks import Look

SELF, ENCODER, DECODER, SOURCE = "self", "encoder.self", "decoder.self", "decoder.source"
KINDS = {
    "attentions": (SELF, "text", "text"),
    "encoder_attentions": (ENCODER, "source", "source"),
    "decoder_attentions": (DECODER, "target", "target"),
    "cross_attentions": (SOURCE, "target", "source"),
}
"""Fields of a model's output: what their looks are called, which side asks, and which is asked."""


def from_transformers(
    model: Any, inputs: Any, *, tokenizer: Any = None, row: int = 0
) -> tuple[Look, ...]:
    """Every look of a Hugging Face model at one text: a look for each layer and head.

    An encoder or a decoder alone has looks called self, from text to text. A model with both has
    encoder.self (source to source), decoder.self (target to target) and decoder.source (target to
    source). The model runs once, in evaluation mode and with eager attention, since faster ones
    keep no weights; both are as before afterwards. Padding is left out.

    Args:
        model: a model object of the package transformers, on any device.
        inputs: what the model takes: a mapping by name, or ids [b, t], or with a tokenizer a text.
            A model with encoder and decoder needs decoder_input_ids or labels too.
        tokenizer: names the tokens; without it, tokens are called by their ids.
        row: which text of the batch.
    """
    import torch

    given = _by_name(model, inputs, tokenizer)
    with torch.no_grad(), _eager(model):
        output = model(**given, output_attentions=True, return_dict=True)
    texts = max((len(v) for v in given.values() if isinstance(v, torch.Tensor)), default=1)
    if not 0 <= row < texts:
        raise ValueError(f"row {row}: the batch has {texts} texts, counted from 0")
    real = _real(model, given, row)
    both = any(output.get(name) for name in ("encoder_attentions", "decoder_attentions"))
    found: list[Look] = []
    for field, (name, asking, asked) in KINDS.items():
        if field == "cross_attentions" and not both:
            name, asking = "source", "text"
        for layer, weights in enumerate(output.get(field) or ()):
            if weights is None:
                continue
            heads = weights[row].double().cpu().numpy()
            rows, queries = _side(asking, heads.shape[1], real, tokenizer)
            columns, keys = _side(asked, heads.shape[2], real, tokenizer)
            for head, matrix in enumerate(heads):
                one = matrix[np.ix_(rows, columns)]
                found.append(Look(one, queries, keys, name, layer, head, asking, asked))
    if not found:
        raise ValueError(
            f"{type(model).__name__} returned no attention weights: it has none to show"
        )
    return tuple(found)


def _by_name(model: Any, inputs: Any, tokenizer: Any) -> dict[str, Any]:
    import torch

    if isinstance(inputs, str):
        if tokenizer is None:
            raise ValueError(
                "a text needs tokenizer=; without one, give the ids that the model takes"
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
            f"{type(model).__name__} has a decoder: give its words too, as decoder_input_ids or "
            f"labels among the inputs; got {', '.join(given)}"
        )
    return given


@contextmanager
def _eager(model: Any) -> Iterator[None]:
    """The model in evaluation mode with eager attention; as it was, whatever happens inside."""
    configs = list({id(c): c for module in model.modules() for c in _configs(module)}.values())
    before = [getattr(config, "_attn_implementation_internal", None) for config in configs]
    training = {module: module.training for module in model.modules()}
    try:
        model.set_attn_implementation("eager")
        model.eval()
        yield
    finally:
        for config, kind in zip(configs, before, strict=True):
            config._attn_implementation_internal = kind
        for module, mode in training.items():
            module.training = mode


def _configs(module: Any) -> Iterator[Any]:
    """The configs of a module that say how attention is computed, with those inside them."""
    waiting = [getattr(module, "config", None)]
    while waiting:
        config = waiting.pop()
        if hasattr(config, "_attn_implementation_internal"):
            yield config
            waiting += [getattr(config, name, None) for name in getattr(config, "sub_configs", ())]


def _real(model: Any, given: Mapping[str, Any], row: int) -> dict[str, tuple[Any, Any]]:
    """For each side the ids, and where they are no padding; None where that is not known."""
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
    name: str, length: int, real: Mapping[str, tuple[Any, Any]], tokenizer: Any
) -> tuple[Sequence[int], tuple[str, ...]]:
    """The places of a side that are no padding, and what its tokens are called."""
    ids, mask = real[name]
    places = range(length)
    kept = [i for i in places if mask is None or len(mask) != length or mask[i]]
    if ids is None or len(ids) != length:
        return kept, tuple(str(i) for i in kept)
    chosen = [ids[i] for i in kept]
    names = chosen if tokenizer is None else tokenizer.convert_ids_to_tokens(chosen)
    return kept, tuple(str(one) for one in names)
