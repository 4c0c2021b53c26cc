"""The classifier: words, perhaps in context, pooled into one vector, and a linear layer."""

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers import Experts, Pooling
from regard.layers.dropout import Dropout
from regard.models.embedding import inputs
from regard.models.encoders import SelfContext, encoder
from regard.models.output import Output, total

POOLINGS = ("sum", "mean", "max", "weighted", "fixed", "self")


@dataclass(frozen=True)
class ClassifierConfig:
    """How a classifier is built."""

    pooling: str = "weighted"
    """sum, mean, max, weighted, fixed, or self (a layer of self-attention, then the mean)."""
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
    """Size of word vectors, and of states in each direction."""
    word_size: int | None = None
    """Size of the vectors in the table of words, if another: that of word vectors from a file."""
    layers: int = 1
    """Layers of the encoder."""
    heads: int = 4
    """Heads of self-attention."""
    feed_forward: int | None = None
    """Hidden size of a transformer's feed-forward network."""
    experts: int = 0
    """Experts that share the last decision, a gate weighing them; also in each block of a
    transformer encoder."""
    top_k: int | None = None
    """How many experts decide; all unless said."""
    dropout: float = 0.5
    """Share of features dropped in training."""
    max_length: int = 1024
    """The longest text, in tokens."""


class Classifier(nn.Module):
    """Reads a text, or a sequence of vectors, and says how much it is of each class.

    Weights are called encoder.0.self and so on, pooling.self, pooling ([b, n, 1, t], a head each
    query) and experts.
    """

    def __init__(
        self,
        config: ClassifierConfig,
        words: int | None,
        labels: int,
        *,
        features: int | None = None,
        score: Score | None = None,
    ) -> None:
        """Build it.

        Args:
            config: how it is built.
            words: number of words, or None where vectors come in.
            labels: number of classes.
            features: size of vectors that come instead of words.
            score: a callable where the config can only name one.
        """
        super().__init__()
        if config.pooling not in POOLINGS:
            raise ValueError(unknown("pooling", config.pooling, POOLINGS))
        attention = score or config.attention
        self.inputs = inputs(
            words,
            features,
            config.width,
            size=config.word_size,
            positions="sinusoids" if config.encoder == "transformer" else "none",
            dropout=config.dropout,
            max_length=config.max_length,
        )
        self.encoder = encoder(
            config.encoder,
            config.width,
            cell=config.cell,
            layers=config.layers,
            heads=config.heads,
            feed_forward=config.feed_forward,
            dropout=config.dropout,
            score=attention or "scaled_dot",
            normalize=config.normalize,
            experts=config.experts,
            top_k=config.top_k,
            max_keys=config.max_length,
        )
        own = config.pooling == "self"
        self.attention = (
            SelfContext(
                self.encoder.size,
                heads=config.heads,
                dropout=config.dropout,
                score=attention or "scaled_dot",
                normalize=config.normalize,
                max_keys=config.max_length,
                name="pooling.self",
            )
            if own
            else None
        )
        self.pooling = Pooling(
            self.encoder.size,
            "mean" if own else config.pooling,
            queries=config.queries,
            score=attention,
            normalize=config.normalize,
            max_keys=config.max_length,
        )
        self.dropout = Dropout(config.dropout)
        size = self.pooling.size
        self.decision = (
            Experts(size, config.width, config.experts, output_size=labels, top_k=config.top_k)
            if config.experts
            else nn.Linear(size, labels)
        )

    def forward(
        self,
        words: Int[Tensor, "b t"] | Float[Tensor, "b t f"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Output:
        """Logits [b, classes]."""
        context = self.encoder(self.inputs(words), lengths, need_weights=need_weights)
        states, weights, balance = context.states, dict(context.weights), context.balance
        if self.attention is not None:
            looked = self.attention(states, lengths, need_weights=need_weights)
            states = looked.states
            weights |= looked.weights
        pooled = self.pooling(states, masks.lengths(lengths))
        if need_weights:
            weights["pooling"] = pooled.weights[:, :, None]
        logits = self.decision(self.dropout(pooled.output))
        if isinstance(self.decision, Experts):
            logits, heard, uneven = logits
            balance = total([balance, uneven])
            if need_weights:
                weights["experts"] = heard[:, None, None]
        return Output(logits, weights, balance)
