"""Options of pretrained encoders."""

from dataclasses import fields
from typing import Any, Protocol, runtime_checkable

from regard.errors import OptionError

DEFAULTS: dict[str, Any] = {
    "epochs": 3,
    "patience": 3,
    "batch_tokens": 1024,
    "learning_rate": 5e-5,
    "warmup": 50,
    "schedule": "linear",
    "label_smoothing": 0.0,
    "average": 1,
    "dropout": 0.1,
    "word_dropout": 0.0,
}
"""Options with other defaults where a pretrained model is trained further: small steps, few
epochs, and a rate that falls to zero (Devlin et al., 2019)."""
ENCODER_DEFAULTS: dict[str, Any] = {**DEFAULTS, "learning_rate": 1e-4}
"""Those of encoders: MiniLM learns more with this rate (docs/benchmarks/learning.md)."""


@runtime_checkable
class PretrainedOptions(Protocol):
    """Data options that may name a pretrained model."""

    @property
    def pretrained(self) -> str | None:
        """Folder of the model."""
        ...

    @property
    def freeze_layers(self) -> int:
        """Number of blocks that are kept fixed."""
        ...


def check_pretrained(
    data: PretrainedOptions, model: Any, *, data_options: tuple[str, ...], used: tuple[str, ...]
) -> None:
    """Refuse options that a pretrained model decides itself.

    Args:
        data: the data options.
        model: the model options.
        data_options: data options that do not apply.
        used: model options that do apply.
    """
    if data.pretrained is None:
        if data.freeze_layers:
            raise OptionError("freeze_layers", "requires pretrained, which was not given")
        return
    of_model = tuple(field.name for field in fields(model) if field.name not in used)
    options: tuple[tuple[Any, tuple[str, ...]], ...] = ((data, data_options), (model, of_model))
    for config, names in options:
        for field in fields(config):
            if field.name in names and getattr(config, field.name) != field.default:
                raise OptionError(field.name, "does not apply with pretrained, which decides it")
