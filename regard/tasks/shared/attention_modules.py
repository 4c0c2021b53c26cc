"""The modules of a network that compute attention weights."""

from torch import nn

from regard.layers import MemoryAttention, MultiHead, Pooling
from regard.models.past_attention import PastAttention


def attention_modules(network: nn.Module) -> tuple[nn.Module, ...]:
    """All modules with a score and a normalizer: pooling by sum, mean or maximum has none."""
    return tuple(
        module
        for module in network.modules()
        if isinstance(module, MultiHead | MemoryAttention | PastAttention)
        or (isinstance(module, Pooling) and module.kind in ("weighted", "fixed"))
    )
