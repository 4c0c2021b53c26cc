"""MultiHead against torch's own, masks of every shape, positions, and the cache."""

import cmath
import io

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from regard.attention import masks
from regard.layers import MultiHead

B, Q, K, HEADS, WIDTH = 2, 5, 7, 3, 15


def twin(ours: MultiHead, key_width: int = WIDTH, value_width: int = WIDTH) -> nn.Module:
    """Torch's module with our weights."""
    theirs = nn.MultiheadAttention(
        WIDTH, HEADS, kdim=key_width, vdim=value_width, batch_first=True
    ).double()
    parts = (ours.query, ours.key, ours.value)
    with torch.no_grad():
        if theirs.in_proj_weight is not None:
            theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        else:
            theirs.q_proj_weight.copy_(ours.query.weight)
            theirs.k_proj_weight.copy_(ours.key.weight)
            theirs.v_proj_weight.copy_(ours.value.weight)
        theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        theirs.out_proj.load_state_dict(ours.output.state_dict())
    return theirs


def theirs_by_our_names(theirs: nn.Module) -> dict[str, Tensor]:
    if theirs.in_proj_weight is not None:
        weights = theirs.in_proj_weight.grad.chunk(3)
    else:
        weights = [getattr(theirs, f"{letter}_proj_weight").grad for letter in ("q", "k", "v")]
    biases = theirs.in_proj_bias.grad.chunk(3)
    found = {"output.weight": theirs.out_proj.weight.grad, "output.bias": theirs.out_proj.bias.grad}
    for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
        found |= {f"{name}.weight": weight, f"{name}.bias": bias}
    return found


