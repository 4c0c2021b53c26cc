"""Language models: the next word from the words before, recurrent or transformer."""

from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.scores import Score
from regard.layers.neural_cache import CachedStates, CacheReading, mix_cache, read_cache
from regard.layers.ngram_model import NGramModel
from regard.models.causal_networks import (
    EncoderNetwork,
    LanguageState,
    NetworkOutput,
    RecurrentNetwork,
    TransformerNetwork,
)
from regard.models.embedding import Embedding, Unembedding
from regard.models.encoders import make_encoder, position_encoding
from regard.models.layer_options import LayerOptions
from regard.models.model_configs import LanguageConfig
from regard.models.model_options import part_class
from regard.models.model_tables import ENCODERS
from regard.models.output import Output

DEFAULT_LAYERS = {"recurrent": 1, "transformer": 4}


class TargetProbabilities(NamedTuple):
    """The probability of each target by every part of a language model."""

    network: Float[Tensor, "b t"]
    ngrams: Float[Tensor, "b t"] | None
    order: Int[Tensor, "b t"] | None
    """Number of words of the longest context that the n-gram model knows."""
    cache: Float[Tensor, "b t"] | None
    reading: CacheReading | None


class LanguageModel(nn.Module):
    """Reads text and predicts each next word.

    p(w | past) is that of a network; of its mixture with an n-gram model, if it has one; and of
    their mixture with a cache, if the state has one. In training, the network learns alone.

    Weights are called past where a recurrent model attends to past states (its keys are the states
    kept from earlier calls, then those of this one), and decoder.0.self and so on otherwise.
    """

    start_token: ClassVar[int] = 3
    """What every text begins with: `<eos>`, which stands between texts."""
    positions: ClassVar[int | None] = None
    """Number of words that it can read from a start; None for any number."""

    def __init__(
        self,
        config: LanguageConfig,
        words: int,
        *,
        labels: int = 0,
        features: int = 0,
        score: Score | None = None,
        ngrams: NGramModel | None = None,
    ) -> None:
        """Build it.

        Args:
            config: its architecture.
            words: number of words.
            labels: number of labels that a text may be conditioned on.
            features: size of a vector that a text may be conditioned on.
            score: a callable where the config can only name one.
            ngrams: an n-gram model that predicts beside the network.
        """
        super().__init__()
        self.config = config
        self.ngrams = ngrams
        self.embedding = Embedding(
            words,
            config.width,
            size=config.word_size,
            positions=position_encoding(part_class(ENCODERS, config.model)),
            dropout=config.dropout,
        )
        self.label = nn.Embedding(labels, config.width) if labels else None
        self.vector = nn.Linear(features, config.width) if features else None
        self.body = _network(config, score)
        size = self.embedding.size if config.tied else self.body.size
        self.narrow = None if size == self.body.size else nn.Linear(self.body.size, size)
        self.words = Unembedding(size, words, self.embedding if config.tied else None)

    def start(
        self,
        batch: int,
        *,
        label: Int[Tensor, "b"] | None = None,
        vector: Float[Tensor, "b f"] | None = None,
    ) -> LanguageState:
        """The state before the first word, optionally conditioned on a label or a vector."""
        state = self.body.start(batch, self._condition(label, vector))
        if self.ngrams is None:
            return state
        none = torch.zeros(batch, 0, dtype=torch.long, device=self.ngrams.keys.device)
        return state._replace(recent=none)

    def empty_cache(
        self, batch: int, *, size: int, weight: float, sharpness: float
    ) -> CachedStates:
        """What an initial state has as its `cache` to attend to earlier states of the text.

        Args:
            batch: number of texts.
            size: number of states that are attended to.
            weight: weight of the words that followed them, beside the prediction of the network.
            sharpness: factor of the cosines of states before the softmax.
        """
        width = self.body.size if self.narrow is None else self.narrow.out_features
        like = next(self.parameters()).new_zeros(batch, width)
        return CachedStates.empty(like, size=size, weight=weight, sharpness=sharpness)

    def forward(
        self,
        words: Int[Tensor, "b t"],
        state: LanguageState,
        *,
        need_weights: bool = False,
        among: Int[Tensor, "some"] | None = None,
        alone: bool = False,
    ) -> tuple[Output, LanguageState]:
        """Logits of the word after each of these, and the state after the last.

        A text in pieces, each read from the state after the previous one, gives the logits of the
        whole text.

        Args:
            words: the words to read.
            state: the state before them.
            need_weights: whether weights are returned.
            among: the words that get a logit, in this order (default: all).
            alone: logits of the network alone.
        """
        passed, contexts, reading, after = self._read(words, state, need_weights)
        logits, weights = self.words(passed.states, among), passed.weights
        alone = alone or self.training or among is not None
        if (contexts is not None or reading is not None) and not alone:
            probabilities = logits.softmax(-1)
            if contexts is not None and self.ngrams is not None:
                order = self.ngrams.order(contexts)
                probabilities = self.ngrams.mix(probabilities, self.ngrams(contexts), order)
            if reading is not None and state.cache is not None:
                suggested = reading.over(probabilities.shape[-1])
                probabilities = mix_cache(probabilities, suggested, reading, state.cache.weight)
            logits = probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()
        if need_weights and reading is not None:
            weights = {**weights, "cache": reading.weights[:, None]}
        return Output(logits, weights, passed.balance), after

    def target_probabilities(
        self, words: Int[Tensor, "b t"], targets: Int[Tensor, "b t"], state: LanguageState
    ) -> tuple[TargetProbabilities, LanguageState]:
        """The probabilities of some words alone, by part: quicker than those of all words."""
        passed, contexts, reading, after = self._read(words, state, False)
        own = self.words(passed.states).log_softmax(-1).gather(2, targets[:, :, None])[:, :, 0]
        ngrams = order = None
        if contexts is not None and self.ngrams is not None:
            ngrams, order = self.ngrams.of(contexts, targets), self.ngrams.order(contexts)
        cache = None if reading is None else reading.of(targets)
        return TargetProbabilities(own.exp(), ngrams, order, cache, reading), after

    def ngram_shares(
        self, words: Int[Tensor, "b t"], state: LanguageState
    ) -> tuple[Int[Tensor, "b t"], Float[Tensor, "b t"]] | None:
        """Beside an n-gram model: the length of the context that it knows, the network's weight."""
        if self.ngrams is None or state.recent is None:
            return None
        order = self.ngrams.order(self.ngrams.contexts(state.recent, words))
        return order, self.ngrams.network_weight[order]

    def mix_targets(self, parts: TargetProbabilities, state: LanguageState) -> Tensor:
        """The probability of each target, from those by part."""
        mixed = parts.network
        if parts.ngrams is not None and parts.order is not None and self.ngrams is not None:
            mixed = self.ngrams.mix(mixed, parts.ngrams, parts.order)
        if parts.cache is not None and parts.reading is not None and state.cache is not None:
            mixed = mix_cache(mixed, parts.cache, parts.reading, state.cache.weight)
        return mixed

    def _read(
        self, words: Tensor, state: LanguageState, need_weights: bool
    ) -> tuple[NetworkOutput, Tensor | None, CacheReading | None, LanguageState]:
        """States to predict from; rows of n-grams and what the cache says; the state after them."""
        vectors = self.embedding(words, offset=state.position)
        passed, after = self.body(vectors, state, need_weights=need_weights)
        if self.narrow is not None:
            passed = passed._replace(states=self.narrow(passed.states))
        contexts = reading = None
        if self.ngrams is not None and state.recent is not None:
            if not self.training:
                contexts = self.ngrams.contexts(state.recent, words)
            kept = max(0, self.ngrams.longest - 2)
            text = torch.cat([state.recent, words], 1)
            after = after._replace(recent=text[:, max(0, text.shape[1] - kept) :])
        if state.cache is not None:
            reading, cache = read_cache(state.cache, passed.states, words)
            after = after._replace(cache=cache)
        return passed, contexts, reading, after

    def _condition(self, label: Tensor | None, vector: Tensor | None) -> Tensor | None:
        """[b, 1, w]: the vector that a text is conditioned on."""
        parts = []
        for what, given, layer in (("label", label, self.label), ("vector", vector, self.vector)):
            if given is not None and layer is None:
                raise ValueError(f"this model was not built to be conditioned on a {what}")
            if given is not None and layer is not None:
                parts.append(layer(given)[:, None])
        return sum(parts[1:], parts[0]) if parts else None


def _network(
    config: LanguageConfig, score: Score | None
) -> RecurrentNetwork | TransformerNetwork | EncoderNetwork:
    default = "additive" if config.model == "recurrent" else "none"
    named = config.attention or default
    attention = score or (None if named == "none" else named)
    options = LayerOptions(
        config.width,
        cell=config.cell,
        layers=config.layers or DEFAULT_LAYERS.get(config.model, 1),
        heads=config.heads,
        feed_forward=config.feed_forward,
        dropout=config.dropout,
        score=attention,
        normalize=config.normalize,
        experts=config.experts,
        top_k=config.top_k,
        max_keys=config.max_length,
        causal=True,
    )
    if config.model == "transformer":
        return TransformerNetwork(options, reach=config.max_length)
    if config.model != "recurrent":
        return EncoderNetwork(make_encoder(config.model, options), options)
    return RecurrentNetwork(
        options,
        learned_start=config.first == "learned",
        window=None if attention is None else config.window,
        split=config.split,
        output_dropout=config.dropout,
    )
