"""DistilBERT: BERT with half of its layers and without token types. Sanh et al., 2019,
https://arxiv.org/abs/1910.01108"""

from regard.models.pretrained.architecture import EncoderArchitecture
from regard.pretrained.bert import token_head
from regard.pretrained.checkpoint import Checkpoint
from regard.pretrained.families import Family, Source, Sources, linear


def _architecture(checkpoint: Checkpoint) -> EncoderArchitecture:
    config = checkpoint.config
    return EncoderArchitecture(
        family=config.family,
        vocabulary=config.size("vocab_size"),
        positions=config.size("max_position_embeddings"),
        width=config.size("dim"),
        layers=config.size("n_layers"),
        heads=config.size("n_heads"),
        feed_forward=config.size("hidden_dim"),
        word_size=config.size("dim"),
        activation=config.activation("activation"),
        epsilon=1e-12,
        pooling=checkpoint.pooling,
        dense="none" if checkpoint.pooling == "mean" else "relu",
    )


def _encoder(architecture: EncoderArchitecture) -> Sources:
    sources = {
        "inputs.words.weight": Source(("embeddings.word_embeddings.weight",), vocabulary=True),
        "inputs.places.weight": Source(("embeddings.position_embeddings.weight",)),
        **linear("inputs.norm", "embeddings.LayerNorm"),
    }
    for layer in range(architecture.layers):
        ours, theirs = f"encoder.stack.blocks.{layer}", f"transformer.layer.{layer}"
        sources |= {
            **linear(f"{ours}.own.query", f"{theirs}.attention.q_lin"),
            **linear(f"{ours}.own.key", f"{theirs}.attention.k_lin"),
            **linear(f"{ours}.own.value", f"{theirs}.attention.v_lin"),
            **linear(f"{ours}.own.output", f"{theirs}.attention.out_lin"),
            **linear(f"{ours}.own_norm", f"{theirs}.sa_layer_norm"),
            **linear(f"{ours}.feed_forward.0", f"{theirs}.ffn.lin1"),
            **linear(f"{ours}.feed_forward.3", f"{theirs}.ffn.lin2"),
            **linear(f"{ours}.feed_norm", f"{theirs}.output_layer_norm"),
        }
    return sources


def _text_head() -> Sources:
    return {
        **linear("dense", "pre_classifier", optional=True),
        **linear("decision", "classifier"),
    }


FAMILY = Family(
    "distilbert",
    "distilbert.",
    _architecture,
    _encoder,
    _text_head,
    token_head,
    tasks={
        "DistilBertForSequenceClassification": "classify",
        "DistilBertForTokenClassification": "tag",
    },
    headless=("DistilBertModel", "DistilBertForMaskedLM"),
)
