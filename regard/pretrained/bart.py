"""BART, and Marian (all OPUS-MT models), which has its architecture.

Lewis et al., 2020, https://arxiv.org/abs/1910.13461; Junczys-Dowmunt et al., 2018,
https://arxiv.org/abs/1804.00344
"""

from typing import Any

from torch import Tensor

from regard.models.pretrained.architecture import TranslatorArchitecture
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.families import Family, Source, Sources, linear

FIRST_POSITION = 2
"""The row of the first position in BART's tables."""
TABLES = (
    "shared.weight",
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "lm_head.weight",
)
"""Names of the table of word vectors, which all parts share."""
OLD_MARIAN = {
    "normalize_before": False,
    "add_final_layer_norm": False,
    "normalize_embedding": False,
    "static_position_embeddings": True,
    "extra_pos_embeddings": None,
}
"""Settings that the first converted models name, and what they must be."""


def _common(checkpoint: Checkpoint) -> dict[str, Any]:
    config = checkpoint.config
    config.refuse("tie_word_embeddings", True)
    config.head_size(config.size("d_model"), config.size("decoder_attention_heads"))
    return {
        "family": config.family,
        "vocabulary": config.size("vocab_size"),
        "width": config.size("d_model"),
        "layers": config.size("encoder_layers"),
        "decoder_layers": config.size("decoder_layers"),
        "heads": config.size("encoder_attention_heads"),
        "decoder_heads": config.size("decoder_attention_heads"),
        "feed_forward": config.size("encoder_ffn_dim"),
        "decoder_feed_forward": config.size("decoder_ffn_dim"),
        "activation": config.activation("activation_function"),
        "scaled_words": config.flag("scale_embedding", False),
    }


def _bart(checkpoint: Checkpoint) -> TranslatorArchitecture:
    config = checkpoint.config
    for name, expected in {**OLD_MARIAN, "normalize_embedding": True}.items():
        if name not in ("static_position_embeddings", "extra_pos_embeddings"):
            config.refuse(name, expected)
    return TranslatorArchitecture(
        positions=config.size("max_position_embeddings", 1024),
        input_norm=True,
        begins=True,
        leads=True,
        has_padding=True,
        **_common(checkpoint),
    )


def _marian(checkpoint: Checkpoint) -> TranslatorArchitecture:
    config = checkpoint.config
    for name, expected in OLD_MARIAN.items():
        if expected is not None:
            config.refuse(name, expected)
    config.refuse("share_encoder_decoder_embeddings", True)
    config.refuse("decoder_vocab_size", config.size("vocab_size"))
    return TranslatorArchitecture(
        positions=config.size("max_position_embeddings", 512),
        places="sinusoids",
        **_common(checkpoint),
    )


def _attention(ours: str, theirs: str) -> Sources:
    parts = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
    sources: Sources = {}
    for name, part in parts.items():
        sources |= linear(f"{ours}.{name}", f"{theirs}.{part}")
    return sources


def _block(ours: str, theirs: str) -> Sources:
    return {
        **_attention(f"{ours}.own", f"{theirs}.self_attn"),
        **linear(f"{ours}.own_norm", f"{theirs}.self_attn_layer_norm"),
        **linear(f"{ours}.feed_forward.0", f"{theirs}.fc1"),
        **linear(f"{ours}.feed_forward.3", f"{theirs}.fc2"),
        **linear(f"{ours}.feed_norm", f"{theirs}.final_layer_norm"),
    }


def logits_bias(bias: Tensor) -> Tensor:
    """From [1, v] to [v]."""
    return bias.squeeze(0)


def _sources(architecture: TranslatorArchitecture) -> Sources:
    sources: Sources = {
        "source.words.weight": Source(TABLES[:1], vocabulary=True, others=TABLES[1:]),
        "words.bias": Source(
            ("final_logits_bias",), logits_bias, vocabulary=True, zero_if_missing=True
        ),
    }
    for ours, theirs in (("source", "encoder"), ("target", "decoder")):
        if architecture.places == "learned":
            sources[f"{ours}.places.weight"] = Source(
                (f"{theirs}.embed_positions.weight",), lambda tensor: tensor[FIRST_POSITION:]
            )
        sources |= linear(f"{ours}.norm", f"{theirs}.layernorm_embedding")
    for layer in range(architecture.layers):
        sources |= _block(f"encoder.stack.blocks.{layer}", f"encoder.layers.{layer}")
    for layer in range(architecture.decoder_layers):
        ours, theirs = f"decoder.stack.blocks.{layer}", f"decoder.layers.{layer}"
        sources |= {
            **_block(ours, theirs),
            **_attention(f"{ours}.source", f"{theirs}.encoder_attn"),
            **linear(f"{ours}.source_norm", f"{theirs}.encoder_attn_layer_norm"),
        }
    return sources


FAMILY = Family(
    "bart",
    "model.",
    _bart,
    _sources,
    tasks={"BartForConditionalGeneration": "translation", "BartModel": "translation"},
)
MARIAN_FAMILY = Family(
    "marian",
    "model.",
    _marian,
    _sources,
    tasks={"MarianMTModel": "translation", "MarianModel": "translation"},
)
