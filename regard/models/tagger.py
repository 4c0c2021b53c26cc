"""The tagger: a label for each word, from the word, its characters and its context."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.scores import Score
from regard.layers import CRF
from regard.layers.dropout import Dropout
from regard.models.embedding import inputs
from regard.models.encoders import encoder, real_places
from regard.models.output import Output
from regard.models.spelling import CharacterFeatures, Ngrams


@dataclass(frozen=True)
class TaggerConfig:
    """How a tagger is built."""

    encoder: str = "recurrent"
    """What gives words their context: none, self, recurrent or transformer."""
    attention: str = "scaled_dot"
    """The score of self-attention."""
    normalize: str = "softmax"
    """The normalizer of the weights."""
    cell: str = "lstm"
    """elman, gru or lstm, where it is recurrent."""
    width: int = 160
    """Size of word vectors; states of a recurrent encoder have it in each direction."""
    word_size: int | None = None
    """Size of the vectors in the table of words, if another: that of word vectors from a file."""
    characters: int = 32
    """Size of the vectors of characters; 0 for words alone."""
    character_features: int = 64
    """How many features the characters of a word give."""
    ngrams: int = 96
    """Size of the vectors of n-grams of characters, which words that are spelt alike share; 0 for
    none."""
    layers: int = 2
    """Layers of the encoder."""
    heads: int = 4
    """Heads of self-attention."""
    feed_forward: int | None = None
    """Hidden size of a transformer's feed-forward network."""
    experts: int = 0
    """Experts in a transformer."""
    top_k: int | None = None
    """How many experts see a word."""
    crf: bool = True
    """Choose the labels of a sentence together rather than each for itself."""
    dropout: float = 0.5
    """Share of features dropped in training."""
    max_length: int = 1024
    """How many words attention by location knows."""


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
        """Build it; `allowed` says which label may follow which, where a scheme such as BIO does.

        Args:
            config: how it is built.
            words: number of words, or None where vectors come in.
            labels: number of labels.
            characters: number of characters; 0 where words are not spelt.
            features: size of vectors that come instead of words.
            score: a callable where the config can only name one.
            allowed: True where the second label may follow the first.
            allowed_start: True where a label may begin a sentence.
        """
        super().__init__()
        self.inputs = inputs(
            words,
            features,
            config.width,
            size=config.word_size,
            positions="sinusoids" if config.encoder == "transformer" else "none",
            dropout=config.dropout,
            max_length=config.max_length,
        )
        spelt = bool(characters and config.characters)
        self.characters = (
            CharacterFeatures(
                characters, config.characters, config.character_features, config.dropout
            )
            if spelt
            else None
        )
        self.ngrams = (
            # what n-grams are left is dropped less: together they say much of the word
            Ngrams(config.ngrams, forget=config.dropout, dropout=0.6 * config.dropout)
            if spelt and config.ngrams
            else None
        )
        size = config.width + config.character_features + config.ngrams
        self.join = nn.Linear(size, config.width) if spelt else None
        self.encoder = encoder(
            config.encoder,
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
        """Logits [b, t, labels], each word's own; `crf` scores and decodes whole sentences."""
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
        """Negative log-likelihood of the tags, a word.

        Smoothing s makes of it (1 − s) · −log p(tags) + s · −mean log softmax(logits), which is
        label smoothing where each word is tagged for itself; a CRF, whose whole sentences cannot
        be smoothed so, takes the second part for its emissions.
        """
        words = lengths.sum().clamp(min=1)
        real = real_places(tags.shape[1], lengths)
        if self.crf is not None:
            loss: Tensor = -self.crf(logits, tags, lengths).sum()
        else:
            loss = nn.functional.cross_entropy(logits[real], tags[real], reduction="sum")
        if smoothing:
            spread = -logits[real].log_softmax(-1).mean(-1).sum()
            loss = (1 - smoothing) * loss + smoothing * spread
        return loss / words

    def decode(self, logits: Float[Tensor, "b t l"], lengths: Int[Tensor, "b"]) -> list[list[int]]:
        """The best labels of each sentence."""
        if self.crf is not None:
            return self.crf.decode(logits, lengths).tags
        best = logits.argmax(-1).tolist()
        return [row[:n] for row, n in zip(best, lengths.tolist(), strict=True)]

    def probabilities(
        self, logits: Float[Tensor, "b t l"], lengths: Int[Tensor, "b"]
    ) -> Float[Tensor, "b t l"]:
        """p(label) of each word: the marginals of the CRF, or the softmax without one."""
        if self.crf is not None:
            return self.crf.marginals(logits, lengths)
        return logits.softmax(-1)
