"""Models that learn an algorithm: one symbol in and one out per step, with or without a memory."""

from jaxtyping import Int
from torch import Tensor, nn

from regard.attention.scores import Score
from regard.models.causal_networks import (
    EncoderNetwork,
    MemoryNetwork,
    MemoryOptions,
    RecurrentNetwork,
    TransformerNetwork,
)
from regard.models.embedding import Embedding
from regard.models.encoders import make_encoder, position_encoding
from regard.models.layer_options import LayerOptions
from regard.models.model_configs import AlgorithmConfig
from regard.models.model_options import part_class
from regard.models.model_tables import ENCODERS
from regard.models.output import Output

DEFAULT_LAYERS = {"recurrent": 1, "transformer": 3}


class AlgorithmModel(nn.Module):
    """Reads and predicts one symbol per step: first the problem, then blanks while it answers.

    A prediction depends on the symbols up to its step alone. The answer is not fed back as input:
    the model has to keep track of how far it has come.

    Weights are called memory.read and memory.write, [b, h, t, slots], the address of each head at
    each step; decoder.0.self and so on otherwise; a recurrent model has none.
    """

    def __init__(
        self, config: AlgorithmConfig, symbols: int, *, score: Score | None = None
    ) -> None:
        """Build it.

        Args:
            config: its architecture.
            symbols: number of different symbols, including padding and blank.
            score: a callable where the config can only name one.
        """
        super().__init__()
        self.config = config
        self.embedding = Embedding(
            symbols,
            config.width,
            positions="none"
            if config.model == "memory"
            else position_encoding(part_class(ENCODERS, config.model)),
            dropout=config.dropout,
        )
        self.body = _network(config, score or config.attention)
        self.answer = nn.Linear(self.body.size, symbols)

    def forward(self, symbols: Int[Tensor, "b t"], *, need_weights: bool = False) -> Output:
        """Logits of the symbol to predict at each step."""
        vectors = self.embedding(symbols)
        read, _ = self.body(vectors, self.body.start(len(symbols)), need_weights=need_weights)
        return Output(self.answer(read.states), read.weights)


def _network(
    config: AlgorithmConfig, score: str | Score | None
) -> MemoryNetwork | RecurrentNetwork | TransformerNetwork | EncoderNetwork:
    if config.model == "memory":
        memory = MemoryOptions(
            config.slots,
            config.slot_width,
            read_heads=config.read_heads,
            write_heads=config.write_heads,
            addressing=config.addressing,
            score=score,
        )
        return MemoryNetwork(config.width, config.controller, memory)
    options = LayerOptions(
        config.width,
        cell=config.cell,
        layers=config.layers or DEFAULT_LAYERS.get(config.model, 1),
        heads=config.heads,
        dropout=config.dropout,
        score=score,
        max_keys=config.max_length,
        causal=True,
    )
    if config.model == "transformer":
        return TransformerNetwork(options)
    if config.model == "recurrent":
        return RecurrentNetwork(options)
    return EncoderNetwork(make_encoder(config.model, options), options)
