"""Language models: the next word from the words before, recurrent or transformer."""

from typing import ClassVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.scores import Score
from regard.models.causal_networks import (
    EncoderNetwork,
    LanguageState,
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


class LanguageModel(nn.Module):
    """Reads text and predicts each next word.

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
    ) -> None:
        """Build it.

        Args:
            config: its architecture.
            words: number of words.
            labels: number of labels that a text may be conditioned on.
            features: size of a vector that a text may be conditioned on.
            score: a callable where the config can only name one.
        """
        super().__init__()
        self.config = config
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
        return self.body.start(batch, self._condition(label, vector))

    def forward(
        self,
        words: Int[Tensor, "b t"],
        state: LanguageState,
        *,
        need_weights: bool = False,
        among: Int[Tensor, "some"] | None = None,
    ) -> tuple[Output, LanguageState]:
        """Logits of the word after each of these, and the state after the last.

        A text in pieces, each read from the state after the previous one, gives the logits of the
        whole text.

        Args:
            words: the words to read.
            state: the state before them.
            need_weights: whether weights are returned.
            among: the words that get a logit, in this order (default: all).
        """
        vectors = self.embedding(words, offset=state.position)
        passed, state = self.body(vectors, state, need_weights=need_weights)
        states = passed.states if self.narrow is None else self.narrow(passed.states)
        return Output(self.words(states, among), passed.weights, passed.balance), state

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
