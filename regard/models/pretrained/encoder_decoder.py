"""A pretrained encoder–decoder in Regard's own blocks: BART, Marian and T5.

BART and Marian are post-norm transformers with positions that are added to the words. T5
normalizes by the root mean square before each part, scores with plain dot products, and biases
self-attention by distance.

Lewis et al., 2020, https://arxiv.org/abs/1910.13461; Junczys-Dowmunt et al., 2018,
https://arxiv.org/abs/1804.00344; Raffel et al., 2020, https://arxiv.org/abs/1910.10683

The tokens that the model puts around a source are added here: a text comes without them, so that
they are never erased, dropped or aligned.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.positions import Learned, RelativeBias, sinusoids
from regard.layers import MultiHead
from regard.layers.dropout import Dropout
from regard.models.decoders import DecoderOptions, TransformerDecoder
from regard.models.encoders import Context, TransformerEncoder
from regard.models.layer_options import LayerOptions
from regard.models.output import Output
from regard.models.pretrained.architecture import TranslatorArchitecture
from regard.models.pretrained.encoder import ACTIVATIONS, FIRST, LAST, WordTable
from regard.models.pretrained.language_model import GatedFeedForward
from regard.models.transformer_stack import TransformerStack
from regard.models.translator import State, Translator

UNKNOWN = 1


class PlacedVectors(nn.Module):
    """Word vectors with their positions, as the first block reads them."""

    def __init__(self, architecture: TranslatorArchitecture, dropout: float) -> None:
        super().__init__()
        width = architecture.width
        self.scale = width**0.5 if architecture.scaled_words else 1.0
        learned = architecture.places == "learned"
        self.places = Learned(architecture.positions, width) if learned else None
        self.wavy = architecture.places == "sinusoids"
        self.norm = nn.LayerNorm(width, architecture.epsilon) if architecture.input_norm else None
        self.dropout = Dropout(dropout)

    def forward(self, vectors: Float[Tensor, "b t w"], offset: int = 0) -> Float[Tensor, "b t w"]:
        """The vectors from position `offset` on."""
        length, width = vectors.shape[1:]
        vectors = vectors * self.scale
        if self.places is not None:
            vectors = vectors + self.places(length, offset)
        if self.wavy:
            vectors = vectors + sinusoids(
                length,
                width,
                offset=offset,
                interleaved=False,
                dtype=vectors.dtype,
                device=vectors.device,
            )
        placed: Tensor = self.dropout(vectors if self.norm is None else self.norm(vectors))
        return placed


class SourceInputs(PlacedVectors):
    """The source, with the tokens that the model puts around it."""

    def __init__(self, architecture: TranslatorArchitecture, dropout: float) -> None:
        super().__init__(architecture, dropout)
        self.words = WordTable(architecture.vocabulary, architecture.width)
        self.before, self.after = architecture.frame

    def forward(  # type: ignore[override]
        self, ids: Int[Tensor, "b t"], lengths: Int[Tensor, "b"]
    ) -> Float[Tensor, "b n w"]:
        """Vectors of the source; n = t and the tokens around it."""
        table = self.words.weight
        # a tokenizer of the source alone may know pieces that the model does not
        known = ids.masked_fill(ids >= len(table), UNKNOWN)
        framed = F.pad(self.words(known), (0, 0, self.before, self.after))
        place = torch.arange(framed.shape[1], device=ids.device)
        framed = torch.where((place < self.before)[:, None], table[FIRST], framed)
        last = place == lengths[:, None] + self.before
        return super().forward(torch.where(last[:, :, None], table[LAST], framed))


class TargetInputs(PlacedVectors):
    """The target; its words have the vectors of the source's table."""

    def __init__(
        self, architecture: TranslatorArchitecture, dropout: float, table: WordTable
    ) -> None:
        super().__init__(architecture, dropout)
        # in a list, so that the table has one name in the state dict
        self.table = [table]

    def forward(self, ids: Int[Tensor, "b t"], offset: int = 0) -> Float[Tensor, "b t w"]:
        """Vectors of the words; `offset` is the position of the first."""
        return super().forward(F.embedding(ids, self.table[0].weight), offset)


class TargetLogits(nn.Module):
    """A logit for each token; tokens that the model does not have get minus infinity."""

    bias: Tensor
    absent: Tensor

    def __init__(self, architecture: TranslatorArchitecture, table: WordTable) -> None:
        super().__init__()
        rows, width = architecture.vocabulary, architecture.width
        self.weight = None if architecture.tied else nn.Parameter(torch.empty(rows, width))
        if self.weight is not None:
            nn.init.normal_(self.weight, std=0.02)
        self.table = [table]
        self.scale = width**-0.5 if architecture.scaled_states else 1.0
        self.register_buffer("bias", torch.zeros(rows))
        absent = torch.zeros(rows)
        absent[0] = 0.0 if architecture.has_padding else float("-inf")
        self.register_buffer("absent", absent, persistent=False)

    def forward(self, states: Float[Tensor, "*n w"]) -> Float[Tensor, "*n v"]:
        """Logits of all tokens."""
        table = self.table[0].weight if self.weight is None else self.weight
        return F.linear(states * self.scale, table, self.bias + self.absent)


