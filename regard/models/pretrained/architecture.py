"""What the network of a pretrained model is: its sizes and choices, as plain values."""

from dataclasses import dataclass
from typing import Annotated, Literal

from regard.errors import OptionError
from regard.models.model_options import Size
from regard.options import Bounds, between, check_fields

Activation = Literal["gelu", "gelu_tanh", "relu", "silu"]


@dataclass(frozen=True)
class EncoderArchitecture:
    """A transformer encoder of the BERT family (Devlin et al., 2019)."""

    family: str
    """The name of its kind, such as bert."""
    vocabulary: Annotated[int, between(4, 10**7)]
    """Number of tokens."""
    positions: Annotated[int, between(3, 10**6)]
    """Number of learned positions."""
    width: Size
    """Size of the states."""
    layers: Size
    """Number of blocks."""
    heads: Size
    """Number of heads of each block."""
    feed_forward: Size
    """Hidden size of the feed-forward networks."""
    word_size: Size
    """Size of the word vectors."""
    activation: Activation = "gelu"
    """Activation of the feed-forward networks."""
    epsilon: Annotated[float, Bounds(0, 1, low_open=True)] = 1e-12
    """What layer normalization adds to the variance."""
    pooling: Literal["first", "mean"] = "first"
    """What a text is classified by: the state of the first token, or the mean of all."""
    dense: Literal["none", "tanh", "relu", "gelu"] = "none"
    """Activation of a hidden layer before the decision on a text; none: no such layer."""
    first: str = "[CLS]"
    """What the model calls the token that is put before a text."""
    last: str = "[SEP]"
    """What the model calls the token that is put after a text."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.width % self.heads:
            raise OptionError("heads", f"{self.heads} heads do not divide a width of {self.width}")

    @property
    def max_tokens(self) -> int:
        """Number of tokens of a text, without those around it."""
        return self.positions - 2


@dataclass(frozen=True)
class DecoderArchitecture:
    """A language model like GPT-2 (Radford et al., 2019) or Llama (Touvron et al., 2023)."""

    family: str
    """The name of its kind, such as gpt2."""
    vocabulary: Annotated[int, between(4, 10**7)]
    """Number of tokens."""
    positions: Annotated[int, between(2, 10**7)]
    """Longest text, in tokens."""
    width: Size
    """Size of the states."""
    layers: Size
    """Number of blocks."""
    heads: Size
    """Number of heads of each block."""
    key_heads: Size
    """Number of heads that keys and values have."""
    head_size: Size
    """Size of a head."""
    feed_forward: Size
    """Hidden size of the feed-forward networks."""
    activation: Activation = "gelu_tanh"
    """Activation of the feed-forward networks."""
    gated: bool = False
    """Whether feed-forward networks have a gate (SwiGLU)."""
    norm: Literal["layer", "rms"] = "layer"
    """Normalization before each part and after the last block."""
    epsilon: Annotated[float, Bounds(0, 1, low_open=True)] = 1e-5
    """What normalization adds to the variance."""
    places: Literal["learned", "rotary"] = "learned"
    """How attention knows positions: learned vectors, or rotated queries and keys."""
    rotary_base: Annotated[float, Bounds(1, high_open=True)] = 10000.0
    """Base of the rotation's frequencies."""
    rotary_factor: Annotated[float, between(1, 10**6)] = 1.0
    """How much slower the rotation is than in the first training of the model."""
    rotary_first_length: Annotated[int, between(0, 10**7)] = 0
    """Longest text of that training; with it, only low frequencies are slower (0: all)."""
    rotary_slow: Annotated[float, Bounds(0, 10**6, low_open=True)] = 1.0
    """Turns within that length below which a frequency is divided by the whole factor."""
    rotary_fast: Annotated[float, Bounds(0, 10**6, low_open=True)] = 4.0
    """Turns within that length above which a frequency is unchanged."""
    query_bias: bool = True
    """Whether the projections of queries, keys and values have a bias."""
    output_bias: bool = True
    """Whether the projection after the heads has a bias."""
    feed_bias: bool = True
    """Whether feed-forward networks have biases."""
    tied: bool = True
    """Whether the table of the first layer predicts tokens too."""
    begins: bool = False
    """Whether a text begins with `<bos>`; otherwise with `<eos>`, which stands between texts."""
    has_padding: bool = False
    """Whether the model has a token for padding, which gets a logit."""
    has_unknown: bool = False
    """Whether the model has a token for what is unknown."""
    has_begin: bool = False
    """Whether the model has a token that begins texts, other than the one that ends them."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.heads % self.key_heads:
            raise OptionError(
                "key_heads", f"{self.heads} heads cannot share {self.key_heads} key heads evenly"
            )
        if self.rotary_fast <= self.rotary_slow:
            raise OptionError(
                "rotary_fast", f"expected more than {self.rotary_slow:g}, the rotary_slow"
            )
        if self.places == "rotary" and self.head_size % 2:
            raise OptionError("head_size", f"rotary heads have an even size, not {self.head_size}")

    @property
    def max_tokens(self) -> int:
        """Number of tokens of a text, without the one before it."""
        return self.positions - 1


@dataclass(frozen=True)
class TranslatorArchitecture:
    """An encoder–decoder like BART (Lewis et al., 2020), Marian or T5 (Raffel et al., 2020)."""

    family: str
    """The name of its kind, such as marian."""
    vocabulary: Annotated[int, between(4, 10**7)]
    """Number of tokens, of both languages together."""
    positions: Annotated[int, between(3, 10**6)]
    """Longest source or target, in tokens, with those around it."""
    width: Size
    """Size of the states."""
    layers: Size
    """Number of blocks of the encoder."""
    decoder_layers: Size
    """Number of blocks of the decoder."""
    heads: Size
    """Number of heads of the encoder."""
    decoder_heads: Size
    """Number of heads of the decoder."""
    feed_forward: Size
    """Hidden size of the feed-forward networks of the encoder."""
    decoder_feed_forward: Size
    """Hidden size of the feed-forward networks of the decoder."""
    head_size: Size | None = None
    """Size of a head (default: width / heads)."""
    activation: Activation = "gelu"
    """Activation of the feed-forward networks."""
    gated: bool = False
    """Whether feed-forward networks have a gate."""
    norm: Literal["layer", "rms"] = "layer"
    """Kind of normalization: after each part where it is "layer", before it where "rms"."""
    epsilon: Annotated[float, Bounds(0, 1, low_open=True)] = 1e-5
    """What normalization adds to the variance."""
    places: Literal["learned", "sinusoids", "relative"] = "learned"
    """How positions are known: vectors that are added, or biases of self-attention by distance."""
    distances: Annotated[int, between(4, 10**4)] = 32
    """Number of ranges of distances that have biases of their own."""
    longest_distance: Annotated[int, between(3, 10**6)] = 128
    """Distance from which on all have the same bias."""
    scaled_words: bool = False
    """Whether word vectors are multiplied by √width."""
    input_norm: bool = False
    """Whether the inputs of the first blocks are normalized."""
    tied: bool = True
    """Whether the table of word vectors predicts tokens too."""
    scaled_states: bool = False
    """Whether the last states are divided by √width before they predict."""
    begins: bool = False
    """Whether a source begins with `<bos>`; every source ends with `<eos>`."""
    leads: bool = False
    """Whether the decoder reads `<eos>` before `<bos>`."""
    has_padding: bool = False
    """Whether the model has a token for padding, which gets a logit."""
    begin_name: str = "<bos>"
    """What the model calls the token that its decoder begins with."""
    end_name: str = "<eos>"
    """What the model calls the token that ends texts."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.head_size is not None:
            return
        for name, heads in (("heads", self.heads), ("decoder_heads", self.decoder_heads)):
            if self.width % heads:
                raise OptionError(name, f"{heads} heads do not divide a width of {self.width}")

    @property
    def frame(self) -> tuple[int, int]:
        """How many tokens stand before and after a source."""
        return int(self.begins), 1

    @property
    def max_tokens(self) -> int:
        """Number of tokens of a source, without those around it."""
        return self.positions - sum(self.frame)
