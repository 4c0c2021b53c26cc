"""The problems that are measured, and everyone who solves them.

A contestant is a function from a problem to a run: it makes its inputs, and the run computes
attention from them, forward or forward and backward.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard import attend
from regard.attention import masks
from regard.attention.additive import additive_attention, additive_scores
from regard.layers import MultiHead

Run = Callable[[], object]


@dataclass(frozen=True)
class Additive:
    """softmax(wᵀ tanh(query + key)) value; query and key projected already, for everyone."""

    batch: int
    queries: int
    keys: int
    hidden: int = 256
    backward: bool = False

    def tensors(self) -> list[Tensor]:
        """Query, key, value, and the weight w."""
        torch.manual_seed(0)
        shapes = [(self.batch, n, self.hidden) for n in (self.queries, self.keys, self.keys)]
        made = [torch.randn(shape) for shape in shapes]
        made.append(torch.randn(self.hidden) / math.sqrt(self.hidden))
        return [tensor.requires_grad_(self.backward) for tensor in made]

    @property
    def work(self) -> float:
        """How many tanh the equation has; the backward takes each again, rather than keep it."""
        pairs = self.batch * self.queries * self.keys
        return pairs * self.hidden * (2 if self.backward else 1)

    def tiny(self) -> "Additive":
        return Additive(1, min(2, self.queries), 3, 32, self.backward)

    def __str__(self) -> str:
        return f"b{self.batch} q{self.queries} k{self.keys} hidden {self.hidden}" + _how(self)


@dataclass(frozen=True)
class Dot:
    """softmax(query keyᵀ / √d) value under a mask."""

    queries: int
    keys: int
    mask: str = "plain"
    backward: bool = False
    batch: int = 1
    heads: int = 8
    size: int = 64

    def tensors(self) -> list[Tensor]:
        """Query, key and value."""
        torch.manual_seed(0)
        shapes = [
            (self.batch, self.heads, n, self.size) for n in (self.queries, self.keys, self.keys)
        ]
        return [torch.randn(shape, requires_grad=self.backward) for shape in shapes]

    def embedded(self) -> Tensor:
        """A sequence before the projections that make queries, keys and values of it."""
        torch.manual_seed(0)
        shape = (self.batch, self.keys, self.heads * self.size)
        return torch.randn(shape, requires_grad=self.backward)

    @property
    def lazy(self) -> masks.Mask | None:
        match self.mask:
            case "plain":
                return None
            case "causal":
                return masks.causal()
            case "window":
                return masks.causal() & masks.window(256)
            case "lengths":
                return masks.lengths([self.keys - self.keys // 4] * self.batch)
        raise ValueError(f"no mask {self.mask!r}")

    def matrix(self) -> Tensor | None:
        """The mask as a tensor, for those who need it so."""
        return self.lazy and self.lazy.tensor((self.batch, 1, self.queries, self.keys))

    @property
    def work(self) -> float:
        """Multiplications and additions at open pairs; backward makes the scores again: 5 to 2."""
        match self.mask:
            case "causal":
                open_pairs = self.queries * (self.keys - (self.queries - 1) / 2)
            case "window":
                open_pairs = min(256, self.keys) * self.queries
            case "lengths":
                open_pairs = self.queries * (self.keys - self.keys // 4)
            case _:
                open_pairs = self.queries * self.keys
        forward = 4 * self.batch * self.heads * self.size * open_pairs
        return forward * (3.5 if self.backward else 1.0)

    def tiny(self) -> "Dot":
        queries = min(16, self.queries)
        return Dot(queries, max(queries, 16), self.mask, self.backward, 1, 2, self.size)

    def __str__(self) -> str:
        sizes = f"q{self.queries} k{self.keys}"
        if self.queries == self.keys:
            sizes = f"T {self.queries}"
        return f"{sizes} b{self.batch} h{self.heads} d{self.size} {self.mask}" + _how(self)


Problem = Additive | Dot


def _how(problem: Problem) -> str:
    return ", forward+backward" if problem.backward else ", forward"


def _run(backward: bool, inputs: list[Tensor], forward: Callable[..., Tensor]) -> Run:
    if not backward:

        def run() -> object:
            with torch.no_grad():
                return forward(*inputs)

        return run
    learned = [tensor for tensor in inputs if tensor.requires_grad]
    query = inputs[0]  # everyone's output has its shape, and so has the gradient that comes in
    gradient = torch.ones(query.shape)

    def run_back() -> object:
        output = forward(*inputs)
        return output.detach(), torch.autograd.grad(output, learned, gradient)

    return run_back


def additive_ours(problem: Additive, need_weights: bool = False) -> Run:
    """What `attend` does once queries and keys are projected: the C kernel where it was built."""

    def forward(query: Tensor, key: Tensor, value: Tensor, weight: Tensor) -> Tensor:
        if not need_weights:
            return additive_attention(query, key, weight, value)
        return attend(query, key, value, score=lambda q, k: additive_scores(q, k, weight)).output

    return _run(problem.backward, problem.tensors(), forward)


def additive_blocks(problem: Additive) -> Run:
    """Ours without the C kernel."""
    return _run(
        problem.backward,
        problem.tensors(),
        lambda query, key, value, weight: additive_attention(
            query, key, weight, value, native=False
        ),
    )


def additive_naive(problem: Additive) -> Run:
    """The equation as it stands."""

    def forward(query: Tensor, key: Tensor, value: Tensor, weight: Tensor) -> Tensor:
        scores = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ weight
        return scores.softmax(-1) @ value

    return _run(problem.backward, problem.tensors(), forward)


def additive_keras(problem: Additive) -> Run:
    """Keras's layer on torch; its formula is Bahdanau's without the projections."""
    os.environ["KERAS_BACKEND"] = "torch"
    import keras

    query, key, value, _ = problem.tensors()
    layer = keras.layers.AdditiveAttention()
    layer([query, value, key])
    weight = layer.weights[0].value if problem.backward else query.new_empty(0)
    return _run(
        problem.backward,
        [query, key, value, weight],
        lambda query, key, value, _: layer([query, value, key]),
    )


def dot_ours(problem: Dot, need_weights: bool = False) -> Run:
    """`attend`."""
    return _run(
        problem.backward,
        problem.tensors(),
        lambda *inputs: attend(*inputs, problem.lazy, need_weights=need_weights).output,
    )


def dot_naive(problem: Dot) -> Run:
    """The equation as it stands."""
    matrix = problem.matrix()

    def forward(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = query @ key.mT / math.sqrt(problem.size)
        if matrix is not None:
            scores = scores.masked_fill(~matrix, float("-inf"))
        return scores.softmax(-1) @ value

    return _run(problem.backward, problem.tensors(), forward)


def dot_sdpa(problem: Dot) -> Run:
    """Torch's fused kernel; it takes `is_causal` where that is right, and else the mask."""
    if problem.mask == "causal" and problem.queries == problem.keys:
        options: dict[str, object] = {"is_causal": True}
    else:
        options = {"attn_mask": problem.matrix()}
    return _run(
        problem.backward,
        problem.tensors(),
        lambda *inputs: F.scaled_dot_product_attention(*inputs, **options),
    )


