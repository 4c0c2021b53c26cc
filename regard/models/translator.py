"""The translator: an encoder, a decoder, and attention between them."""

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.scores import Score
from regard.models.decoders import DecoderOptions
from regard.models.embedding import Embedding, Unembedding
from regard.models.encoders import Context, make_encoder, position_encoding
from regard.models.layer_options import LayerOptions
from regard.models.model_configs import TranslatorConfig
from regard.models.model_options import (
    part_class,
)
from regard.models.model_tables import DECODERS, ENCODERS
from regard.models.output import Output, Weights, sum_losses

DEFAULT_LAYERS = {"transformer": 3}
"""Number of layers of an encoder or decoder; 1 in others."""


@runtime_checkable
class State(Protocol):
    """The state of a decoder between two words: a named tuple of tensors."""

    @property
    def source(self) -> Any:
        """What it knows of the source, the same at every step."""

    @property
    def position(self) -> int:
        """Number of words so far."""

    def _replace(self, *, source: Any) -> Any:
        """The state with another source."""


class Translator(nn.Module):
    """Reads a source, writes a target, and returns its attention weights.

    Weights are called encoder.0.self, decoder.0.self, decoder.0.source and so on in a transformer,
    and source in a recurrent decoder.
    """

    frame: tuple[int, int] = (0, 0)
    """How many tokens the encoder puts before and after a source, with columns of their own."""

    def __init__(
        self,
        config: TranslatorConfig,
        source_words: int,
        target_words: int,
        *,
        score: Score | None = None,
        joint: bool = False,
    ) -> None:
        """Build it.

        Args:
            config: its architecture.
            source_words: number of words of the source.
            target_words: number of words of the target.
            score: a callable where the config can only name one.
            joint: source and target have the same words, and share their vectors (Press and Wolf,
                2017, https://arxiv.org/abs/1608.05859: three-way tying).
        """
        super().__init__()
        if joint and source_words != target_words:
            raise ValueError(f"a joint vocabulary of {source_words} and {target_words} words")
        width = config.width
        self.source = _embedding(config, source_words, part_class(ENCODERS, config.encoder_name))
        self.target = _embedding(config, target_words, part_class(DECODERS, config.decoder_name))
        if joint:  # one parameter, under both names
            self.source.words.weight = self.target.words.weight
        self.encoder = make_encoder(config.encoder_name, _encoder_options(config, score))
        self.decoder = part_class(DECODERS, config.decoder_name)(
            _decoder_options(config, score, self.encoder.size)
        )
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
        at: Int[Tensor, "b"] | None = None,
    ) -> Output:
        """Logits of each next word, given the words before it; `target` begins with the start.

        Without `target_lengths` the logits are the same, but padding counts in the balance of
        experts. With `at`, only the word after that position of each target gets logits, [b, v].
        """
        context = self.encode(source, source_lengths, need_weights=need_weights)
        vectors = self.target(target)
        decoded = self.decoder(vectors, context, target_lengths, need_weights=need_weights)
        states = decoded.states
        return Output(
            self.words(
                states
                if at is None
                else states[torch.arange(len(states), device=states.device), at]
            ),
            context.weights | decoded.weights,
            sum_losses([context.balance, decoded.balance]),
        )

    def start(self, context: Context) -> State:
        """The state before the first word, for `step`; its `source` is the same at every step."""
        state: State = self.decoder.start(context)
        return state

    def step(
        self,
        words: Int[Tensor, "n"],
        state: State,
        *,
        allowed: Bool[Tensor, "n k"] | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "n v"], State, Weights]:
        """Log-probabilities of the next word, the state after it, and the weights [n, h, k].

        Args:
            words: the word before, of each hypothesis.
            state: the state before it.
            allowed: the source words that may be attended to (default: all).
            need_weights: whether weights are returned.
        """
        vectors = self.target(words[:, None], offset=state.position)[:, 0]
        states, state, weights = self.decoder.step(
            vectors, state, allowed=allowed, need_weights=need_weights
        )
        one_query = {name: tensor.squeeze(2) for name, tensor in weights.items()}
        return self.words(states).log_softmax(-1), state, one_query


def _embedding(config: TranslatorConfig, words: int, part: Any) -> Embedding:
    return Embedding(
        words,
        config.width,
        positions=position_encoding(part),
        dropout=config.dropout,
        max_length=config.max_length,
    )


def _encoder_options(config: TranslatorConfig, score: Score | None) -> LayerOptions:
    # a recurrent decoder without attention leaves the encoder its own
    named = None if config.attention == "none" else config.attention
    # both directions together are as wide as the decoder's state, so that every score fits
    hidden = config.width // 2
    return _layer_options(config, config.encoder_name, score or named, hidden)


def _decoder_options(
    config: TranslatorConfig, score: Score | None, memory_size: int
) -> DecoderOptions:
    luong = config.order == "luong"
    # a recurrent decoder has one layer, however many the encoder has
    layers = config.decoder_layers or (1 if config.decoder_name == "recurrent" else None)
    options = _layer_options(config, config.decoder_name, score or config.attention, config.width)
    return DecoderOptions(
        options if layers is None else replace(options, layers=layers),
        memory_size,
        order=config.order,
        input_feeding=luong if config.input_feeding is None else config.input_feeding,
        local=config.local,
        local_width=config.local_width,
    )


def _layer_options(
    config: TranslatorConfig, part: str, score: str | Score | None, hidden: int
) -> LayerOptions:
    return LayerOptions(
        config.width,
        hidden=hidden,
        cell=config.cell,
        layers=config.layers or DEFAULT_LAYERS.get(part, 1),
        heads=config.heads,
        feed_forward=config.feed_forward or 2 * config.width,
        norm=config.norm,
        dropout=config.dropout,
        score=score,
        normalize=config.normalize,
        experts=config.experts,
        top_k=config.top_k,
        max_keys=config.max_length,
    )
