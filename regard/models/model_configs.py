"""The options of each model, with their checks.

They can be listed without torch, so that the help of a command appears at once.
"""

from dataclasses import dataclass
from typing import Literal

from regard.errors import OptionError, RegardError
from regard.models.model_options import (
    SAME_SIZE_SCORES,
    CellName,
    Count,
    DecoderName,
    EncoderName,
    NetworkName,
    NormalizerName,
    Proportion,
    ScoreName,
    ScoreOrNone,
    Size,
    check_causal,
    check_even_width,
    check_experts,
    check_heads,
    check_width,
    part_class,
)
from regard.models.model_tables import DECODERS, ENCODERS
from regard.options import check_fields


@dataclass(frozen=True)
class TranslatorConfig:
    """Architecture of a translator."""

    model: Literal["recurrent", "transformer"] = "recurrent"
    """Kind of encoder and decoder."""
    encoder: EncoderName | None = None
    """Kind of encoder (default: that of model)."""
    decoder: DecoderName | None = None
    """Kind of decoder (default: that of model)."""
    cell: CellName = "gru"
    """Recurrent cell."""
    attention: ScoreOrNone | None = None
    """Attention score; none: a recurrent decoder without attention (default: additive in a
    recurrent decoder, scaled_dot elsewhere)."""
    normalize: NormalizerName = "softmax"
    """Normalizer of the attention weights."""
    order: Literal["bahdanau", "luong"] = "luong"
    """Order of a recurrent decoder: bahdanau attends before each step, luong after it."""
    input_feeding: bool | None = None
    """Feed the attentional state into the next step (default: in Luong's order only)."""
    local: Literal["none", "m", "p"] = "none"
    """Local attention around the same position (m, monotonic) or a predicted one (p) (Luong et al.,
    2015)."""
    local_width: Size = 5
    """Number of positions on each side that local attention reaches."""
    width: Size = 256
    """Size of word vectors and states."""
    layers: Size | None = None
    """Number of layers of the encoder, and of a transformer decoder (default: 1 in a recurrent
    encoder, 3 in a transformer)."""
    decoder_layers: Size | None = None
    """Number of layers of the decoder (default: 1 in a recurrent decoder, layers in a
    transformer)."""
    heads: Size = 4
    """Number of heads of self-attention."""
    feed_forward: Size | None = None
    """Hidden size of a transformer's feed-forward networks (default: twice the width)."""
    experts: Count = 0
    """Number of experts that replace each feed-forward network; 0 for none."""
    top_k: Size | None = None
    """Number of experts that process each word (default: all)."""
    norm: Literal["pre", "post"] = "pre"
    """Layer normalization before (pre) or after (post) each part of a transformer block."""
    dropout: Proportion = 0.3
    """Proportion of features that are dropped in training."""
    tied: bool = True
    """Share the target word vectors between input and output."""
    max_length: Size = 1024
    """Maximum length of a sentence in tokens."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_experts(self.experts, self.top_k)
        encoder = part_class(ENCODERS, self.encoder_name)
        decoder = part_class(DECODERS, self.decoder_name)
        check_width(encoder, self.width, self.heads)
        check_width(decoder, self.width, self.heads)
        if self.attention == "none" and getattr(decoder, "needs_attention", False):
            raise RegardError(f"a {self.decoder_name} requires attention: choose a score")
        if getattr(encoder, "directions", 1) == 2:
            if self.width < 2:
                raise OptionError(
                    "width",
                    f"expected 2 or more for both directions of the encoder, got {self.width}",
                )
            if getattr(encoder, "attends", False):
                check_heads(2 * (self.width // 2), self.heads)
            if self.attention in SAME_SIZE_SCORES and not getattr(decoder, "attends", False):
                check_even_width(self.width, self.attention)

    @property
    def encoder_name(self) -> str:
        """Kind of encoder."""
        return self.encoder or self.model

    @property
    def decoder_name(self) -> str:
        """Kind of decoder."""
        return self.decoder or self.model


@dataclass(frozen=True)
class LanguageConfig:
    """Architecture of a language model."""

    model: EncoderName = "recurrent"
    """Kind of network: recurrent, transformer, or another causal encoder."""
    cell: CellName = "lstm"
    """Recurrent cell."""
    attention: ScoreOrNone | None = None
    """Attention score; none: a recurrent model without attention (default: additive over past
    states of a recurrent model, scaled_dot in a transformer)."""
    normalize: NormalizerName = "softmax"
    """Normalizer of the attention weights."""
    split: bool = False
    """Split past states into a key, a value and a prediction part (Daniluk et al., 2017)."""
    window: Size = 64
    """Number of past states that attention of a recurrent model reaches."""
    first: Literal["zero", "learned"] = "learned"
    """Initial state: zeros, or learned."""
    width: Size = 256
    """Size of word vectors and states."""
    word_size: Size | None = None
    """Size of the word vectors in the embedding table (default: that of pretrained vectors, or
    width)."""
    layers: Size | None = None
    """Number of layers (default: 4 in a transformer, 1 otherwise)."""
    heads: Size = 4
    """Number of attention heads in a transformer or self-attention."""
    feed_forward: Size | None = None
    """Hidden size of a transformer's feed-forward networks (default: four times the width)."""
    experts: Count = 0
    """Number of experts that replace each feed-forward network; 0 for none."""
    top_k: Size | None = None
    """Number of experts that process each word (default: all)."""
    dropout: Proportion = 0.2
    """Proportion of features that are dropped in training."""
    tied: bool = True
    """Share the word vectors between input and output."""
    max_length: Size = 1024
    """Number of tokens that a transformer attends to, the current one included; texts may be
    longer."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_experts(self.experts, self.top_k)
        check_causal(part_class(ENCODERS, self.model), self.model, self.width, self.heads)


@dataclass(frozen=True)
class ClassifierConfig:
    """Architecture of a classifier."""

    pooling: Literal["sum", "mean", "max", "weighted", "fixed", "self"] = "weighted"
    """How the states are pooled into one vector; self is a layer of self-attention, then the
    mean."""
    queries: Size = 1
    """Number of queries of fixed pooling."""
    attention: ScoreName | None = None
    """Attention score of pooling and of self-attention (default: additive in weighted pooling, dot
    in fixed pooling, scaled_dot in self-attention)."""
    normalize: NormalizerName = "softmax"
    """Normalizer of the attention weights."""
    encoder: EncoderName = "recurrent"
    """Kind of encoder, which gives words their context before pooling."""
    cell: CellName = "gru"
    """Recurrent cell."""
    width: Size = 128
    """Size of word vectors, and of states in each direction."""
    word_size: Size | None = None
    """Size of the word vectors in the embedding table (default: that of pretrained vectors, or
    width)."""
    layers: Size = 1
    """Number of layers of the encoder."""
    heads: Size = 4
    """Number of heads of self-attention."""
    feed_forward: Size | None = None
    """Hidden size of a transformer's feed-forward networks (default: four times the width)."""
    experts: Count = 0
    """Number of experts that make the decision, mixed by a gate, and of experts in each block of a
    transformer encoder; 0 for none."""
    top_k: Size | None = None
    """Number of experts that are used (default: all)."""
    dropout: Proportion = 0.5
    """Proportion of features that are dropped in training."""
    max_length: Size = 1024
    """Maximum length of a text in tokens."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_experts(self.experts, self.top_k)
        encoder = part_class(ENCODERS, self.encoder)
        check_width(encoder, self.width, self.heads)
        if self.pooling == "self":
            check_heads(self.width * getattr(encoder, "directions", 1), self.heads)
        if self.queries > 1 and self.pooling != "fixed":
            raise OptionError(
                "queries",
                f"{self.pooling} pooling has one query, got {self.queries}: choose fixed pooling",
            )


@dataclass(frozen=True)
class TaggerConfig:
    """Architecture of a tagger."""

    encoder: EncoderName = "recurrent_self"
    """Kind of encoder, which gives words their context; recurrent_self is a layer of self-attention
    over recurrent states."""
    attention: ScoreName = "scaled_dot"
    """Attention score of self-attention."""
    normalize: NormalizerName = "softmax"
    """Normalizer of the attention weights."""
    cell: CellName = "lstm"
    """Recurrent cell."""
    width: Size = 160
    """Size of word vectors; states of a recurrent encoder have it in each direction."""
    word_size: Size | None = None
    """Size of the word vectors in the embedding table (default: that of pretrained vectors, or
    width)."""
    characters: Count = 32
    """Size of character vectors; 0 for words alone."""
    character_features: Size = 64
    """Number of convolution features of a word's characters."""
    ngrams: Count = 96
    """Size of the vectors of character n-grams, which words with similar spelling share; 0 for
    none."""
    layers: Size | None = None
    """Number of layers of the encoder, or of its recurrent part (default: 1 in recurrent_self, 2
    otherwise)."""
    heads: Size = 4
    """Number of heads of self-attention."""
    feed_forward: Size | None = None
    """Hidden size of a transformer's feed-forward networks (default: four times the width)."""
    experts: Count = 0
    """Number of experts that replace each feed-forward network; 0 for none."""
    top_k: Size | None = None
    """Number of experts that process each word (default: all)."""
    crf: bool = True
    """Choose the labels of a sentence jointly with a conditional random field."""
    dropout: Proportion = 0.5
    """Proportion of features that are dropped in training."""
    max_length: Size = 1024
    """Maximum length of a sentence in words, for location attention."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_experts(self.experts, self.top_k)
        check_width(part_class(ENCODERS, self.encoder), self.width, self.heads)


@dataclass(frozen=True)
class AlgorithmConfig:
    """Architecture of a model that learns an algorithm."""

    model: NetworkName = "memory"
    """Kind of network: memory (a controller with an external memory), recurrent, transformer, or
    another causal encoder."""
    addressing: Literal["ntm", "dnc"] = "ntm"
    """How heads address memory: by content and by shifting (ntm), or by content, usage and order
    of writing (dnc)."""
    controller: Literal["feed_forward", "elman", "gru", "lstm"] = "feed_forward"
    """Network that controls the memory."""
    slots: Size = 48
    """Number of memory slots."""
    slot_width: Size = 20
    """Size of a memory slot."""
    read_heads: Size = 2
    """Number of read heads; every second one is initialized to search by content."""
    write_heads: Size = 1
    """Number of write heads; dnc has 1."""
    attention: ScoreName | None = None
    """Attention score of the heads (default: cosine similarity of memory heads, scaled_dot in a
    transformer)."""
    cell: CellName = "lstm"
    """Recurrent cell of the recurrent model."""
    width: Size = 64
    """Size of symbol vectors and states."""
    layers: Size | None = None
    """Number of layers (default: 3 in a transformer, 1 otherwise)."""
    heads: Size = 4
    """Number of attention heads in a transformer or self-attention."""
    dropout: Proportion = 0.0
    """Proportion of features that are dropped in training."""
    max_length: Size = 512
    """Maximum length of a problem with its answer in symbols."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.model != "memory":
            check_causal(part_class(ENCODERS, self.model), self.model, self.width, self.heads)
        elif self.addressing == "dnc" and self.write_heads > 1:
            raise OptionError(
                "write_heads", f"the memory of a DNC has one write head, got {self.write_heads}"
            )
