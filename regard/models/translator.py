"""The translator: an encoder, a decoder, and attention between them."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.scores import Score
from regard.errors import unknown
from regard.models.decoders import RecurrentDecoder, TransformerDecoder
from regard.models.embedding import Embedding, Unembedding
from regard.models.encoders import Context, RecurrentContext, TransformerContext
from regard.models.output import Output, Weights

MODELS = ("recurrent", "transformer")
ORDERS = ("bahdanau", "luong")


@dataclass(frozen=True)
class TranslatorConfig:
    """How a translator is built."""

    model: str = "recurrent"
    """recurrent or transformer."""
    encoder: str | None = None
    """Another kind of encoder than `model`."""
    decoder: str | None = None
    """Another kind of decoder than `model`."""
    cell: str = "gru"
    """elman, gru or lstm, where it is recurrent."""
    attention: str | None = None
    """The score: additive, bilinear, dot, scaled_dot, …, or none (recurrent only).

    additive for a recurrent decoder and scaled_dot for a transformer unless said.
    """
    normalize: str = "softmax"
    """The normalizer of the weights."""
    order: str = "bahdanau"
    """bahdanau: look, then step; luong: step, then look."""
    input_feeding: bool = False
    """Feed the attentional state into the next step."""
    local: str = "none"
    """Luong's local attention: m or p."""
    local_width: int = 5
    """How far local attention looks on each side."""
    width: int = 256
    """Size of word vectors and states."""
    layers: int | None = None
    """Layers of encoder and decoder; 1 where recurrent and 3 in a transformer unless said."""
    heads: int = 4
    """Heads of a transformer."""
    feed_forward: int | None = None
    """Hidden size of its feed-forward network; four times the width unless said."""
    experts: int = 0
    """Experts instead of one feed-forward network."""
    top_k: int | None = None
    """How many experts see a word; all unless said."""
    norm: str = "pre"
    """Layer norm pre or post each part."""
    dropout: float = 0.3
    """Share of features dropped in training."""
    tied: bool = True
    """Target words have one table, coming in and going out."""
    max_length: int = 1024
    """The longest sentence, in tokens."""


class Translator(nn.Module):
    """Reads a source, writes a target, and says where it looked."""

    def __init__(
        self,
        config: TranslatorConfig,
        source_words: int,
        target_words: int,
        *,
        score: Score | None = None,
    ) -> None:
        """Build it; `score` takes a callable where the config can only name one."""
        super().__init__()
        encoder_kind = _known("encoder", config.encoder or config.model)
        decoder_kind = _known("decoder", config.decoder or config.model)
        if config.order not in ORDERS:
            raise ValueError(unknown("order", config.order, ORDERS))
        if decoder_kind == "transformer" and config.attention == "none":
            raise ValueError("a transformer cannot do without attention: choose a score")
        width = config.width
        self.source = self._embedding(config, source_words, encoder_kind)
        self.target = self._embedding(config, target_words, decoder_kind)
        self.encoder: RecurrentContext | TransformerContext
        self.decoder: RecurrentDecoder | TransformerDecoder
        if encoder_kind == "recurrent":
            # both directions together are as wide as the decoder's state, so that every score fits
            self.encoder = RecurrentContext(
                width,
                width // 2,
                cell=config.cell,
                layers=config.layers or 1,
                dropout=config.dropout,
            )
        else:
            self.encoder = TransformerContext(
                width,
                layers=config.layers or 3,
                heads=config.heads,
                hidden=config.feed_forward,
                dropout=config.dropout,
                norm=config.norm,
                normalize=config.normalize,
                experts=config.experts,
                top_k=config.top_k,
                max_keys=config.max_length,
                score=_transformer_score(score, config.attention),
            )
        if decoder_kind == "recurrent":
            self.decoder = RecurrentDecoder(
                width,
                width,
                self.encoder.size,
                cell=config.cell,
                score=score or config.attention or "additive",
                normalize=config.normalize,
                order=config.order,
                input_feeding=config.input_feeding,
                local=config.local,
                local_width=config.local_width,
                dropout=config.dropout,
                max_keys=config.max_length,
            )
        else:
            self.decoder = TransformerDecoder(
                width,
                self.encoder.size,
                layers=config.layers or 3,
                heads=config.heads,
                hidden=config.feed_forward,
                dropout=config.dropout,
                norm=config.norm,
                normalize=config.normalize,
                experts=config.experts,
                top_k=config.top_k,
                max_keys=config.max_length,
                score=_transformer_score(score, config.attention),
            )
        self.words = Unembedding(width, target_words, self.target if config.tied else None)

    @staticmethod
    def _embedding(config: TranslatorConfig, words: int, kind: str) -> Embedding:
        return Embedding(
            words,
            config.width,
            dropout=config.dropout,
            max_length=config.max_length,
            positions="sinusoids" if kind == "transformer" else "none",
        )

    def encode(
        self, source: Int[Tensor, "b k"], lengths: Int[Tensor, "b"], *, need_weights: bool = False
    ) -> Context:
        """The source in context."""
        return self.encoder(self.source(source), lengths, need_weights=need_weights)

    def forward(
        self,
        source: Int[Tensor, "b k"],
        source_lengths: Int[Tensor, "b"],
        target: Int[Tensor, "b t"],
        *,
        need_weights: bool = False,
    ) -> Output:
        """Logits of each next word, given the words before it; `target` begins with the start."""
        context = self.encode(source, source_lengths, need_weights=need_weights)
        decoded = self.decoder(self.target(target), context, need_weights=need_weights)
        balances = [part for part in (context.balance, decoded.balance) if part is not None]
        return Output(
            self.words(decoded.states),
            context.weights | decoded.weights,
            torch.stack(balances).sum() if balances else None,
        )

    def start(self, context: Context) -> Any:
        """The state before the first word, for `step`."""
        return self.decoder.start(context)

    def step(
        self,
        words: Int[Tensor, "n"],
        state: Any,
        *,
        look: Bool[Tensor, "n k"] | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "n v"], Any, Weights]:
        """Log-probabilities of the next word, the state after it, and where it looked."""
        vectors = self.target(words[:, None], offset=state.position)[:, 0]
        states, state, weights = self.decoder.step(
            vectors, state, look=look, need_weights=need_weights
        )
        return self.words(states).log_softmax(-1), state, _one_query(weights)


def _one_query(weights: Weights) -> Weights:
    """[n, h, 1, k] of a single step as [n, h, k], which a search joins along time."""
    return {name: tensor.squeeze(2) for name, tensor in weights.items()}


def _known(what: str, kind: str) -> str:
    if kind not in MODELS:
        raise ValueError(unknown(what, kind, MODELS))
    return kind


def _transformer_score(score: Score | None, name: str | None) -> str | Score:
    """In a hybrid without attention in its recurrent half, the transformer half keeps its own."""
    return score or ("scaled_dot" if name in (None, "none") else name)