def double(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def padding_and_past(keys: int) -> tuple[Tensor, Tensor]:
    """What each query may attend to, [q, k], and which keys are real, [b, k]; no row is empty."""
    past = torch.ones(Q, keys, dtype=torch.bool).tril(keys - Q)
    real = torch.arange(keys) < torch.tensor([[keys], [keys - 2]])
    return past, real


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("masked", ["nothing", "padding", "past", "both"])
@pytest.mark.parametrize("kind", ["self", "cross", "sizes"])
def test_equals_torch_with_its_weights(kind: str, masked: str, need_weights: bool) -> None:
    key_width, value_width = (11, 13) if kind == "sizes" else (WIDTH, WIDTH)
    ours = MultiHead(WIDTH, HEADS, key_width=key_width, value_width=value_width).double()
    theirs = twin(ours, key_width, value_width)
    query = double(B, Q, WIDTH)
    inputs = [query]
    if kind != "self":
        inputs += [double(B, K, key_width), double(B, K, value_width)]
    past, real = padding_and_past(Q if kind == "self" else K)
    lazy, options = None, {}
    if masked in ("padding", "both"):
        lazy = masks.lengths(real.sum(-1))
        options["key_padding_mask"] = ~real
    if masked in ("past", "both"):
        lazy = masks.causal() if lazy is None else lazy & masks.causal()
        options["attn_mask"] = ~past
    looked = ours(*inputs, mask=lazy, need_weights=need_weights)
    expected, weights = theirs(
        *(inputs if kind != "self" else [query] * 3), average_attn_weights=False, **options
    )
    assert_close(looked.output, expected)
    if need_weights:
        assert_close(looked.weights, weights)
    else:
        assert looked.weights is None
    direction = torch.randn_like(expected)
    found = torch.autograd.grad(
        (looked.output * direction).sum(), [*inputs, *ours.parameters()], retain_graph=True
    )
    (expected * direction).sum().backward()
    names = [name for name, _ in ours.named_parameters()]
    by_name = theirs_by_our_names(theirs)
    for gradient, correct in zip(
        found, [x.grad for x in inputs] + [by_name[name] for name in names], strict=True
    ):
        assert_close(gradient, correct)


@pytest.mark.parametrize("key_heads", [3, 1])
@pytest.mark.parametrize("shape", ["bqk", "qk", "bhqk", "b1k", "11k"])
def test_bool_masks_of_every_shape(shape: str, key_heads: int) -> None:
    ours = MultiHead(WIDTH, HEADS, key_heads=key_heads).double()
    sizes = {"b": B, "h": HEADS, "q": Q, "k": K, "1": 1}
    mask = torch.rand([sizes[axis] for axis in shape]) < 0.6
    query, key = double(B, Q, WIDTH), double(B, K, WIDTH)
    looked = ours(query, key, mask=mask)
    whole = mask.reshape(B, HEADS, Q, K) if shape == "bhqk" else mask.expand(B, Q, K)[:, None]
    assert torch.equal(looked.weights > 0, whole.expand(B, HEADS, Q, K))
    sums = looked.weights.sum(-1)
    assert_close(sums, whole.any(-1).expand_as(sums).double())
    assert_close(ours(query, key, mask=mask, need_weights=False).output, looked.output)


def test_grouped_heads_equal_repeated_ones() -> None:
    heads, shared, size = 6, 2, 5
    grouped = MultiHead(WIDTH, heads, head_size=size, key_heads=shared).double()
    full = MultiHead(WIDTH, heads, head_size=size).double()
    state = grouped.state_dict()
    for name in ("key", "value"):
        for kind in ("weight", "bias"):
            rows = state[f"{name}.{kind}"].unflatten(0, (shared, size))
            state[f"{name}.{kind}"] = rows.repeat_interleave(heads // shared, 0).flatten(0, 1)
    full.load_state_dict(state)
    states = double(B, Q, WIDTH)
    assert_close(grouped(states).output, full(states).output)
    assert_close(grouped(states).weights, full(states).weights)


@pytest.mark.parametrize("key_heads", [1, 3])
def test_a_single_sequence_needs_no_batch(key_heads: int) -> None:
    ours = MultiHead(WIDTH, HEADS, key_heads=key_heads).double()
    states = double(Q, WIDTH)
    alone, batched = ours(states, mask=masks.causal()), ours(states[None], mask=masks.causal())
    assert_close(alone.output, batched.output[0])
    assert_close(alone.weights, batched.weights[0])
    by_head = torch.rand(HEADS, Q, Q) < 0.5
    assert torch.equal(ours(states, mask=by_head).weights > 0, by_head)


def test_an_empty_row_reads_nothing() -> None:
    ours = MultiHead(WIDTH, HEADS).double()
    states = double(B, Q, WIDTH)
    looked = ours(states, mask=masks.lengths([0, 3]))
    assert torch.equal(looked.weights[0], torch.zeros(HEADS, Q, Q).double())
    assert_close(looked.output[0], ours.output.bias.expand(Q, WIDTH))
    looked.output[0].sum().backward()
    assert torch.equal(states.grad, torch.zeros_like(states))


def test_permuting_keys_permutes_weights() -> None:
    ours = MultiHead(WIDTH, HEADS).double()
    query, key, order = double(B, Q, WIDTH), double(B, K, WIDTH), torch.randperm(K)
    straight, permuted = ours(query, key), ours(query, key[:, order])
    assert_close(permuted.weights, straight.weights[..., order])
    assert_close(permuted.output, straight.output)


def test_padding_changes_nothing() -> None:
    ours = MultiHead(WIDTH, HEADS, positions="rotary", head_size=4).double()
    states, lengths = double(B, Q, WIDTH), [3, 5]
    padded = torch.cat([states, double(B, 2, WIDTH)], 1)
    found = ours(padded, mask=masks.lengths(lengths)).output
    for row, length in enumerate(lengths):
        assert_close(found[row, :length], ours(states[row, :length]).output)


@pytest.mark.parametrize("offset", [1, 13])
def test_rotary_depends_on_distance_alone(offset: int) -> None:
    ours = MultiHead(12, HEADS, positions="rotary").double()
    before, states = double(B, offset, 12), double(B, Q, 12)
    near = masks.documents([0] * offset + [1] * Q)
    moved = ours(torch.cat([before, states], 1), mask=near)
    assert_close(moved.output[:, offset:], ours(states).output)
    unturned = MultiHead(12, HEADS).double()
    unturned.load_state_dict(ours.state_dict())
    assert (unturned(states).output - ours(states).output).abs().max() > 1e-3


def test_rotary_scores_from_the_equation() -> None:
    ours = MultiHead(4, 1, positions="rotary", score="dot", normalize="none", bias=False).double()
    states = double(1, Q, 4)
    found = ours(states).weights[0, 0]
    for i in range(Q):
        for j in range(Q):
            query, key = ours.query(states[0, i]), ours.key(states[0, j])
            total = 0.0
            for pair in range(2):
                q, k = (complex(*x[2 * pair : 2 * pair + 2].tolist()) for x in (query, key))
                turn = cmath.exp(1j * (i - j) * 10000.0 ** (-2 * pair / 4))
                total += (q * turn * k.conjugate()).real
            assert found[i, j].item() == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("score", ["scaled_dot", "additive", "location"])
@pytest.mark.parametrize("key_heads", [4, 2])
@pytest.mark.parametrize("positions", ["none", "rotary", "linear"])
def test_decoding_with_a_cache_equals_the_whole(
    positions: str, key_heads: int, score: str, need_weights: bool
) -> None:
    ours = MultiHead(
        WIDTH, 4, head_size=6, key_heads=key_heads, positions=positions, score=score
    ).double()
    states = double(B, K, WIDTH)
    whole = ours(states, mask=masks.causal(), need_weights=need_weights)
    cache, outputs = None, []
    for part in states.split([3, 1, 1, 2], 1):
        looked = ours(part, mask=masks.causal(), cache=cache, need_weights=need_weights)
        outputs.append(looked.output)
        cache = looked.cache
    assert_close(torch.cat(outputs, 1), whole.output)
    assert_close(cache.key, whole.cache.key)
    direction = torch.randn_like(whole.output)
    unused = {"key"} if score == "location" else set()
    variables = [states] + [p for n, p in ours.named_parameters() if n[:3] not in unused]
    for ours_, theirs in zip(
        torch.autograd.grad((torch.cat(outputs, 1) * direction).sum(), variables),
        torch.autograd.grad((whole.output * direction).sum(), variables),
        strict=True,
    ):
        assert_close(ours_, theirs)


def test_dropout_falls_in_training_alone() -> None:
    ours = MultiHead(WIDTH, HEADS, dropout=0.5)
    states = torch.randn(B, Q, WIDTH)
    first, second = ours(states), ours(states)
    assert not torch.equal(first.output, second.output)
    assert torch.equal(first.weights, second.weights)
    ours.eval()
    assert torch.equal(ours(states).output, ours(states).output)


def test_state_dict_round_trip_and_nothing_remembered() -> None:
    ours, other = (MultiHead(WIDTH, HEADS, score="additive") for _ in range(2))
    states = torch.randn(B, Q, WIDTH)
    before = {name: value for name, value in vars(ours).items() if not name.startswith("_")}
    expected = ours(states).output
    file = io.BytesIO()
    torch.save(ours.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other(states).output, expected)
    assert before == {name: v for name, v in vars(ours).items() if not name.startswith("_")}
    assert not list(ours.buffers())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"heads": 4}, "4 heads do not divide a width of 15: choose others, or give head_size"),
        ({"heads": 0}, "heads must be at least 1; got heads 0 and key_heads 0"),
        ({"key_heads": 2}, "3 query heads cannot share 2 key heads evenly"),
        ({"key_heads": 0}, "heads must be at least 1; got heads 3 and key_heads 0"),
        ({"positions": "rotery"}, "unknown positions 'rotery': did you mean 'rotary'?"),
        ({"positions": "rotary"}, "a head has 5 of them .* give an even head_size"),
        ({"score": "scaled"}, "unknown score 'scaled': did you mean 'scaled_dot'?"),
        ({"normalize": "softmx"}, "unknown normalizer 'softmx': did you mean 'softmax'?"),
    ],
)
def test_a_wrong_layer_is_refused_when_it_is_made(options: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        MultiHead(WIDTH, **{"heads": HEADS, **options})


@pytest.mark.usefixtures("shapes_unchecked")
def test_wrong_inputs_are_named_with_their_shapes() -> None:
    ours = MultiHead(WIDTH, HEADS, key_width=11)
    query, key = torch.randn(B, Q, WIDTH), torch.randn(B, K, 11)
    with pytest.raises(ValueError, match=r"key of shape \[2, 5, 15\] ends in 15; .* size 11"):
        ours(query)
    with pytest.raises(ValueError, match=r"query of shape \[2, 7, 11\] ends in 11; .* size 15"):
        ours(key, key)
    with pytest.raises(ValueError, match="have no common batch"):
        ours(query, torch.randn(3, K, 11))
    with pytest.raises(ValueError, match=r"True = may attend; got torch\.float32"):
        ours(query, key, mask=torch.zeros(Q, K))
    with pytest.raises(ValueError, match=r"mask of shape \[3, 7\] does not broadcast"):
        ours(query, key, mask=torch.ones(3, K, dtype=torch.bool))
