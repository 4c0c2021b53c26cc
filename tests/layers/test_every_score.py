"""Every score, and a user's own, in every layer that attends."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from regard.attention.attention_tables import SCORES
from regard.layers import (
    BahdanauStep,
    Block,
    Experts,
    LuongStep,
    Memory,
    MemoryAttention,
    MultiHead,
    Pooling,
)
from tests.attention.foreign_scores import HERE, distance, install

B, Q, K, SIZE, HEADS, MAX_KEYS = 2, 3, 7, 5, 2, 11
WIDTH = SIZE * HEADS


@pytest.fixture(autouse=True)
def _plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, SCORES, far=f"{HERE}:distance", far_learned=f"{HERE}:LearnedDistance")


GIVEN = {
    "dot": "dot",
    "scaled_dot": "scaled_dot",
    "cosine": "cosine",
    "bilinear": "bilinear",
    "general": "general",
    "mlp": "mlp",
    "additive": "additive",
    "concat": "concat",
    "location": "location",
    "lambda": lambda query, key: distance(query, key),
    "plug-in": "far",
    "reference": f"{HERE}:distance",
    "plug-in module": "far_learned",
    "reference to a module": f"{HERE}:LearnedDistance",
}
every_score = pytest.mark.parametrize("name", GIVEN)


def fit(name: str, score: nn.Module, query: Tensor, keys: Tensor, j: int) -> Tensor:
    """How well one query and the j-th key fit, from the equation."""
    key = keys[j]
    if name in ("dot", "scaled_dot"):
        return query @ key / (1 if name == "dot" else len(key) ** 0.5)
    if name == "cosine":
        return query @ key / (query.norm() * key.norm())
    if name in ("bilinear", "general"):
        return query @ score.weight @ key
    if name == "mlp":
        return query @ (score.hidden.weight @ key + score.hidden.bias).tanh()
    if name in ("additive", "concat"):
        both = torch.cat([score.query.weight, score.key.weight], 1) @ torch.cat([query, key])
        return score.weight @ (both + score.query.bias).tanh()
    if name == "location":
        return score.where.weight[j] @ query
    if name.endswith("module"):
        query, key = score.of_query(query), score.of_key.weight @ key
    return -(query - key).square().sum()


def read(
    name: str, score: nn.Module, query: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """What one query reads, and its weights, key after key."""
    fits = [fit(name, score, query, keys, j) for j in range(len(keys))]
    total = sum(one.exp() for one in fits)
    weights = [one.exp() / total for one in fits]
    return sum(w * v for w, v in zip(weights, values, strict=True)), torch.stack(weights)


def double(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def same(
    layer: nn.Module,
    found: tuple[Tensor, Tensor],
    expected: tuple[Tensor, Tensor],
    *inputs: Tensor,
) -> None:
    """Outputs, weights, and the gradients of all inputs and parameters."""
    variables = [*inputs, *layer.parameters()]
    assert_close(found[0], expected[0])
    assert_close(found[1], expected[1])
    direction = torch.randn_like(expected[0])
    ours, theirs = (
        torch.autograd.grad((output * direction).sum(), variables, allow_unused=True)
        for output, _ in (found, expected)
    )
    for gradient, correct, parameter in zip(ours, theirs, variables, strict=True):
        zero = torch.zeros_like(parameter)
        assert_close(zero if gradient is None else gradient, zero if correct is None else correct)


@every_score
def test_multihead_equals_a_loop(name: str) -> None:
    layer = MultiHead(WIDTH, HEADS, key_width=13, score=GIVEN[name], max_keys=MAX_KEYS).double()
    query, source = double(B, Q, WIDTH), double(B, K, 13)
    queries, keys, values = (
        projection(x).unflatten(-1, (HEADS, SIZE))
        for projection, x in ((layer.query, query), (layer.key, source), (layer.value, source))
    )
    outputs, rows = [], []
    for b in range(B):
        for q in range(Q):
            heads = [
                read(name, layer.score, queries[b, q, h], keys[b, :, h], values[b, :, h])
                for h in range(HEADS)
            ]
            outputs.append(layer.output(torch.cat([output for output, _ in heads])))
            rows.append(torch.stack([weights for _, weights in heads]))
    looked = layer(query, source)
    weights = torch.stack(rows).unflatten(0, (B, Q)).transpose(1, 2)
    expected = torch.stack(outputs).unflatten(0, (B, Q))
    same(layer, (looked.output, looked.weights), (expected, weights), query, source)
    assert_close(layer(query, source, need_weights=False).output, expected)


@every_score
@pytest.mark.parametrize("kind", ["weighted", "fixed"])
def test_pooling_equals_a_loop(kind: str, name: str) -> None:
    queries = 3 if kind == "fixed" else 1
    layer = Pooling(SIZE, kind, queries=queries, score=GIVEN[name], max_keys=MAX_KEYS).double()
    states = double(B, K, SIZE)
    outputs, rows = [], []
    for words in states:
        asking = layer.queries if kind == "fixed" else [layer.context(sum(words) / K)]
        pairs = [read(name, layer.score, query, words, words) for query in asking]
        outputs.append(torch.cat([output for output, _ in pairs]))
        rows.append(torch.stack([weights for _, weights in pairs]))
    same(layer, layer(states), (torch.stack(outputs), torch.stack(rows)), states)


@every_score
def test_memory_attention_equals_a_loop(name: str) -> None:
    layer = MemoryAttention(SIZE, SIZE, score=GIVEN[name], max_keys=MAX_KEYS).double()
    query, states, lengths = double(B, Q, SIZE), double(B, K, SIZE), [K, 4]
    pairs = [
        read(name, layer.score, query[b, q], states[b, : lengths[b]], states[b, : lengths[b]])
        for b in range(B)
        for q in range(Q)
    ]
    expected = torch.stack([output for output, _ in pairs]).unflatten(0, (B, Q))
    rows = [nn.functional.pad(weights, (0, K - len(weights))) for _, weights in pairs]
    memory = layer.prepare(states, torch.tensor(lengths))
    weights = torch.stack(rows).unflatten(0, (B, Q))
    same(layer, layer(query, memory), (expected, weights), query, states)
    assert_close(layer(query, memory, need_weights=False).output, expected)


@every_score
@pytest.mark.parametrize("make", [BahdanauStep, LuongStep])
def test_decoder_steps_equal_a_loop(make: type, name: str) -> None:
    step = make(11, MemoryAttention(SIZE, SIZE, score=GIVEN[name], max_keys=MAX_KEYS)).double()
    word, hidden, source = double(B, 11), double(B, SIZE), double(B, K, SIZE)
    fed = [torch.zeros(B, SIZE).double()] if step.input_feeding else []
    if make is LuongStep:
        state = step.cell.step(torch.cat([word, *fed], -1), hidden)
    asking = hidden if make is BahdanauStep else state
    pairs = [read(name, step.reading.score, asking[b], source[b], source[b]) for b in range(B)]
    context = torch.stack([output for output, _ in pairs])
    if make is BahdanauStep:
        state = step.cell.step(torch.cat([word, context], -1), hidden)
        expected = step.output(torch.cat([state, context, word], -1)).tanh()
    else:
        expected = step.output(torch.cat([context, state], -1)).tanh()
    found = step(word, step.initial(hidden), step.reading.prepare(source))
    same(step, (found.output, found.weights), (expected, torch.stack([w for _, w in pairs])))


def multihead(score: object) -> tuple:
    layer = MultiHead(WIDTH, HEADS, score=score, max_keys=MAX_KEYS)
    looked = layer(torch.randn(B, K, WIDTH))
    return layer, (looked.output, [looked.weights])


def pooling(kind: str) -> Callable:
    def run(score: object) -> tuple:
        layer = Pooling(WIDTH, kind, score=score, max_keys=MAX_KEYS)
        output, weights = layer(torch.randn(B, K, WIDTH))
        return layer, (output, [weights])

    return run


def reading(local: str) -> Callable:
    def run(score: object) -> tuple:
        layer = MemoryAttention(SIZE, SIZE, score=score, local=local, max_keys=MAX_KEYS)
        memory = layer.prepare(torch.randn(B, K, SIZE), torch.tensor([K, 3]))
        attended = layer(torch.randn(B, 3, SIZE, requires_grad=True), memory)
        return layer, (attended.output, [attended.weights])

    return run


def step(make: type) -> Callable:
    def run(score: object) -> tuple:
        layer = make(
            3, MemoryAttention(SIZE, SIZE, score=score, max_keys=MAX_KEYS), input_feeding=True
        )
        source, state = layer.reading.prepare(torch.randn(B, K, SIZE)), torch.randn(B, SIZE)
        first = layer(torch.randn(B, 3), layer.initial(state), source)
        second = layer(torch.randn(B, 3), first.state, source)
        return layer, (second.output, [first.weights, second.weights])

    return run


def block(source_width: int | None) -> Callable:
    def run(score: object) -> tuple:
        layer = Block(WIDTH, HEADS, source_width=source_width, score=score, max_keys=MAX_KEYS)
        source = None if source_width is None else torch.randn(B, K, source_width)
        passed = layer(torch.randn(B, Q, WIDTH), source=source)
        return layer, (passed.output, list(passed.weights.values()))

    return run


def experts(score: object) -> tuple:
    layer = Experts(WIDTH, 3, 5, score=score)
    mixed = layer(torch.randn(B, K, WIDTH))
    return layer, (mixed.output, [mixed.weights])


def memory(addressing: str) -> Callable:
    def run(score: object) -> tuple:
        layer = Memory(K, SIZE, 3, read_heads=2, addressing=addressing, score=score)
        state, looks = layer.initial(B), []
        for _ in range(3):
            read, state, weights = layer(torch.randn(B, 3), state)
            # The weights of a DNC head may sum to less than one; those of an NTM head may not.
            looks += weights.values() if addressing == "ntm" else []
        return layer, (read, looks)

    return run


LAYERS = {
    "multihead": multihead,
    "weighted": pooling("weighted"),
    "fixed": pooling("fixed"),
    "reading": reading("none"),
    "local-m": reading("m"),
    "local-p": reading("p"),
    "bahdanau": step(BahdanauStep),
    "luong": step(LuongStep),
    "block": block(None),
    "block with a source": block(13),
    "experts": experts,
    "ntm": memory("ntm"),
    "dnc": memory("dnc"),
}


@every_score
@pytest.mark.parametrize("layer", LAYERS)
def test_gradients_are_finite_and_weights_sum_to_one(layer: str, name: str) -> None:
    module, (output, weights) = LAYERS[layer](GIVEN[name])
    for look in weights:
        assert_close(look.sum(-1), torch.ones(look.shape[:-1]))
    output.square().sum().backward()
    for parameter_name, parameter in module.named_parameters():
        if name == "location" and _of_keys(parameter_name):
            continue
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.isfinite().all(), parameter_name


def _of_keys(name: str) -> bool:
    """Whether these weights make keys, which a location-based score does not look at."""
    return name.split(".")[-2:-1] == ["key"] or name == "keys"
