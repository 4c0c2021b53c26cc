"""Language models: the next word from the words before, recurrent or transformer."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers import Cache, Encoder
from regard.layers.dropout import Dropout
from regard.layers.recurrent import State
from regard.models.embedding import Embedding, Unembedding
from regard.models.encoders import known
from regard.models.lookback import LookBack
from regard.models.output import Output, Weights
from regard.models.stack import Caches, Stack

MODELS = ("recurrent", "transformer")
FIRST = ("zero", "learned")


@dataclass(frozen=True)
class LanguageConfig:
    """How a language model is built."""

    model: str = "recurrent"
    """recurrent or transformer."""
    cell: str = "lstm"
    """elman, gru or lstm, where it is recurrent."""
    attention: str = "none"
    """The score of attention over past states (recurrent), none without; or of a transformer."""
    normalize: str = "softmax"
    """The normalizer of the weights."""
    split: bool = False
    """Past states are split into a key, a value and a predicting part (Daniluk et al., 2017)."""
    window: int = 64
    """How many past states attention reaches back."""
    first: str = "learned"
    """The state before the first word: zero or learned."""
    width: int = 256
    """Size of word vectors and states."""
    word_size: int | None = None
    """Size of the vectors in the table of words, if another: that of word vectors from a file."""
    layers: int | None = None
    """Layers; 1 where recurrent and 4 in a transformer unless said."""
    heads: int = 4
    """Heads of a transformer."""
    feed_forward: int | None = None
    """Hidden size of its feed-forward network."""
    experts: int = 0
    """Experts instead of one feed-forward network."""
    top_k: int | None = None
    """How many experts see a word."""
    dropout: float = 0.2
    """Share of features dropped in training."""
    tied: bool = True
    """Words have one table, coming in and going out."""
    max_length: int = 1024
    """How far back a transformer looks, itself included, in tokens; texts may be longer."""


class LanguageState(NamedTuple):
    """What passes from one stretch of text to the next."""

    cell: State
    """Last states of the recurrent layers, [b, layers, w]; empty in a transformer."""
    past: Float[Tensor, "b n w"] | None
    """States that attention may look back at."""
    caches: Caches
    """What a transformer remembers, layer by layer."""
    about: Float[Tensor, "b 1 w"] | None
    """What is to be written about, which stands in every position."""
    position: int


class LanguageModel(nn.Module):
    """Reads text and says how likely each next word is.

    Weights are called past where a recurrent model looks back, its keys the states kept from
    earlier calls and then those of this one; decoder.0.self and so on in a transformer.
    """

    def __init__(
        self,
        config: LanguageConfig,
        words: int,
        *,
        labels: int = 0,
        features: int = 0,
        score: Score | None = None,
    ) -> None:
        """Build it.

        Args:
            config: how it is built.
            words: number of words.
            labels: number of labels that a text may be conditioned on.
            features: size of a vector that a text may be conditioned on.
            score: a callable where the config can only name one.
        """
        super().__init__()
        if config.model not in MODELS:
            raise ValueError(unknown("model", config.model, MODELS))
        if config.first not in FIRST:
            raise ValueError(unknown("first state", config.first, FIRST))
        attention = "dot" if config.attention == "none" else config.attention
        known(cell=config.cell, score=score or attention, normalize=config.normalize)
        self.config = config
        self.embedding = Embedding(
            words,
            config.width,
            size=config.word_size,
            positions="none" if config.model == "recurrent" else "sinusoids",
            dropout=config.dropout,
        )
        self.label = nn.Embedding(labels, config.width) if labels else None
        self.vector = nn.Linear(features, config.width) if features else None
        self.body = (
            Recurrent(config, score) if config.model == "recurrent" else Transformer(config, score)
        )
        size = self.embedding.size if config.tied else config.width
        self.narrow = None if size == config.width else nn.Linear(config.width, size)
        self.words = Unembedding(size, words, self.embedding if config.tied else None)

    def start(
        self,
        batch: int,
        *,
        label: Int[Tensor, "b"] | None = None,
        vector: Float[Tensor, "b f"] | None = None,
    ) -> LanguageState:
        """The state before the first word, perhaps with something to write about."""
        return self.body.start(batch, self._about(label, vector))

    def forward(
        self,
        words: Int[Tensor, "b t"],
        state: LanguageState,
        *,
        need_weights: bool = False,
        among: Int[Tensor, "some"] | None = None,
    ) -> tuple[Output, LanguageState]:
        """Logits of the word after each of these, and the state after the last.

        Texts in pieces, each with the state after the one before, give the logits of the whole.

        Args:
            words: what to read.
            state: the state before it.
            need_weights: return the weights as well.
            among: the words that get a logit, in this order; all unless said.
        """
        vectors = self.embedding(words, offset=state.position)
        passed, state = self.body(vectors, state, need_weights=need_weights)
        states = passed.states if self.narrow is None else self.narrow(passed.states)
        return Output(self.words(states, among), passed.weights, passed.balance), state

    def _about(self, label: Tensor | None, vector: Tensor | None) -> Tensor | None:
        """[b, 1, w]: what the text is to be about."""
        parts = []
        for what, given, layer in (("label", label, self.label), ("vector", vector, self.vector)):
            if given is not None and layer is None:
                raise ValueError(f"this model was not built to be conditioned on a {what}")
            if given is not None and layer is not None:
                parts.append(layer(given)[:, None])
        return sum(parts[1:], parts[0]) if parts else None


def detached(state: LanguageState) -> LanguageState:
    """The same state without its history: back-propagation through time ends here."""
    return LanguageState(
        tuple(part.detach() for part in state.cell),
        None if state.past is None else state.past.detach(),
        tuple(Cache(cache.key.detach(), cache.value.detach()) for cache in state.caches),
        None if state.about is None else state.about.detach(),
        state.position,
    )


class Read(NamedTuple):
    """Vectors to predict from, where each looked, and the balance loss of experts."""

    states: Float[Tensor, "b t w"]
    weights: Weights
    balance: Float[Tensor, ""] | None


class Recurrent(nn.Module):
    """h_t = f(W_h h_{t-1} + W_e x_t + b) or its gated kin, with or without a look back."""

    def __init__(self, config: LanguageConfig, score: Score | None) -> None:
        super().__init__()
        width, layers = config.width, config.layers or 1
        self.network = Encoder(
            width,
            width,
            cell=config.cell,
            layers=layers,
            bidirectional=False,
            dropout=config.dropout,
        )
        first = torch.zeros(2 if config.cell == "lstm" else 1, layers, width)
        self.first: Tensor
        if config.first == "learned":
            self.first = nn.Parameter(first)
        else:
            self.register_buffer("first", first, persistent=False)
        attention = score or config.attention
        self.look = (
            LookBack(
                width,
                score=attention,
                normalize=config.normalize,
                split=config.split,
                window=config.window,
            )
            if attention != "none"
            else None
        )
        self.dropout = Dropout(config.dropout)

    def start(self, batch: int, about: Float[Tensor, "b 1 w"] | None) -> LanguageState:
        """The first state, moved by what the text is to be about; so is every later word."""
        hidden, *memory = self.first.unsqueeze(1).expand(-1, batch, -1, -1)
        if about is not None:
            hidden = hidden + about
        past = None if self.look is None else hidden.new_zeros(batch, 0, hidden.shape[-1])
        return LanguageState((hidden, *memory), past, (), about, 0)

    def forward(
        self, vectors: Float[Tensor, "b t w"], state: LanguageState, *, need_weights: bool = False
    ) -> tuple[Read, LanguageState]:
        """Read on."""
        if state.about is not None:
            vectors = vectors + state.about
        states, cell = self.network(vectors, None, state.cell)
        past, weights = state.past, {}
        if self.look is not None:
            states, past, looked = self.look(states, past, need_weights=need_weights)
            if looked is not None:
                weights["past"] = looked[:, None]
        after = state.position + vectors.shape[1]
        return (
            Read(self.dropout(states), weights, None),
            LanguageState(cell, past, (), state.about, after),
        )


class Transformer(nn.Module):
    """Blocks that look back, as far as `max_length`."""

    def __init__(self, config: LanguageConfig, score: Score | None) -> None:
        super().__init__()
        named = "scaled_dot" if config.attention == "none" else config.attention
        self.absolute = score is None and named == "location"
        self.reach = config.max_length
        self.stack = Stack(
            config.width,
            config.layers or 4,
            heads=config.heads,
            hidden=config.feed_forward,
            dropout=config.dropout,
            score=score or named,
            normalize=config.normalize,
            experts=config.experts,
            top_k=config.top_k,
            max_keys=config.max_length,
        )

    def start(self, batch: int, about: Float[Tensor, "b 1 w"] | None) -> LanguageState:
        """Nothing to look back at."""
        return LanguageState((), None, self.stack.nothing(batch), about, 0)

    def forward(
        self, vectors: Float[Tensor, "b t w"], state: LanguageState, *, need_weights: bool = False
    ) -> tuple[Read, LanguageState]:
        """Read on; what is out of every later word's reach is forgotten."""
        after = state.position + vectors.shape[1]
        if self.absolute and after > self.reach:
            raise ValueError(
                f"location knows {self.reach} positions, but this text has {after}: cut it, or "
                f"raise max_length"
            )
        if state.about is not None:
            vectors = vectors + state.about
        mask = masks.causal()
        if after > self.reach:
            mask = mask & masks.window(self.reach)
        states, weights, balance, caches = self.stack(
            vectors, mask, name="decoder", own=state.caches, need_weights=need_weights
        )
        kept = tuple(_last(cache, self.reach - 1) for cache in caches)
        return Read(states, weights, balance), LanguageState((), None, kept, state.about, after)


def _last(cache: Cache, positions: int) -> Cache:
    first = max(0, cache.key.shape[-2] - positions)
    return Cache(cache.key[..., first:, :], cache.value[..., first:, :])
