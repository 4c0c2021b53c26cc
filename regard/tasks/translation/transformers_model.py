"""Translators of Regard as Marian or Pegasus, which have the same architecture.

Marian normalizes after each part, Pegasus before it. Both have one table of word vectors for both
languages: the source's rows come first, then the target's, and the logits of the source's rows are
minus infinity. Both put all sines of the positions before all cosines, where Regard interleaves
them: the features of the states are reordered.
"""

from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.normalizers import softmax
from regard.attention.scores import ScaledDot
from regard.data.tokenizers.tokenizer import BOS, EOS, PAD
from regard.errors import RegardError
from regard.models.decoders import TransformerDecoder
from regard.models.encoders import TransformerEncoder
from regard.models.translator import Translator
from regard.tasks.shared.pretrained.transformers_format import TransformersModel

PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def translator_for_transformers(task: Any, model: Translator) -> TransformersModel:
    """The config and the weights; RegardError names the option that does not fit."""
    _check(model)
    max_length: int = task.config.max_length
    stacks = {"encoder": model.encoder.stack, "decoder": model.decoder.stack}
    first = {name: next(iter(stack)) for name, stack in stacks.items()}
    before = first["encoder"].norm_first
    sources, targets = (len(part.words.weight) for part in (model.source, model.target))
    own = model.words.weight is not None
    config: dict[str, Any] = {
        "architectures": ["PegasusForConditionalGeneration" if before else "MarianMTModel"],
        "model_type": "pegasus" if before else "marian",
        "vocab_size": sources + targets,
        "d_model": model.source.width,
        "max_position_embeddings": max_length,
        "activation_function": "gelu",
        "scale_embedding": True,
        "tie_word_embeddings": not own,
        "is_encoder_decoder": True,
        "pad_token_id": PAD,
        "bos_token_id": None,
        "eos_token_id": sources + EOS,
        "decoder_start_token_id": sources + BOS,
        "forced_eos_token_id": None,
        "dropout": 0.1,
    }
    if not before:
        config |= {"decoder_vocab_size": sources + targets}
    for name, stack in stacks.items():
        config |= {
            f"{name}_layers": len(list(stack)),
            f"{name}_attention_heads": first[name].own.heads,
            f"{name}_ffn_dim": first[name].feed_forward[0].out_features,
        }
    generation = {
        "decoder_start_token_id": sources + BOS,
        "eos_token_id": sources + EOS,
        "pad_token_id": PAD,
        "num_beams": 5,
        "suppress_tokens": [sources + PAD, sources + BOS],
        "max_length": max_length,
    }
    tokenizers = {"": task.source, "target": task.target}
    note = (
        "The tokenizer of the folder is that of the source; that of the target is in `target/`, "
        f"and the model adds {sources} to the numbers of its tokens. Sources have no token at "
        "their end."
    )
    return TransformersModel(config, generation, _weights(model, sources), tokenizers, note)


def _check(model: Translator) -> None:
    if (
        type(model.encoder) is not TransformerEncoder
        or type(model.decoder) is not TransformerDecoder
    ):
        raise RegardError(
            "only translators with --model transformer have an architecture that transformers "
            "knows: a recurrent encoder or decoder has none"
        )
    for block in (*model.encoder.stack, *model.decoder.stack):
        if not isinstance(block.feed_forward, nn.Sequential):
            raise RegardError("--experts: translators in transformers have no experts")
        for attention in (block.own, block.source):
            if attention is None:
                continue
            if type(attention.score) is not ScaledDot or attention.score.scale is not None:
                raise RegardError("--attention: translators in transformers have only scaled_dot")
            if attention.normalize is not softmax:
                raise RegardError("--normalize: translators in transformers have only softmax")


def _weights(model: Translator, sources: int) -> dict[str, Tensor]:
    width = model.source.width
    order = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
    table = torch.cat([model.source.words.weight, model.target.words.weight])[:, order]
    weights = {"model.shared.weight": table}
    bias = torch.cat([torch.full((sources,), float("-inf")), model.words.bias])
    weights["final_logits_bias"] = bias[None]
    if model.words.weight is not None:
        unused = torch.zeros(sources, width)
        weights["lm_head.weight"] = torch.cat([unused, model.words.weight[:, order]])
        for side in ("encoder", "decoder"):
            weights[f"model.{side}.embed_tokens.weight"] = table
    for side in ("encoder", "decoder"):
        stack = getattr(model, side).stack
        if isinstance(stack.norm, nn.LayerNorm):
            weights |= _reordered(f"model.{side}.layer_norm", stack.norm, rows=order)
        for layer, block in enumerate(stack):
            prefix = f"model.{side}.layers.{layer}"
            for name, attention, norm in (
                ("self_attn", block.own, block.own_norm),
                ("encoder_attn", block.source, block.source_norm),
            ):
                if attention is None:
                    continue
                weights |= _reordered(f"{prefix}.{name}_layer_norm", norm, rows=order)
                for ours, theirs in PROJECTIONS.items():
                    sides = {"rows": order} if ours == "output" else {"columns": order}
                    part = getattr(attention, ours)
                    weights |= _reordered(f"{prefix}.{name}.{theirs}", part, **sides)
            weights |= _reordered(f"{prefix}.fc1", block.feed_forward[0], columns=order)
            weights |= _reordered(f"{prefix}.fc2", block.feed_forward[3], rows=order)
            weights |= _reordered(f"{prefix}.final_layer_norm", block.feed_norm, rows=order)
    return {name: tensor.detach().clone().contiguous() for name, tensor in weights.items()}


def _reordered(
    name: str, part: Any, *, rows: Tensor | None = None, columns: Tensor | None = None
) -> dict[str, Tensor]:
    """Weight and bias of a layer whose output or input features are reordered."""
    weight, bias = part.weight, part.bias
    if rows is not None:
        weight, bias = weight[rows], bias[rows]
    if columns is not None:
        weight = weight[:, columns]
    return {f"{name}.weight": weight, f"{name}.bias": bias}
