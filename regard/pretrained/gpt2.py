"""GPT-2, and what has its architecture.

Radford et al., 2019, https://openai.com/research/better-language-models
"""

from collections.abc import Callable

from torch import Tensor

from regard.models.pretrained.architecture import DecoderArchitecture
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.families import Family, Source, Sources, linear


def _architecture(checkpoint: Checkpoint) -> DecoderArchitecture:
    config = checkpoint.config
    config.refuse("scale_attn_weights", True)
    config.refuse("scale_attn_by_inverse_layer_idx", False)
    config.refuse("add_cross_attention", False)
    width, heads = config.size("n_embd"), config.size("n_head")
    return DecoderArchitecture(
        family=config.family,
        vocabulary=config.size("vocab_size"),
        positions=config.size("n_positions"),
        width=width,
        layers=config.size("n_layer"),
        heads=heads,
        key_heads=heads,
        head_size=config.head_size(width, heads),
        feed_forward=config.size("n_inner", 4 * width),
        activation=config.activation("activation_function", "gelu_new"),
        epsilon=config.number("layer_norm_epsilon", 1e-5),
        tied=config.flag("tie_word_embeddings", True),
    )


def _transpose(weight: Tensor) -> Tensor:
    """From [in, out], as GPT-2 stores its projections, to [out, in]."""
    return weight.t()


def _part(number: int) -> Callable[[Tensor], Tensor]:
    """The projection of queries, keys or values from that of all three."""

    def convert(tensor: Tensor) -> Tensor:
        return tensor.chunk(3, -1)[number].t() if tensor.ndim == 2 else tensor.chunk(3)[number]

    return convert


def _projection(ours: str, theirs: str) -> Sources:
    return {
        f"{ours}.weight": Source((f"{theirs}.weight",), _transpose),
        f"{ours}.bias": Source((f"{theirs}.bias",)),
    }


def _sources(architecture: DecoderArchitecture) -> Sources:
    sources: Sources = {
        "embedding.words.weight": Source(("wte.weight",), vocabulary=True),
        "embedding.places.weight": Source(("wpe.weight",)),
        "words.weight": Source(("lm_head.weight",), vocabulary=True),
        **linear("body.stack.norm", "ln_f"),
    }
    for layer in range(architecture.layers):
        ours, theirs = f"body.stack.blocks.{layer}", f"h.{layer}"
        for number, name in enumerate(("query", "key", "value")):
            for part in ("weight", "bias"):
                sources[f"{ours}.own.{name}.{part}"] = Source(
                    (f"{theirs}.attn.c_attn.{part}",), _part(number)
                )
        sources |= {
            **_projection(f"{ours}.own.output", f"{theirs}.attn.c_proj"),
            **linear(f"{ours}.own_norm", f"{theirs}.ln_1"),
            **_projection(f"{ours}.feed_forward.0", f"{theirs}.mlp.c_fc"),
            **_projection(f"{ours}.feed_forward.3", f"{theirs}.mlp.c_proj"),
            **linear(f"{ours}.feed_norm", f"{theirs}.ln_2"),
        }
    return sources


FAMILY = Family(
    "gpt2",
    "transformer.",
    _architecture,
    _sources,
    tasks={"GPT2LMHeadModel": "language", "GPT2Model": "language"},
)
