"""A model as the `transformers` package stores it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from regard.data.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True)
class TransformersModel:
    """Its config, its weights, and what else stands in its folder."""

    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    """Content of generation_config.json; empty for none."""
    weights: Mapping[str, Tensor]
    tokenizers: Mapping[str, Tokenizer] = field(default_factory=dict)
    """By the folder in which each is written; empty for the model's own."""
    note: str = ""
    """What a user has to know, for the model card."""
