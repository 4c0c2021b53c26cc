"""The classifier: words, perhaps in context, pooled into one vector, and a linear layer."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers import Experts, Pooling
from regard.models.embedding import Embedding
from regard.models.encoders import (
    ContextEncoder,
    NoContext,
    RecurrentContext,
    SelfContext,
    TransformerContext,
)
from regard.models.output import Output

ENCODERS = ("none", "self", "recurrent", "transformer")
POOLINGS = ("sum", "mean", "max", "weighted", "fixed", "self")


@dataclass(frozen=True)
class ClassifierConfig:
    """How a classifier is built."""

    pooling: str = "weighted"
    """sum, mean, max, weighted, fixed, or self (self-attention, then the mean)."""
    queries: int = 1
    """How many fixed queries."""
    attention: str | None = None
    """The score of pooling and of self-attention; each has its own default."""
    normalize: str = "softmax"
    """The normalizer of the weights."""
    encoder: str = "recurrent"
    """What gives words their context before pooling: none, self, recurrent or transformer."""
    cell: str = "gru"
    """elman, gru or lstm, where it is recurrent."""
    width: int = 128
    """Size of word vectors and states."""
    layers: int = 1
    """Layers of the encoder."""
    heads: int = 4
    """Heads of self-attention."""
    feed_forward: int | None = None
    """Hidden size of a transformer's feed-forward network."""
    experts: int = 0
    """Experts that share the last decision; also those of a transformer encoder."""
    top_k: int | None = None
    """How many experts decide; all unless said."""
    dropout: float = 0.5
    """Share of features dropped in training."""
    several: bool = False
    """Several labels may hold at once."""
    max_length: int = 1024
    """The longest text, in tokens."""


class Classifier(nn.Module):
    """Reads a text, or a sequence of vectors, and says how much it is of each class."""

    def __init__(
        self,
        config: ClassifierConfig,
        words: int | None,
        labels: int,
        *,
        features: int | None = None,
        score: Score | None = None,
    ) -> None:
        """Build it for so many words, or for vectors of so many features."""
        super().__init__()
        if config.pooling not in POOLINGS:
            raise ValueError(unknown("pooling", config.pooling, POOLINGS))
        width = config.width
        self.inputs = inputs(words, features, config)
        attention = score or config.attention
        kind = "self" if config.pooling == "self" and config.encoder == "none" else config.encoder
        self.encoder = encoder(kind, config, attention)
        self.dropout = nn.Dropout(config.dropout)
        self.pooling = Pooling(
            self.encoder.size,
            "mean" if config.pooling == "self" else config.pooling,
            queries=config.queries,
            score=attention if config.pooling in ("weighted", "fixed") else None,
            normalize=config.normalize,
            max_keys=config.max_length,
        )
        size = self.pooling.size
        self.mixture = (
            Experts(size, width, config.experts, output_size=labels, top_k=config.top_k)
            if config.experts
            else None
        )
        self.decision = None if config.experts else nn.Linear(size, labels)

    def forward(
        self,
        words: Int[Tensor, "b t"] | Float[Tensor, "b t f"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Output:
        """Logits [b, classes]."""
        context = self.encoder(self.inputs(words), lengths, need_weights=need_weights)
        pooled = self.pooling(context.states, masks.lengths(lengths))
        weights = dict(context.weights)
        if need_weights:
            weights["pooling"] = pooled.weights[:, :, None]
        summary = self.dropout(pooled.output)
        if self.decision is not None:
            return Output(self.decision(summary), weights, context.balance)
        assert self.mixture is not None  # one of both is there
        mixed = self.mixture(summary)
        if need_weights:
            weights["experts"] = mixed.weights[:, None, None]
        balance = mixed.balance if context.balance is None else mixed.balance + context.balance
        return Output(mixed.output, weights, balance)


class Vectors(nn.Module):
    """Vectors that come as they are — frames, features — brought to the model's width."""

    def __init__(self, features: int, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.project = nn.Linear(features, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Float[Tensor, "b t f"]) -> Float[Tensor, "b t w"]:
        """Projected vectors."""
        return self.dropout(self.project(vectors))


def inputs(words: int | None, features: int | None, config: "ClassifierConfig") -> nn.Module:
    """The first layer: a table of words, or a projection of vectors."""
    if (words is None) == (features is None):
        raise ValueError(f"give either words or features; got {words} and {features}")
    if features is not None:
        return Vectors(features, config.width, config.dropout)
    assert words is not None
    positions = "sinusoids" if config.encoder == "transformer" else "none"
    return Embedding(
        words,
        config.width,
        positions=positions,
        dropout=config.dropout,
        max_length=config.max_length,
    )


def encoder(kind: str, config: "ClassifierConfig", score: str | Score | None) -> ContextEncoder:
    """What gives words their context."""
    if kind not in ENCODERS:
        raise ValueError(unknown("encoder", kind, ENCODERS))
    options = {"normalize": config.normalize, "max_keys": config.max_length}
    if kind == "recurrent":
        return RecurrentContext(
            config.width,
            config.width,
            cell=config.cell,
            layers=config.layers,
            dropout=config.dropout,
        )
    if kind == "self":
        return SelfContext(
            config.width,
            heads=config.heads,
            dropout=config.dropout,
            score=score or "scaled_dot",
            **options,
        )
    if kind == "transformer":
        return TransformerContext(
            config.width,
            layers=config.layers,
            heads=config.heads,
            hidden=config.feed_forward,
            dropout=config.dropout,
            score=score or "scaled_dot",
            experts=config.experts,
            top_k=config.top_k,
            **options,
        )
    return NoContext(config.width)
