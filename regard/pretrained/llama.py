"""Llama, and what has its architecture: SmolLM2, TinyLlama, Llama 3, Mistral, Qwen2.

Touvron et al., 2023, https://arxiv.org/abs/2302.13971
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor

from regard.errors import RegardError
from regard.models.pretrained.architecture import DecoderArchitecture
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.families import Family, Source, Sources


def _architecture(checkpoint: Checkpoint) -> DecoderArchitecture:
    config = checkpoint.config
    width, heads = config.size("hidden_size"), config.size("num_attention_heads")
    positions = config.size("max_position_embeddings")
    _check_window(checkpoint, positions)
    biased = config.flag("attention_bias", False)
    qwen = config.family == "qwen2"
    return DecoderArchitecture(
        family=config.family,
        vocabulary=config.size("vocab_size"),
        positions=positions,
        width=width,
        layers=config.size("num_hidden_layers"),
        heads=heads,
        key_heads=config.size("num_key_value_heads", heads),
        head_size=config.size("head_dim", config.head_size(width, heads)),
        feed_forward=config.size("intermediate_size"),
        activation=config.activation("hidden_act", "silu"),
        gated=True,
        norm="rms",
        epsilon=config.number("rms_norm_eps", 1e-6),
        places="rotary",
        **_rotation(checkpoint),
        query_bias=biased or qwen,
        output_bias=biased and not qwen,
        feed_bias=config.flag("mlp_bias", False),
        tied=config.flag("tie_word_embeddings", False),
    )


SCALES = {"factor": "rotary_factor", "low_freq_factor": "rotary_slow"} | {
    "high_freq_factor": "rotary_fast",
    "original_max_position_embeddings": "rotary_first_length",
}
ROTATIONS: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "llama3": tuple(SCALES),
}
"""Types of rotary positions, and the settings that each must have."""


def _rotation(checkpoint: Checkpoint) -> dict[str, Any]:
    """The frequencies of the rotation, as fields of the architecture."""
    config = checkpoint.config
    given = "rope_parameters" if config.values.get("rope_parameters") else "rope_scaling"
    parameters: Any = config.values.get(given)
    parameters = {} if parameters is None else parameters
    if not isinstance(parameters, dict):
        raise RegardError(f"{config.path}: {given}: expected an object")
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if not isinstance(kind, str) or kind not in ROTATIONS:
        raise RegardError(
            f"{config.path}: rotary positions of type {str(kind)[:40]!r} are not supported: "
            f"expected {', '.join(ROTATIONS)}"
        )
    base = parameters.get("rope_theta", config.values.get("rope_theta", 10000.0))
    fields: dict[str, Any] = {"rotary_base": config.finite("rope_theta", base)}
    for name in ROTATIONS[kind]:
        fields[SCALES[name]] = config.finite(f"{given}: {name}", parameters.get(name))
    if kind == "llama3":
        fields["rotary_first_length"] = int(fields["rotary_first_length"])
    return fields


def _check_window(checkpoint: Checkpoint, positions: int) -> None:
    config = checkpoint.config
    window = config.values.get("sliding_window")
    if config.family == "qwen2" and not config.flag("use_sliding_window", False):
        return
    if type(window) is int and window < positions:
        raise RegardError(
            f"{config.path}: sliding_window {window} is not supported: expected none, or one of "
            f"all {positions} positions"
        )


def _interleave(size: int) -> Callable[[Tensor], Tensor]:
    """Reorder the features of each head.

    Llama turns the features i and i + d/2 of a head together, `rotate` turns neighbours. Queries
    and keys are reordered alike, so that their products stay the same.
    """

    def convert(tensor: Tensor) -> Tensor:
        heads: Tensor = tensor.unflatten(0, (-1, 2, size // 2))
        return heads.transpose(1, 2).flatten(0, 2)

    return convert


def _sources(architecture: DecoderArchitecture) -> Sources:
    sources: Sources = {
        "embedding.words.weight": Source(("embed_tokens.weight",), vocabulary=True),
        "words.weight": Source(("lm_head.weight",), vocabulary=True),
        "body.stack.norm.weight": Source(("norm.weight",)),
    }
    turned = _interleave(architecture.head_size)
    for layer in range(architecture.layers):
        ours, theirs = f"body.stack.blocks.{layer}", f"layers.{layer}"
        for part in ("weight", "bias"):
            sources |= {
                f"{ours}.own.query.{part}": Source((f"{theirs}.self_attn.q_proj.{part}",), turned),
                f"{ours}.own.key.{part}": Source((f"{theirs}.self_attn.k_proj.{part}",), turned),
                f"{ours}.own.value.{part}": Source((f"{theirs}.self_attn.v_proj.{part}",)),
                f"{ours}.own.output.{part}": Source((f"{theirs}.self_attn.o_proj.{part}",)),
                f"{ours}.own_norm.{part}": Source((f"{theirs}.input_layernorm.{part}",)),
                f"{ours}.feed_norm.{part}": Source((f"{theirs}.post_attention_layernorm.{part}",)),
                f"{ours}.feed_forward.gate.{part}": Source((f"{theirs}.mlp.gate_proj.{part}",)),
                f"{ours}.feed_forward.inner.{part}": Source((f"{theirs}.mlp.up_proj.{part}",)),
                f"{ours}.feed_forward.outer.{part}": Source((f"{theirs}.mlp.down_proj.{part}",)),
            }
    return sources


FAMILY = Family(
    "llama",
    "model.",
    _architecture,
    _sources,
    tasks={"LlamaForCausalLM": "language", "LlamaModel": "language"},
)
MISTRAL_FAMILY = replace(
    FAMILY,
    name="mistral",
    tasks={"MistralForCausalLM": "language", "MistralModel": "language"},
)
QWEN_FAMILY = replace(
    FAMILY, name="qwen2", tasks={"Qwen2ForCausalLM": "language", "Qwen2Model": "language"}
)