def dot_flex(problem: Dot) -> Run:
    """FlexAttention, compiled; on the CPU it has no backward."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    offset = problem.keys - problem.queries
    rules: dict[str, Callable[..., Tensor]] = {
        "causal": lambda b, h, q, k: k <= q + offset,
        "window": lambda b, h, q, k: (k <= q + offset) & (q + offset - k < 256),
        "lengths": lambda b, h, q, k: k < problem.keys - problem.keys // 4,
    }
    block_mask = None
    if problem.mask != "plain":
        sizes = problem.queries, problem.keys
        block_mask = create_block_mask(rules[problem.mask], None, None, *sizes, device="cpu")
    compiled = torch.compile(flex_attention, dynamic=False)
    return _run(False, problem.tensors(), lambda *inputs: compiled(*inputs, block_mask=block_mask))


def layer_torch(problem: Dot) -> Run:
    """`nn.MultiheadAttention`: the same with four projections."""
    width = problem.heads * problem.size
    layer = nn.MultiheadAttention(width, problem.heads, batch_first=True).train(problem.backward)
    causal = problem.mask == "causal"
    mask = nn.Transformer.generate_square_subsequent_mask(problem.keys) if causal else None
    return _run(
        problem.backward,
        [problem.embedded(), *layer.parameters()],
        lambda x, *_: layer(x, x, x, attn_mask=mask, is_causal=causal, need_weights=False)[0],
    )


def layer_ours(problem: Dot) -> Run:
    """Our `MultiHead`: the same with four projections."""
    layer = MultiHead(problem.heads * problem.size, problem.heads).train(problem.backward)
    return _run(
        problem.backward,
        [problem.embedded(), *layer.parameters()],
        lambda x, *_: layer(x, mask=problem.lazy, need_weights=False).output,
    )


CONTESTANTS: dict[str, Callable[..., Run]] = {
    "additive: attend": additive_ours,
    "additive: attend, with weights": partial(additive_ours, need_weights=True),
    "additive: blocks alone": additive_blocks,
    "additive: naive": additive_naive,
    "additive: keras": additive_keras,
    "dot: attend": dot_ours,
    "dot: attend, with weights": partial(dot_ours, need_weights=True),
    "dot: SDPA": dot_sdpa,
    "dot: FlexAttention": dot_flex,
    "dot: naive": dot_naive,
    "dot: nn.MultiheadAttention (projects)": layer_torch,
    "dot: regard MultiHead (projects)": layer_ours,
}


def solvers(problem: Problem) -> list[str]:
    """Who can solve the problem, by name."""
    if isinstance(problem, Additive):
        return [name for name in CONTESTANTS if name.startswith("additive")]
    names = [name for name in CONTESTANTS if name.startswith("dot")]
    if problem.backward:
        names.remove("dot: FlexAttention")
    if problem.queries != problem.keys or problem.mask not in ("plain", "causal"):
        names = [name for name in names if not name.endswith("(projects)")]
    if problem.keys > 4096:  # the weights of all heads would be 8 GB and more
        names = [name for name in names if name not in ("dot: naive", "dot: attend, with weights")]
    return names
