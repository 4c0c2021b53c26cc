"""Training for experiments: small networks on generated batches, and runs on built-in data."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention import masks
from regard.attention.positions import sinusoids
from regard.corpora import make_corpus
from regard.data.split import write_split
from regard.experiments.claims import Setting, T
from regard.inference.load_run import load
from regard.inference.run import Run
from regard.layers import Block
from regard.layers.multihead import Cache
from regard.layers.transformer import BlockCache
from regard.tasks.registry import TASKS
from regard.training.run import train_run


def seeded(make: Callable[[], T], seed: int) -> T:
    """A network whose weights, and words made after it, depend on a seed."""
    torch.manual_seed(seed)
    return make()


def fit(
    network: nn.Module, loss: Callable[[], Tensor], steps: int, learning_rate: float = 3e-3
) -> list[float]:
    """Make updates on the loss of fresh batches; the losses."""
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    network.train()
    losses = []
    for step in range(steps):
        for group in optimizer.param_groups:  # warm-up, then linear decay to a tenth
            group["lr"] = learning_rate * min(1.0, (step + 1) / 50) * (1 - 0.9 * step / steps)
        optimizer.zero_grad()
        value = loss()
        value.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        losses.append(float(value.detach()))
    network.eval()
    return losses


class CausalTransformer(nn.Module):
    """Predicts each next symbol from those before it.

    `positions` is none, sinusoids or learned (added to the input), rotary or linear (in the score).
    With `empty_key`, every layer has one more key, learned and before all others, whose value is
    zero: a head that attends to it reads nothing.
    """

    def __init__(
        self,
        symbols: int,
        width: int = 64,
        *,
        layers: int = 2,
        heads: int = 4,
        positions: str = "rotary",
        max_length: int = 64,
        feed_forward: bool = True,
        normalize: str = "softmax",
        empty_key: bool = False,
    ) -> None:
        super().__init__()
        self.positions, self.width, self.heads = positions, width, heads
        self.symbols = nn.Embedding(symbols, width)
        own = positions if positions in ("rotary", "linear") else "none"
        hidden = 2 * width if feed_forward else 1
        self.blocks = nn.ModuleList(
            Block(width, heads, hidden, positions=own, normalize=normalize) for _ in range(layers)
        )
        empty = layers if empty_key else 0
        self.empty_keys = nn.ParameterList(
            torch.zeros(heads, 1, width // heads) for _ in range(empty)
        )
        self.places = nn.Embedding(max_length, width) if positions == "learned" else None
        self.output = nn.Linear(width, symbols)

    def forward(self, symbols: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Logits, and the weights [b, h, t, t] of each layer; an empty key is the first column."""
        states, weights = self.symbols(symbols), list[Tensor]()
        if self.positions == "sinusoids":
            states = states + sinusoids(symbols.shape[1], self.width)
        if self.places is not None:  # places beyond the last one that was learned are the last
            last = self.places.num_embeddings - 1
            states = states + self.places(torch.arange(symbols.shape[1]).clamp(max=last))
        for number, block in enumerate(self.blocks):
            cache = None
            if len(self.empty_keys):
                key = self.empty_keys[number].expand(len(symbols), -1, -1, -1)
                cache = BlockCache(Cache(key, torch.zeros_like(key)), None)
            passed = block(states, masks.causal(), cache=cache)
            states = passed.output
            weights.append(passed.weights["self"])
        return self.output(states), weights


def next_symbol_loss(logits: Tensor, symbols: Tensor, scored: Tensor) -> Tensor:
    """The mean cross-entropy of the next symbols that are scored; `scored` is [b, t] of bools."""
    losses = F.cross_entropy(
        logits[:, :-1].flatten(0, 1), symbols[:, 1:].flatten(), reduction="none"
    )
    chosen = scored[:, 1:].flatten()
    return losses[chosen].mean()


def train_on_built_in_data(setting: Setting, task: str, name: str, **options: Any) -> Run:
    """A run on the built-in corpus, or on a small part of it; kept in the experiment's folder.

    Each size has runs and data of its own.
    """
    if TASKS.row(task).generated is None:
        options |= data_files(setting, str(TASKS.row(task).corpus))
    place = setting.folder / "runs" / setting.size / name
    folder, _ = train_run(task, options, place, device=setting.device)
    return load(folder.path, setting.device)


def data_files(setting: Setting, corpus: str) -> dict[str, list[str]]:
    """Training and validation data in files, made once; a part of the whole corpus."""
    folder = setting.folder / "data" / setting.size
    if not folder.exists():
        made = make_corpus(corpus, setting.pick(100, 8000, None))
        valid = made.valid[: setting.pick(5, 100, None)]
        assigned = [("train", example) for example in made.train]
        write_split(folder, [*assigned, *(("valid", example) for example in valid)], "jsonl")
    files = {path.stem: [str(path)] for path in folder.iterdir()}
    return {"data": files["train"], "valid": files["valid"]}
