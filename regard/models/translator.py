"""The translator: an encoder, a decoder, and attention between them."""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.scores import Score
from regard.errors import unknown
from regard.models.decoders import (
    RecurrentDecoder,
    RecurrentState,
    TransformerDecoder,
    TransformerState,
)
from regard.models.embedding import Embedding, Unembedding
from regard.models.encoders import Context, encoder
from regard.models.output import Output, Weights, total
from regard.models.stack import Stack

MODELS = ("recurrent", "transformer")
State = RecurrentState | TransformerState


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
    order: str = "luong"
    """bahdanau: look, then step; luong: step, then look."""
    input_feeding: bool | None = None
    """Feed the attentional state into the next step; yes in Luong's order unless said."""
    local: str = "none"
    """Luong's local attention: m or p."""
    local_width: int = 5
    """How far local attention looks on each side."""
    width: int = 256
    """Size of word vectors and states."""
    layers: int | None = None
    """Layers of encoder and decoder; 3 in a transformer unless said. A recurrent encoder has 1
    unless said, and a recurrent decoder always."""
    heads: int = 4
    """Heads of a transformer."""
    feed_forward: int | None = None
    """Hidden size of its feed-forward network; twice the width unless said."""
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
    """Reads a source, writes a target, and says where it looked.

    Weights are called encoder.0.self, decoder.0.self, decoder.0.source and so on in a transformer,
    and source in a recurrent decoder.
    """

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
        if decoder_kind == "transformer" and config.attention == "none" and score is None:
            raise ValueError("a transformer cannot do without attention: choose a score")
        width = config.width
        self.source = _embedding(config, source_words, encoder_kind)
        self.target = _embedding(config, target_words, decoder_kind)
        self.encoder = encoder(
            encoder_kind,
            width,
            # both directions together are as wide as the decoder's state, so that every score fits
            hidden=width // 2,
            cell=config.cell,
            layers=_layers(config, encoder_kind),
            heads=config.heads,
            feed_forward=config.feed_forward or 2 * width,
            norm=config.norm,
            dropout=config.dropout,
            score=_transformer_score(config, score),
            normalize=config.normalize,
            experts=config.experts,
            top_k=config.top_k,
            max_keys=config.max_length,
        )
        self.decoder = _decoder(decoder_kind, config, self.encoder.size, score)
        self.words = Unembedding(width, target_words, self.target if config.tied else None)

    def encode(
        self, source: Int[Tensor, "b k"], lengths: Int[Tensor, "b"], *, need_weights: bool = False
    ) -> Context:
        """The source in context."""
        context: Context = self.encoder(self.source(source), lengths, need_weights=need_weights)
        return context

    def forward(
        self,
        source: Int[Tensor, "b k"],
        source_lengths: Int[Tensor, "b"],
        target: Int[Tensor, "b t"],
        target_lengths: Int[Tensor, "b"] | None = None,
        *,
        need_weights: bool = False,
    ) -> Output:
        """Logits of each next word, given the words before it; `target` begins with the start.

        Without `target_lengths` the logits are the same, but padding counts in the balance of
        experts.
        """
        context = self.encode(source, source_lengths, need_weights=need_weights)
        vectors = self.target(target)
        decoded = self.decoder(vectors, context, target_lengths, need_weights=need_weights)
        return Output(
            self.words(decoded.states),
            context.weights | decoded.weights,
            total([context.balance, decoded.balance]),
        )

    def start(self, context: Context) -> State:
        """The state before the first word, for `step`; its `source` is the same at every step."""
        return self.decoder.start(context)

    def step(
        self,
        words: Int[Tensor, "n"],
        state: State,
        *,
        look: Bool[Tensor, "n k"] | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "n v"], State, Weights]:
        """Log-probabilities of the next word, the state after it, and looks [n, h, k]."""
        vectors = self.target(words[:, None], offset=state.position)[:, 0]
        # each decoder is given the state that its own start has made
        states, state, weights = self.decoder.step(
            vectors,
            state,  # type: ignore[arg-type]
            look=look,
            need_weights=need_weights,
        )
        one_query = {name: tensor.squeeze(2) for name, tensor in weights.items()}
        return self.words(states).log_softmax(-1), state, one_query


def _embedding(config: TranslatorConfig, words: int, kind: str) -> Embedding:
    return Embedding(
        words,
        config.width,
        positions="sinusoids" if kind == "transformer" else "none",
        dropout=config.dropout,
        max_length=config.max_length,
    )


def _decoder(
    kind: str, config: TranslatorConfig, memory_size: int, score: Score | None
) -> RecurrentDecoder | TransformerDecoder:
    if kind == "recurrent":
        return RecurrentDecoder(
            config.width,
            config.width,
            memory_size,
            cell=config.cell,
            score=score or config.attention or "additive",
            normalize=config.normalize,
            order=config.order,
            input_feeding=(
                config.order == "luong" if config.input_feeding is None else config.input_feeding
            ),
            local=config.local,
            local_width=config.local_width,
            dropout=config.dropout,
            max_keys=config.max_length,
        )
    stack = Stack(
        config.width,
        _layers(config, kind),
        source_width=memory_size,
        heads=config.heads,
        hidden=config.feed_forward or 2 * config.width,
        norm=config.norm,
        dropout=config.dropout,
        score=_transformer_score(config, score),
        normalize=config.normalize,
        experts=config.experts,
        top_k=config.top_k,
        max_keys=config.max_length,
    )
    return TransformerDecoder(stack)


def _known(what: str, kind: str) -> str:
    if kind not in MODELS:
        raise ValueError(unknown(what, kind, MODELS))
    return kind


def _layers(config: TranslatorConfig, kind: str) -> int:
    return config.layers or (1 if kind == "recurrent" else 3)


def _transformer_score(config: TranslatorConfig, score: Score | None) -> str | Score:
    """In a hybrid without attention in its recurrent half, the transformer half keeps its own."""
    return score or ("scaled_dot" if config.attention in (None, "none") else config.attention)
