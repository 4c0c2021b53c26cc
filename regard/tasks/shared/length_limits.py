"""Whether a model has positions for the longest sequences of its data."""

from typing import Any

from regard.errors import OptionError
from regard.models.model_tables import ENCODERS


def check_max_length(model: Any, option: str, longest: int) -> None:
    """Refuse model options whose `max_length` is too short for the data.

    Args:
        model: the model options.
        option: the data option that limits the length of sequences.
        longest: its value.
    """
    kinds = [getattr(model, name, None) for name in ("model", "encoder", "decoder")]
    with_positions = any(kind is not None and _needs_positions(kind) for kind in kinds)
    if (with_positions or model.attention == "location") and longest >= model.max_length:
        raise OptionError("max_length", f"expected more than {option}, which is {longest}")


def _needs_positions(kind: str) -> bool:
    return kind in ENCODERS and getattr(ENCODERS[kind], "needs_positions", False)
