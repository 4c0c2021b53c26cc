"""Scores and a normalizer as another package may write them: regard knows nothing of them."""

import importlib.metadata
from importlib.metadata import EntryPoint

import pytest
import torch
from torch import Tensor, nn

from regard import plugins
from regard.plugins import Table

HERE = "tests.attention.foreign_scores"


def distance(query: Tensor, key: Tensor) -> Tensor:
    """-|q - k|², without weights."""
    return -(query[..., :, None, :] - key[..., None, :, :]).square().sum(-1)


class LearnedDistance(nn.Module):
    """-|A q - B k|², with weights from sizes."""

    def __init__(self, query_size: int, key_size: int) -> None:
        super().__init__()
        self.of_query = nn.Linear(query_size, 3)
        self.of_key = nn.Linear(key_size, 3, bias=False)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        return distance(self.of_query(query), self.of_key(key))


def squares(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Weights in proportion to s²; a normalizer."""
    weights = scores.square() if mask is None else scores.square().masked_fill(~mask, 0.0)
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)


class NeedsMore(nn.Module):
    def __init__(self, query_size: int, temperature: float) -> None:
        super().__init__()


class Chosen:
    """A class whose hidden size has a default of its own, and whose width has none."""

    def __init__(self, key_size: int, max_keys: int, hidden: int = 17, slope: float = 1.0) -> None:
        self.sizes = key_size, max_keys, hidden

    def __call__(self, query: Tensor, key: Tensor) -> Tensor:
        return torch.zeros(*query.shape[:-1], key.shape[-2])


def install(monkeypatch: pytest.MonkeyPatch, table: Table, **references: str) -> None:
    """Let a table find these entry points as if packages that declare them were installed."""
    declared = [EntryPoint(name, value, table.group) for name, value in references.items()]

    def entry_points(group: str) -> list[EntryPoint]:
        assert group == table.group
        return [*importlib.metadata.entry_points(group=group), *declared]

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    monkeypatch.setattr(table, "_plugins", None)
    monkeypatch.setattr(table, "_rows", dict(table._rows))
    monkeypatch.setattr(table, "_broken", set())
