"""Types of model options with their bounds and choices, and checks of options that belong together.

A config calls these checks when it is made, so that every config that can be made can be built.
"""

from typing import Annotated, Any, Literal

from regard.errors import OptionError
from regard.options import PROPORTION, OneOf, between
from regard.plugins import Table, import_reference, is_reference

MOST = 65_536
"""The largest size or number of parts that an option can name: beyond it lies a typing error."""
Size = Annotated[int, between(1, MOST)]
Count = Annotated[int, between(0, MOST)]
Proportion = Annotated[float, PROPORTION]
CellName = Literal["elman", "gru", "lstm"]
ScoreName = Annotated[str, OneOf("regard.attention.attention_tables:SCORES")]
ScoreOrNone = Annotated[str, OneOf("regard.attention.attention_tables:SCORES", extra=("none",))]
NormalizerName = Annotated[
    str, OneOf("regard.attention.attention_tables:NORMALIZERS", pattern=r"top_k\([1-9][0-9]*\)")
]
EncoderName = Annotated[str, OneOf("regard.models.model_tables:ENCODERS")]
NetworkName = Annotated[str, OneOf("regard.models.model_tables:ENCODERS", extra=("memory",))]
DecoderName = Annotated[str, OneOf("regard.models.model_tables:DECODERS")]

SAME_SIZE_SCORES = ("dot", "scaled_dot", "cosine")
"""Scores that compare queries and keys of the same size only."""


def part_class(table: Table[Any], name: str) -> Any:
    """The class of an encoder or decoder, by its name or a reference to it."""
    return import_reference(name) if is_reference(name) else table.row(name)


def check_width(part: Any, width: int, heads: int) -> None:
    """The width suits an encoder or decoder of this class."""
    if getattr(part, "attends", False):
        check_heads(width, heads)
    if getattr(part, "needs_positions", False):
        check_positions(width)


def check_causal(encoder: Any, name: str, width: int, heads: int) -> None:
    """The encoder of this class and name reads nothing ahead, and the width suits it."""
    if not getattr(encoder, "can_be_causal", False):
        raise OptionError(
            "model",
            f"encoder {name!r} reads ahead, so it cannot predict the next token: choose one whose "
            f"class sets can_be_causal = True",
        )
    check_width(encoder, width, heads)


def check_heads(width: int, heads: int) -> None:
    """Heads share the width equally."""
    if width % heads:
        raise OptionError(
            "heads", f"{heads} heads do not divide a width of {width}: choose another number"
        )


def check_positions(width: int) -> None:
    """Position encodings are pairs of sine and cosine."""
    if width % 2:
        raise OptionError(
            "width",
            f"expected an even number, since the position encodings of a transformer "
            f"are pairs of sine and cosine, got {width}",
        )


def check_experts(experts: int, top_k: int | None) -> None:
    """`top_k` chooses among the experts."""
    if top_k is not None and top_k > experts:
        expected = f"at most {experts}, the number of experts" if experts else "with experts only"
        raise OptionError("top_k", f"expected {expected}, got {top_k}")


def check_even_width(width: int, score: str) -> None:
    """Both directions of a recurrent encoder together are as wide as the decoder's state."""
    if width % 2:
        raise OptionError(
            "width",
            f"expected an even number, since {score} compares states of the decoder "
            f"with those of both directions of the encoder, got {width}",
        )
