"""The table of architectures that can be imported, and what a row of it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.plugins import Table

if TYPE_CHECKING:
    from regard.pretrained.checkpoint import Checkpoint


@dataclass(frozen=True)
class Source:
    """Where a weight of Regard's network comes from."""

    names: tuple[str, ...]
    """Tensors of the checkpoint."""
    convert: Callable[..., Tensor] = lambda tensor: tensor
    """From these tensors to the weight; it must work on torch's meta device too, where shapes are
    compared."""
    vocabulary: bool = False
    """Whether its rows are tokens, which are renumbered."""
    optional: bool = False
    """Whether a checkpoint may lack it, where a new head is trained."""
    others: tuple[str, ...] = ()
    """Further names that a single tensor may have instead."""
    zero_if_missing: bool = False
    """Whether it is zero where a checkpoint lacks it."""


Sources = dict[str, Source]
"""Sources by the names of Regard's weights."""


@dataclass(frozen=True)
class Family:
    """One architecture: how its config is read, and what its weights are called."""

    name: str
    """As `model_type` in config.json."""
    prefix: str
    """What the names of its weights begin with, in a model with a head."""
    architecture: "Callable[[Checkpoint], Any]"
    """From the config to sizes and choices, such as an `EncoderArchitecture`; RegardError where
    they are not supported."""
    weights: "Callable[[Any], Sources]"
    """From sizes and choices to the names of the weights, without the prefix; without those of the
    head of an encoder."""
    text_head: Callable[[], Sources] = dict
    """Names of the weights of a head that classifies texts."""
    token_head: Callable[[], Sources] = dict
    """Names of the weights of a head that classifies tokens."""
    tasks: Mapping[str, str] = field(default_factory=dict)
    """The task of each class in the config's `architectures`."""
    headless: Sequence[str] = ()
    """Classes of that list without a head that Regard uses."""


def linear(ours: str, theirs: str, **options: Any) -> Sources:
    """Sources of a linear layer, or of a layer norm: weight and bias."""
    return {
        f"{ours}.{part}": Source((f"{theirs}.{part}",), **options) for part in ("weight", "bias")
    }


FAMILIES: Table[Family] = Table(
    "pretrained architecture",
    "regard.pretrained",
    {
        "bart": "regard.pretrained.bart:FAMILY",
        "bert": "regard.pretrained.bert:FAMILY",
        "distilbert": "regard.pretrained.distilbert:FAMILY",
        "electra": "regard.pretrained.electra:FAMILY",
        "gpt2": "regard.pretrained.gpt2:FAMILY",
        "llama": "regard.pretrained.llama:FAMILY",
        "marian": "regard.pretrained.bart:MARIAN_FAMILY",
        "mistral": "regard.pretrained.llama:MISTRAL_FAMILY",
        "mt5": "regard.pretrained.t5:MT5_FAMILY",
        "qwen2": "regard.pretrained.llama:QWEN_FAMILY",
        "roberta": "regard.pretrained.roberta:FAMILY",
        "t5": "regard.pretrained.t5:FAMILY",
        "xlm-roberta": "regard.pretrained.roberta:XLM_FAMILY",
    },
)
"""Architectures by `model_type`; other packages add rows in the group `regard.pretrained`."""
