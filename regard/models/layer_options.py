"""The record of options that encoders, decoders and causal networks are built from."""

from dataclasses import dataclass

from regard.attention.normalizers import Normalizer
from regard.attention.scores import Score


@dataclass(frozen=True)
class LayerOptions:
    """Sizes and choices of a part of a model; each part uses those that it needs."""

    width: int
    """Size of the vectors that come in."""
    hidden: int | None = None
    """Size of a recurrent state in each direction (default: width)."""
    cell: str = "gru"
    """Recurrent cell: elman, gru or lstm."""
    layers: int = 1
    """Number of layers."""
    heads: int = 4
    """Number of attention heads."""
    feed_forward: int | None = None
    """Hidden size of the feed-forward networks of a transformer (default: 4 · width)."""
    norm: str = "pre"
    """Layer normalization of a transformer: pre or post."""
    dropout: float = 0.0
    """Proportion of features that are dropped in training."""
    score: str | Score | None = None
    """Attention score (default: the part's own); a recurrent decoder knows "none" too."""
    normalize: str | Normalizer = "softmax"
    """Normalizer of the attention weights."""
    experts: int = 0
    """Number of experts that replace each feed-forward network."""
    top_k: int | None = None
    """Number of experts that process each vector (default: all)."""
    max_keys: int = 1024
    """Maximum length of a sequence, for scores that have weights for each position."""
    causal: bool = False
    """Whether a position may depend on earlier ones only, as in a language model."""
