"""Encoders and a decoder as another package may write them: regard knows nothing of them."""

from torch import Tensor, nn

from regard.models import Context, DecoderOptions, LayerOptions
from regard.models.decoders import RecurrentDecoder
from regard.models.encoders import RecurrentEncoder, real_positions

HERE = "tests.models.foreign_encoders"


class Convolution(nn.Module):
    """tanh of a convolution over three words; without positions, heads or recurrence."""

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.size = options.width + 1
        self.layer = nn.Conv1d(options.width, self.size, 3, padding=1)

    def forward(self, vectors: Tensor, lengths: Tensor, *, need_weights: bool = False) -> Context:
        real = real_positions(vectors.shape[1], lengths)[:, :, None]
        states = self.layer(vectors.masked_fill(~real, 0.0).mT).mT.tanh()
        return Context.from_states(states, lengths)


class Averaging(nn.Module):
    """Every word attends to all words equally; it wants positions and shows its weights."""

    needs_positions = True
    attends = True

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.size, self.heads = options.width, options.heads

    def forward(self, vectors: Tensor, lengths: Tensor, *, need_weights: bool = False) -> Context:
        time = vectors.shape[1]
        real = real_positions(time, lengths)[:, None, None, :].to(vectors)
        weights = (real / lengths[:, None, None, None]).expand(-1, self.heads, time, -1)
        states = vectors + weights[:, 0] @ vectors.masked_fill(real[:, 0].mT == 0, 0.0)
        shown = {"encoder.mean": weights} if need_weights else {}
        return Context.from_states(states, lengths, shown)


class Doubled(RecurrentEncoder):
    """A subclass of a built-in encoder that computes something else."""

    def forward(self, vectors: Tensor, lengths: Tensor, *, need_weights: bool = False) -> Context:
        return super().forward(2 * vectors, lengths, need_weights=need_weights)


class Backwards(nn.Module):
    """tanh of a convolution over a word and the two before it."""

    attends = False
    can_be_causal = True

    def __init__(self, options: LayerOptions) -> None:
        super().__init__()
        self.size = options.width + 1
        self.layer = nn.Conv1d(options.width, self.size, 3, padding=2)

    def forward(self, vectors: Tensor, lengths: Tensor, *, need_weights: bool = False) -> Context:
        return Context.from_states(self.layer(vectors.mT).mT[:, :-2].tanh(), lengths)


class Sizeless(nn.Module):
    def __init__(self, options: LayerOptions) -> None:
        super().__init__()


class Mirrored(RecurrentDecoder):
    """A decoder of another package."""

    def __init__(self, options: DecoderOptions) -> None:
        super().__init__(options)
        self.gain = nn.Parameter(self.first.weight.new_ones(()))
