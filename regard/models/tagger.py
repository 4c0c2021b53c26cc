"""The tagger: a label for each word, from the word, its characters and its context."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.scores import Score
from regard.layers import CRF
from regard.layers.dropout import Dropout
from regard.models.characters import CharacterFeatures, NgramVectors
from regard.models.embedding import input_layer
from regard.models.encoders import make_encoder, position_encoding, real_positions
from regard.models.layer_options import LayerOptions
from regard.models.model_configs import TaggerConfig
from regard.models.model_options import (
    part_class,
)
from regard.models.model_tables import ENCODERS
from regard.models.output import Output

DEFAULT_LAYERS = {"recurrent_self": 1}
"""Number of layers of an encoder; 2 in others."""


class Tagger(nn.Module):
    """Reads a sentence and labels each word."""

    def __init__(
        self,
        config: TaggerConfig,
        words: int | None,
        labels: int,
        *,
        characters: int = 0,
        features: int | None = None,
        score: Score | None = None,
        allowed: Bool[Tensor, "l l"] | None = None,
        allowed_start: Bool[Tensor, "l"] | None = None,
    ) -> None:
        """Build it.

        Args:
            config: its architecture.
            words: number of words, or None for vector inputs.
            labels: number of labels.
            characters: number of characters; 0 where the characters of words are not given.
            features: size of the vectors, for vector inputs.
            score: a callable where the config can only name one.
            allowed: True where the second label may follow the first, in a scheme such as BIO.
            allowed_start: True where a label may begin a sentence.
        """
        super().__init__()
        self.inputs = input_layer(
            words,
            features,
            config.width,
            size=config.word_size,
            positions=position_encoding(part_class(ENCODERS, config.encoder)),
            dropout=config.dropout,
            max_length=config.max_length,
        )
        with_characters = bool(characters and config.characters)
        self.characters = (
            CharacterFeatures(
                characters, config.characters, config.character_features, config.dropout
            )
            if with_characters
            else None
        )
        self.ngrams = (
            # n-grams that remain after word dropout are dropped less: they describe much of a word
            NgramVectors(config.ngrams, word_dropout=config.dropout, dropout=0.6 * config.dropout)
            if with_characters and config.ngrams
            else None
        )
        size = config.width + config.character_features + config.ngrams
        self.join = nn.Linear(size, config.width) if with_characters else None
        self.encoder = make_encoder(config.encoder, _layer_options(config, score))
        self.dropout = Dropout(config.dropout)
        self.decision = nn.Linear(self.encoder.size, labels)
        self.crf = CRF(labels, allowed=allowed, allowed_start=allowed_start) if config.crf else None

    def forward(
        self,
        words: Int[Tensor, "b t"] | Float[Tensor, "b t f"],
        lengths: Int[Tensor, "b"],
        characters: Int[Tensor, "b t c"] | None = None,
        *,
        need_weights: bool = False,
    ) -> Output:
        """Logits [b, t, labels] of each word by itself; the CRF decodes whole sentences."""
        vectors = self.inputs(words)
        if self.characters is not None and self.join is not None:
            if characters is None:
                raise ValueError("this tagger reads characters too: pass characters=")
            parts = [vectors, self.characters(characters)]
            if self.ngrams is not None:
                parts.append(self.ngrams(characters))
            vectors = self.join(torch.cat(parts, -1))
        context = self.encoder(vectors, lengths, need_weights=need_weights)
        logits = self.decision(self.dropout(context.states))
        return Output(logits, context.weights, context.balance)

    def loss(
        self,
        logits: Float[Tensor, "b t l"],
        tags: Int[Tensor, "b t"],
        lengths: Int[Tensor, "b"],
        smoothing: float = 0.0,
    ) -> Float[Tensor, ""]:
        """Negative log-likelihood of the tags, per word."""
        return tag_loss(self.crf, logits, tags, lengths, smoothing)

    def decode(self, logits: Float[Tensor, "b t l"], lengths: Int[Tensor, "b"]) -> list[list[int]]:
        """The best labels of each sentence."""
        return decode_tags(self.crf, logits, lengths)

    def probabilities(
        self, logits: Float[Tensor, "b t l"], lengths: Int[Tensor, "b"]
    ) -> Float[Tensor, "b t l"]:
        """p(label) of each word: the marginals of the CRF, or the softmax without one."""
        return tag_probabilities(self.crf, logits, lengths)


def tag_loss(
    crf: CRF | None,
    logits: Float[Tensor, "b t l"],
    tags: Int[Tensor, "b t"],
    lengths: Int[Tensor, "b"],
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """Negative log-likelihood of the tags, per word.

    Smoothing s makes it (1 − s) · −log p(tags) + s · −mean log softmax(logits). Without a CRF,
    this is label smoothing; with a CRF, which cannot smooth whole sentences in this way, the
    second part smooths its emissions.
    """
    words = lengths.sum().clamp(min=1)
    real = real_positions(tags.shape[1], lengths)
    if crf is not None:
        loss: Tensor = -crf(logits, tags, lengths).sum()
    else:
        loss = nn.functional.cross_entropy(logits[real], tags[real], reduction="sum")
    if smoothing:
        spread = -logits[real].log_softmax(-1).mean(-1).sum()
        loss = (1 - smoothing) * loss + smoothing * spread
    return loss / words


def decode_tags(
    crf: CRF | None, logits: Float[Tensor, "b t l"], lengths: Int[Tensor, "b"]
) -> list[list[int]]:
    """The best labels of each sentence: together with a CRF, each by itself without one."""
    if crf is not None:
        return crf.decode(logits, lengths).tags
    best = logits.argmax(-1).tolist()
    return [row[:n] for row, n in zip(best, lengths.tolist(), strict=True)]


def tag_probabilities(
    crf: CRF | None, logits: Float[Tensor, "b t l"], lengths: Int[Tensor, "b"]
) -> Float[Tensor, "b t l"]:
    """p(label) of each word: the marginals of the CRF, or the softmax without one."""
    if crf is not None:
        return crf.marginals(logits, lengths)
    return logits.softmax(-1)


def _layer_options(config: TaggerConfig, score: Score | None) -> LayerOptions:
    return LayerOptions(
        config.width,
        cell=config.cell,
        layers=config.layers or DEFAULT_LAYERS.get(config.encoder, 2),
        heads=config.heads,
        feed_forward=config.feed_forward,
        dropout=config.dropout,
        score=score or config.attention,
        normalize=config.normalize,
        experts=config.experts,
        top_k=config.top_k,
        max_keys=config.max_length,
    )
