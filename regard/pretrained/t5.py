"""T5, Flan-T5 and mT5. Raffel et al., 2020, https://arxiv.org/abs/1910.10683"""

from dataclasses import replace

from regard.errors import RegardError
from regard.models.pretrained.architecture import Activation, TranslatorArchitecture
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.families import Family, Source, Sources

FEED_FORWARD: dict[str, tuple[Activation, bool]] = {
    "relu": ("relu", False),
    "gated-gelu": ("gelu_tanh", True),
    "gated-silu": ("silu", True),
}
"""Activation of each kind of feed-forward network, and whether it has a gate."""
TABLES = ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
"""Names of the table of word vectors."""


def _architecture(checkpoint: Checkpoint) -> TranslatorArchitecture:
    config = checkpoint.config
    kind = config.values.get("feed_forward_proj", "relu")
    if not isinstance(kind, str) or kind not in FEED_FORWARD:
        raise RegardError(
            f"{config.path}: feed_forward_proj {str(kind)[:40]!r} is not supported: expected "
            f"{', '.join(FEED_FORWARD)}"
        )
    activation, gated = FEED_FORWARD[kind]
    # version 1.1 says that its tables are not shared, and does not scale; mT5 never does
    said = config.flag("tie_word_embeddings", True)
    scaled = config.family == "t5" and config.flag("scale_decoder_outputs", said)
    heads, hidden = config.size("num_heads"), config.size("d_ff")
    return TranslatorArchitecture(
        family=config.family,
        vocabulary=config.size("vocab_size"),
        positions=config.size("n_positions", 512),
        width=config.size("d_model"),
        layers=config.size("num_layers"),
        decoder_layers=config.size("num_decoder_layers", config.size("num_layers")),
        heads=heads,
        decoder_heads=heads,
        feed_forward=hidden,
        decoder_feed_forward=hidden,
        head_size=config.size("d_kv"),
        activation=activation,
        gated=gated,
        norm="rms",
        epsilon=config.number("layer_norm_epsilon", 1e-6),
        places="relative",
        distances=config.size("relative_attention_num_buckets", 32),
        longest_distance=config.size("relative_attention_max_distance", 128),
        tied=said or "lm_head.weight" not in checkpoint.shapes,
        scaled_states=scaled,
    )


def _attention(ours: str, theirs: str) -> Sources:
    names = {"query": "q", "key": "k", "value": "v", "output": "o"}
    return {
        f"{ours}.{name}.weight": Source((f"{theirs}.{part}.weight",))
        for name, part in names.items()
    }


def _feed_forward(ours: str, theirs: str, gated: bool) -> Sources:
    names = {"0": "wi", "3": "wo"}
    if gated:
        names = {"gate": "wi_0", "inner": "wi_1", "outer": "wo"}
    return {
        f"{ours}.feed_forward.{name}.weight": Source((f"{theirs}.DenseReluDense.{part}.weight",))
        for name, part in names.items()
    }


def _sources(architecture: TranslatorArchitecture) -> Sources:
    sources: Sources = {
        "source.words.weight": Source(TABLES[:1], vocabulary=True, others=TABLES[1:]),
        "words.weight": Source(("lm_head.weight",), vocabulary=True),
        # the model has no such weights
        "words.bias": Source(("final_logits_bias",), vocabulary=True, zero_if_missing=True),
    }
    layers = {"encoder": architecture.layers, "decoder": architecture.decoder_layers}
    for part, count in layers.items():
        first = f"{part}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        sources[f"biases.{part}.weight"] = Source((first,))
        sources[f"{part}.stack.norm.weight"] = Source((f"{part}.final_layer_norm.weight",))
        for layer in range(count):
            ours, theirs = f"{part}.stack.blocks.{layer}", f"{part}.block.{layer}.layer"
            last = 2 if part == "decoder" else 1
            sources |= {
                **_attention(f"{ours}.own", f"{theirs}.0.SelfAttention"),
                f"{ours}.own_norm.weight": Source((f"{theirs}.0.layer_norm.weight",)),
                **_feed_forward(ours, f"{theirs}.{last}", architecture.gated),
                f"{ours}.feed_norm.weight": Source((f"{theirs}.{last}.layer_norm.weight",)),
            }
            if part == "decoder":
                sources |= {
                    **_attention(f"{ours}.source", f"{theirs}.1.EncDecAttention"),
                    f"{ours}.source_norm.weight": Source((f"{theirs}.1.layer_norm.weight",)),
                }
    return sources


FAMILY = Family(
    "t5",
    "",
    _architecture,
    _sources,
    tasks={
        "T5ForConditionalGeneration": "translation",
        "T5WithLMHeadModel": "translation",
        "T5Model": "translation",
    },
)
MT5_FAMILY = replace(
    FAMILY,
    name="mt5",
    tasks={"MT5ForConditionalGeneration": "translation", "MT5Model": "translation"},
)
