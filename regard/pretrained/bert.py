"""BERT, and what has its architecture: MiniLM and most sentence-transformers.

Devlin et al., 2019, https://arxiv.org/abs/1810.04805
"""

from torch import Tensor

from regard.models.pretrained.architecture import EncoderArchitecture
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.families import Family, Source, Sources, linear


def bert_architecture(checkpoint: Checkpoint) -> EncoderArchitecture:
    """Sizes and choices from a config of BERT or of a model that names them as BERT does."""
    config = checkpoint.config
    config.refuse("position_embedding_type", "absolute")
    config.refuse("is_decoder", False)
    return EncoderArchitecture(
        family=config.family,
        vocabulary=config.size("vocab_size"),
        positions=config.size("max_position_embeddings"),
        width=config.size("hidden_size"),
        layers=config.size("num_hidden_layers"),
        heads=config.size("num_attention_heads"),
        feed_forward=config.size("intermediate_size"),
        word_size=config.size("embedding_size", config.size("hidden_size")),
        activation=config.activation("hidden_act"),
        epsilon=config.number("layer_norm_eps", 1e-12),
        pooling=checkpoint.pooling,
        dense="none" if checkpoint.pooling == "mean" else "tanh",
    )


def add_first_type(positions: Tensor, types: Tensor) -> Tensor:
    """Positions of a single text, in which every token is of the first type."""
    if positions.shape[1:] != types.shape[1:]:  # else addition would repeat numbers
        raise RuntimeError("positions and types have different sizes")
    return positions + types[0]


def bert_embeddings(*, first_position: int = 0) -> Sources:
    """Word vectors, positions from the given one on, and their layer norm."""

    def places(positions: Tensor, types: Tensor) -> Tensor:
        return add_first_type(positions[first_position:], types)

    return {
        "inputs.words.weight": Source(("embeddings.word_embeddings.weight",), vocabulary=True),
        "inputs.places.weight": Source(
            ("embeddings.position_embeddings.weight", "embeddings.token_type_embeddings.weight"),
            places,
        ),
        **linear("inputs.norm", "embeddings.LayerNorm"),
    }


def bert_blocks(architecture: EncoderArchitecture) -> Sources:
    """The weights of all blocks."""
    sources: Sources = {}
    for layer in range(architecture.layers):
        ours, theirs = f"encoder.stack.blocks.{layer}", f"encoder.layer.{layer}"
        sources |= {
            **linear(f"{ours}.own.query", f"{theirs}.attention.self.query"),
            **linear(f"{ours}.own.key", f"{theirs}.attention.self.key"),
            **linear(f"{ours}.own.value", f"{theirs}.attention.self.value"),
            **linear(f"{ours}.own.output", f"{theirs}.attention.output.dense"),
            **linear(f"{ours}.own_norm", f"{theirs}.attention.output.LayerNorm"),
            **linear(f"{ours}.feed_forward.0", f"{theirs}.intermediate.dense"),
            **linear(f"{ours}.feed_forward.3", f"{theirs}.output.dense"),
            **linear(f"{ours}.feed_norm", f"{theirs}.output.LayerNorm"),
        }
    return sources


def _encoder(architecture: EncoderArchitecture) -> Sources:
    return {**bert_embeddings(), **bert_blocks(architecture)}


def _text_head() -> Sources:
    return {
        **linear("dense", "bert.pooler.dense", optional=True),
        **linear("decision", "classifier"),
    }


def token_head() -> Sources:
    """The decision on each token, the same in all families."""
    return linear("decision", "classifier")


FAMILY = Family(
    "bert",
    "bert.",
    bert_architecture,
    _encoder,
    _text_head,
    token_head,
    tasks={"BertForSequenceClassification": "classify", "BertForTokenClassification": "tag"},
    headless=("BertModel", "BertForMaskedLM", "BertForPreTraining"),
)
