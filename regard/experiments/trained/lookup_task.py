"""A task to compare scores on: look up the value of a key among eight pairs, by one attention."""

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention import attend
from regard.attention.scores import make_score
from regard.experiments.fitting import fit
from regard.layers import MultiHead

SYMBOLS, PAIRS, WIDTH = 16, 8, 32


class Lookup(nn.Module):
    """Reads the value of a key; the score is all that varies."""

    def __init__(self, score: str) -> None:
        super().__init__()
        self.query, self.key = nn.Embedding(SYMBOLS, WIDTH), nn.Embedding(SYMBOLS, WIDTH)
        self.value, self.output = nn.Embedding(SYMBOLS, WIDTH), nn.Linear(WIDTH, SYMBOLS)
        self.score = make_score(score, WIDTH, WIDTH, max_keys=PAIRS)

    def forward(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Logits of the value."""
        vectors = self.query(query)[:, None], self.key(keys), self.value(values)
        read = attend(*vectors, score=self.score, need_weights=False).output[:, 0]
        logits: Tensor = self.output(read)
        return logits


def lookups(count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The key that is looked up, keys and values of all pairs, and the right value."""
    keys = torch.rand(count, SYMBOLS).argsort(1)[:, :PAIRS]
    values, chosen = torch.randint(SYMBOLS, (count, PAIRS)), torch.randint(PAIRS, (count, 1))
    return keys.gather(1, chosen)[:, 0], keys, values, values.gather(1, chosen)[:, 0]


def lookup_accuracy(score: str, updates: int) -> float:
    """The share of right values after training with a score."""
    network = Lookup(score)

    def loss() -> Tensor:
        *problem, right = lookups(64)
        return F.cross_entropy(network(*problem), right)

    fit(network, loss, updates, 1e-2)
    *problem, right = lookups(1000)
    with torch.no_grad():
        return float((network(*problem).argmax(-1) == right).float().mean())


def held_for_backward(forward: Callable[[], object]) -> int:
    """Bytes that a forward pass keeps for the backward pass, weights included."""
    storages: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = forward()  # while it lives, no storage is used twice
    del output
    return sum(storages.values())


def time_and_memory(score: str, length: int, repeats: int) -> tuple[float, float]:
    """Milliseconds of processor time, forward and backward, and MB held: 4 heads, 4 texts."""
    layer, inputs = MultiHead(64, heads=4, score=score), torch.randn(4, length, 64)

    def output() -> Tensor:
        found: Tensor = layer(inputs, need_weights=False).output
        return found

    output().sum().backward()  # the first call is slower
    started = time.process_time()
    for _ in range(repeats):
        output().sum().backward()
    seconds = (time.process_time() - started) / repeats
    return 1000 * seconds, held_for_backward(output) / 1e6