class PretrainedTranslator(Translator):
    """A translator whose parts are those of a pretrained one.

    Weights have the tokens around the source among their keys, and with `leads` the token that the
    decoder reads first among the keys of its self-attention.
    """

    def __init__(self, architecture: TranslatorArchitecture, dropout: float) -> None:
        """Build it with initial weights."""
        nn.Module.__init__(self)
        self.architecture = architecture
        self.frame = architecture.frame
        inputs = SourceInputs(architecture, dropout)
        self.source = inputs  # type: ignore[assignment]
        self.target = TargetInputs(architecture, dropout, inputs.words)  # type: ignore[assignment]
        self.encoder = TransformerEncoder(_options(architecture, architecture.layers, dropout))
        self.decoder = TransformerDecoder(
            DecoderOptions(
                _options(architecture, architecture.decoder_layers, dropout), architecture.width
            )
        )
        self.biases = nn.ModuleDict()
        for name, heads, hidden in (
            ("encoder", architecture.heads, architecture.feed_forward),
            ("decoder", architecture.decoder_heads, architecture.decoder_feed_forward),
        ):
            stack = getattr(self, name).stack
            _replace_parts(stack, architecture, heads, hidden, dropout)
            if architecture.places == "relative":
                bias = RelativeBias(
                    heads,
                    architecture.distances,
                    architecture.longest_distance,
                    both_ways=name == "encoder",
                )
                self.biases[name] = bias
                for block in stack:
                    block.own.relative.append(bias)
        self.words = TargetLogits(architecture, inputs.words)  # type: ignore[assignment]

    def encode(
        self, source: Int[Tensor, "b k"], lengths: Int[Tensor, "b"], *, need_weights: bool = False
    ) -> Context:
        """The source in context, with the tokens around it."""
        vectors = self.source(source, lengths)
        context: Context = self.encoder(
            vectors, lengths + sum(self.frame), need_weights=need_weights
        )
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
        """Logits of each next word, given the words before it; `target` begins with `<bos>`."""
        context = self.encode(source, source_lengths, need_weights=need_weights)
        lead = int(self.architecture.leads)
        vectors = self.target(F.pad(target, (lead, 0), value=LAST))
        decoded = self.decoder(vectors, context, need_weights=need_weights)
        states = decoded.states[:, lead:]
        rows = {name: weights[:, :, lead:] for name, weights in decoded.weights.items()}
        return Output(
            self.words(
                states
                if at is None
                else states[torch.arange(len(states), device=states.device), at]
            ),
            context.weights | rows,
        )

    def start(self, context: Context) -> State:
        """The state before `<bos>`."""
        state: State = self.decoder.start(context)
        if not self.architecture.leads:
            return state
        first = torch.full((len(context.states),), LAST, device=context.states.device)
        return super().step(first, state, need_weights=False)[1]


def _options(architecture: TranslatorArchitecture, layers: int, dropout: float) -> LayerOptions:
    return LayerOptions(
        architecture.width,
        layers=layers,
        heads=1,  # the parts of each block are replaced
        feed_forward=1,
        norm="post" if architecture.norm == "layer" else "pre",
        dropout=dropout,
        max_keys=architecture.positions,
    )


def _replace_parts(
    stack: TransformerStack,
    architecture: TranslatorArchitecture,
    heads: int,
    hidden: int,
    dropout: float,
) -> None:
    """Give blocks the attention, feed-forward networks and norms of the architecture."""
    width, biased = architecture.width, architecture.norm == "layer"

    def norm() -> nn.LayerNorm | nn.RMSNorm:
        kind = nn.LayerNorm if architecture.norm == "layer" else nn.RMSNorm
        return kind(width, architecture.epsilon)

    def attention() -> MultiHead:
        return MultiHead(
            width,
            heads,
            head_size=architecture.head_size,
            score="dot" if architecture.places == "relative" else "scaled_dot",
            dropout=dropout,
            bias=biased,
        )

    for block in stack:
        block.own, block.own_norm, block.feed_norm = attention(), norm(), norm()  # type: ignore[assignment]
        if block.source is not None:
            block.source, block.source_norm = attention(), norm()  # type: ignore[assignment]
        if architecture.gated:
            block.feed_forward = GatedFeedForward(  # type: ignore[assignment]
                width, hidden, architecture.activation, dropout, bias=biased
            )
        else:
            block.feed_forward = nn.Sequential(
                nn.Linear(width, hidden, biased),
                ACTIVATIONS[architecture.activation](),  # type: ignore[operator]
                Dropout(dropout),
                nn.Linear(hidden, width, biased),
            )
    if architecture.norm == "rms":
        stack.norm = norm()  # type: ignore[assignment]
