"""A pretrained encoder that classifies texts."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.layers.dropout import Dropout
from regard.models.output import Output
from regard.models.pretrained.architecture import EncoderArchitecture
from regard.models.pretrained.encoder import (
    ACTIVATIONS,
    FramedEmbedding,
    PretrainedEncoder,
    new_decision,
)


class PretrainedClassifier(nn.Module):
    """Reads a text and returns a logit for each class.

    Weights are called encoder.0.self and so on, [b, h, t + 2, t + 2]: the first and the last
    token are part of them.
    """

    def __init__(self, architecture: EncoderArchitecture, labels: int, dropout: float) -> None:
        """Build it with initial weights."""
        super().__init__()
        self.architecture = architecture
        self.inputs = FramedEmbedding(architecture, dropout)
        self.encoder = PretrainedEncoder(architecture, dropout)
        size = architecture.width
        self.dense = None if architecture.dense == "none" else new_decision(size, size)
        self.activation = (
            nn.Identity() if self.dense is None else ACTIVATIONS[architecture.dense]()  # type: ignore[operator]
        )
        self.dropout = Dropout(dropout)
        self.decision = new_decision(size, labels)

    def forward(
        self,
        words: Int[Tensor, "b t"],
        lengths: Int[Tensor, "b"],
        *,
        need_weights: bool = False,
    ) -> Output:
        """Logits [b, classes]."""
        vectors = self.inputs(self.inputs.words(words), lengths)
        context = self.encoder(vectors, lengths + 2, need_weights=need_weights)
        pooled = self.pool(context.states, lengths + 2)
        hidden = pooled if self.dense is None else self.activation(self.dense(pooled))
        return Output(self.decision(self.dropout(hidden)), context.weights)

    def pool(
        self, states: Float[Tensor, "b t w"], lengths: Int[Tensor, "b"]
    ) -> Float[Tensor, "b w"]:
        """One vector per text; states are zero at padding."""
        if self.architecture.pooling == "mean":
            return states.sum(1) / lengths[:, None]
        return torch.clone(states[:, 0])
