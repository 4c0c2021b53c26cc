"""Language models: the next word from the words before, recurrent or transformer."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention import attend, masks, scores
from regard.attention.scores import Score
from regard.errors import unknown
from regard.layers import Block, BlockCache, Encoder
from regard.layers.recurrent import State
from regard.models.embedding import Embedding, Unembedding
from regard.models.output import Output, Weights, numbered, total

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
    dropout: float = 0.3
    """Share of features dropped in training."""
    tied: bool = True
    """Words have one table, coming in and going out."""
    max_length: int = 1024
    """The longest text of a transformer, in tokens."""


class LanguageState(NamedTuple):
    """What passes from one stretch of text to the next."""

    cell: State
    """Last states of the recurrent layers, [b, layers, h]; empty in a transformer."""
    past: Float[Tensor, "b n w"] | None
    """States that attention may look back at."""
    caches: tuple[BlockCache, ...]
    position: int


class LanguageModel(nn.Module):
    """Reads text and says how likely each next word is."""

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
        if config.model == "transformer" and config.attention == "none":
            attention: str | Score = "scaled_dot"
        else:
            attention = score or config.attention
        self.config = config
        width = config.width
        recurrent = config.model == "recurrent"
        self.embedding = Embedding(
            words,
            width,
            positions="none" if recurrent else "sinusoids",
            dropout=config.dropout,
            max_length=config.max_length,
        )
        self.label = nn.Embedding(labels, width) if labels else None
        self.vector = nn.Linear(features, width) if features else None
        layers = config.layers or (1 if recurrent else 4)
        self.dropout = nn.Dropout(config.dropout)
        self.first: nn.Parameter | None = None
        self.look: LookBack | None = None
        if recurrent:
            self.network = Encoder(
                width,
                width,
                cell=config.cell,
                layers=layers,
                bidirectional=False,
                dropout=config.dropout,
            )
            parts = 2 if config.cell == "lstm" else 1
            if config.first == "learned":
                self.first = nn.Parameter(torch.zeros(parts, layers, width))
            if attention != "none":
                self.look = LookBack(
                    width,
                    score=attention,
                    normalize=config.normalize,
                    split=config.split,
                    window=config.window,
                )
        else:
            self.blocks = nn.ModuleList(
                Block(
                    width,
                    config.heads,
                    config.feed_forward,
                    dropout=config.dropout,
                    score=attention,
                    normalize=config.normalize,
                    experts=config.experts,
                    top_k=config.top_k,
                    max_keys=config.max_length,
                )
                for _ in range(layers)
            )
            self.norm = nn.LayerNorm(width)
        self.words = Unembedding(width, words, self.embedding if config.tied else None)

    def start(
        self,
        batch: int,
        *,
        label: Int[Tensor, "b"] | None = None,
        vector: Float[Tensor, "b f"] | None = None,
    ) -> LanguageState:
        """The state before the first word, perhaps with something to write about."""
        given = self._given(label, vector)
        if self.config.model == "transformer":
            states = self.embedding.words.weight.new_zeros(batch, 0, self.config.width)
            caches = tuple(BlockCache(block.own.remember(states), None) for block in self.blocks)
            return LanguageState((), given, caches, 0)
        layers, parts = self.network.layers, 2 if self.config.cell == "lstm" else 1
        first = self.first
        if first is None:
            first = self.embedding.words.weight.new_zeros(parts, layers, self.config.width)
        cell = tuple(part.expand(batch, -1, -1) for part in first)
        if given is not None:
            cell = (cell[0] + given, *cell[1:])
        past = None
        if self.look is not None:
            past = self.embedding.words.weight.new_zeros(batch, 0, self.config.width)
        return LanguageState(cell, past, (), 0)

    def forward(
        self, words: Int[Tensor, "b t"], state: LanguageState, *, need_weights: bool = False
    ) -> tuple[Output, LanguageState]:
        """Logits of the word after each of these, and the state after the last."""
        vectors = self.embedding(words, offset=state.position)
        after = state.position + words.shape[1]
        if self.config.model == "transformer":
            return self._transformed(vectors, state, after, need_weights)
        states, cell = self.network(vectors, None, state.cell)
        weights: Weights = {}
        past = state.past
        if self.look is not None and past is not None:
            states, past, looked = self.look(states, past, need_weights=need_weights)
            if looked is not None:
                weights["past"] = looked[:, None]
        logits = self.words(self.dropout(states))
        return Output(logits, weights), LanguageState(cell, past, (), after)

    def _transformed(
        self, vectors: Tensor, state: LanguageState, after: int, need_weights: bool
    ) -> tuple[Output, LanguageState]:
        if state.past is not None:  # what the text is about stands in every position
            vectors = vectors + state.past
        weights: Weights = {}
        caches, balances = [], []
        for layer, (block, cache) in enumerate(zip(self.blocks, state.caches, strict=True)):
            passed = block(vectors, masks.causal(), cache=cache, need_weights=need_weights)
            vectors = passed.output
            caches.append(passed.cache)
            balances.append(passed.balance)
            if need_weights:
                weights |= numbered(passed.weights, f"decoder.{layer}")
        output = Output(self.words(self.norm(vectors)), weights, total(balances))
        return output, LanguageState((), state.past, tuple(caches), after)

    def _given(self, label: Tensor | None, vector: Tensor | None) -> Tensor | None:
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
        state.caches,
        state.position,
    )


class LookBack(nn.Module):
    """Attention of a recurrent language model over its own past states.

    c_t = attend(h_t, {h_{t-n} … h_{t-1}}), joined to the state: tanh(W [h_t; c_t]).

    With `split`, each state has three parts: the first predicts, the second is the key, the third
    the value. Daniluk et al., 2017, https://arxiv.org/abs/1702.04521
    """

    def __init__(
        self,
        width: int,
        *,
        score: str | Score = "additive",
        normalize: str = "softmax",
        split: bool = False,
        window: int = 64,
    ) -> None:
        super().__init__()
        self.parts = nn.Linear(width, 3 * width) if split else None
        self.score = scores.make(score, width, width, max_keys=window)
        self.normalize, self.window = normalize, window
        self.join = nn.Linear(2 * width, width)

    def forward(
        self,
        states: Float[Tensor, "b t w"],
        past: Float[Tensor, "b n w"],
        *,
        need_weights: bool = False,
    ) -> tuple[Float[Tensor, "b t w"], Float[Tensor, "b m w"], Float[Tensor, "b t k"] | None]:
        """Joined states, the past that the next call needs, and weights over past and states."""
        memory = torch.cat([past, states], 1)
        predict, key, value = memory, memory, memory
        if self.parts is not None:
            predict, key, value = self.parts(memory).chunk(3, -1)
        query = key[:, -states.shape[1] :]
        # keys are the states before the current one, at most `window` of them
        mask = masks.causal() & masks.others() & masks.window(self.window + 1)
        attended = attend(
            query,
            key,
            value,
            mask,
            score=self.score,
            normalize=self.normalize,
            need_weights=need_weights,
        )
        here = predict[:, -states.shape[1] :]
        joined = self.join(torch.cat([here, attended.output], -1)).tanh()
        return joined, memory[:, -self.window :], attended.weights
