"""The classifier: words, perhaps in context, pooled into one vector, and a linear layer.

N-grams of words may vote beside it, by naive Bayes.
"""

from dataclasses import replace

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.scores import Score
from regard.layers import Experts, NaiveBayes, NGramEvidence, Pooling
from regard.layers.dropout import Dropout
from regard.models.embedding import Embedding, input_layer
from regard.models.encoders import SelfAttentionEncoder, make_encoder, position_encoding
from regard.models.layer_options import LayerOptions
from regard.models.model_configs import ClassifierConfig
from regard.models.model_options import (
    part_class,
)
from regard.models.model_tables import ENCODERS
from regard.models.output import Output, Weights, sum_losses


class Classifier(nn.Module):
    """Reads a text, or a sequence of vectors, and returns a logit for each class.

    Weights are called encoder.0.self and so on, pooling.self, pooling ([b, n, 1, t], one head per
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
        evidence: NGramEvidence | None = None,
    ) -> None:
        """Build it.

        Args:
            config: its architecture.
            words: number of words, or None for vector inputs.
            labels: number of classes.
            features: size of the vectors, for vector inputs.
            score: a callable where the config can only name one.
            evidence: counted n-grams, whose votes are added to the logits.
        """
        super().__init__()
        options = _layer_options(config, score)
        bags = _reads_bags(config) and features is None
        self.inputs = input_layer(
            words,
            features,
            config.width,
            size=config.word_size,
            positions=position_encoding(part_class(ENCODERS, config.encoder)),
            dropout=0.0 if bags else config.dropout,
            max_length=config.max_length,
        )
        if isinstance(self.inputs, Embedding):
            self.inputs.lazy = bags
        self.encoder = make_encoder(config.encoder, options)
        own = config.pooling == "self"
        self.attention = (
            SelfAttentionEncoder(replace(options, width=self.encoder.size), name="pooling.self")
            if own
            else None
        )
        self.pooling = Pooling(
            self.encoder.size,
            "mean" if own else config.pooling,
            queries=config.queries,
            score=options.score,
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
        self.naive_bayes = None if evidence is None else NaiveBayes(evidence)

    def forward(
        self,
        words: Int[Tensor, "b t"] | Float[Tensor, "b t f"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
        votes: bool = True,
    ) -> Output:
        """Logits [b, classes], with the votes of n-grams or without."""
        if not need_weights and self._can_pool_at_once():
            assert isinstance(self.inputs, Embedding)
            pooled = self.inputs.bag(words, lengths, self.pooling.kind)
            return self._decide(pooled, {}, None, words, lengths, votes=votes)
        context = self.encoder(self.inputs(words), lengths, need_weights=need_weights)
        states, weights, balance = context.states, dict(context.weights), context.balance
        if self.attention is not None:
            attended = self.attention(states, lengths, need_weights=need_weights)
            states = attended.states
            weights |= attended.weights
        pooling = self.pooling(states, masks.lengths(lengths))
        if need_weights:
            weights["pooling"] = pooling.weights[:, :, None]
        return self._decide(pooling.output, weights, balance, words, lengths, votes=votes)

    def _can_pool_at_once(self) -> bool:
        """Whether texts are bags of words, and nobody watches or changes what happens in between.

        Its plain twin is the way over `encoder` and `pooling`.
        """
        parts = (self.inputs, self.encoder, self.pooling)
        layers = (layer for part in parts for layer in part.modules())
        hooked = any(layer._forward_hooks or layer._forward_pre_hooks for layer in layers)
        lazy = isinstance(self.inputs, Embedding) and self.inputs.lazy
        return lazy and not hooked and self.pooling.is_plain

    def _decide(
        self,
        pooled: Float[Tensor, "b p"],
        weights: Weights,
        balance: Tensor | None,
        words: Tensor,
        lengths: Int[Tensor, "b"],
        *,
        votes: bool,
    ) -> Output:
        """The output for pooled vectors; `weights` are those so far, none if not requested."""
        logits = self.decision(self.dropout(pooled))
        if isinstance(self.decision, Experts):
            logits, shares, decision_balance = logits
            balance = sum_losses([balance, decision_balance])
            if weights:
                weights["experts"] = shares[:, None, None]
        if votes and self.naive_bayes is not None:
            voted = self.naive_bayes(words, lengths)
            logits = logits * self.naive_bayes.network_weight + voted
        return Output(logits, weights, balance)


def _reads_bags(config: ClassifierConfig) -> bool:
    """Whether a text is the sum or mean of the vectors of its words."""
    return config.encoder == "none" and config.pooling in ("sum", "mean")


def _layer_options(config: ClassifierConfig, score: Score | None) -> LayerOptions:
    return LayerOptions(
        config.width,
        cell=config.cell,
        layers=config.layers,
        heads=config.heads,
        feed_forward=config.feed_forward,
        dropout=config.dropout,
        score=score or config.attention,
        normalize=config.normalize,
        experts=config.experts,
        top_k=config.top_k,
        max_keys=config.max_length,
    )
