"""The transformer block against torch's layers with the same weights, its cache, its experts."""

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from regard.attention import masks
from regard.layers import Block

B, Q, K, HEADS, WIDTH, HIDDEN, SOURCE = 2, 5, 7, 3, 15, 11, 13


def double(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def stirred(module: nn.Module) -> nn.Module:
    """Norms begin as the identity, and biases at zero: every weight is made to count."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module


def packed(attention: nn.Module, prefix: str, *, theirs: str) -> dict[str, Tensor]:
    parts = (attention.query, attention.key, attention.value)
    return {
        f"{theirs}.in_proj_weight": torch.cat([part.weight for part in parts]),
        f"{theirs}.in_proj_bias": torch.cat([part.bias for part in parts]),
        f"{theirs}.out_proj.weight": attention.output.weight,
        f"{theirs}.out_proj.bias": attention.output.bias,
    }


def copied(block: Block, theirs: nn.Module) -> nn.Module:
    """Torch's layer with our weights."""
    norms = [block.own_norm, block.feed_norm]
    state = packed(block.own, "own", theirs="self_attn")
    if block.source is not None:
        state |= packed(block.source, "source", theirs="multihead_attn")
        norms.insert(1, block.source_norm)
    for number, norm in enumerate(norms, 1):
        state |= {f"norm{number}.{name}": value for name, value in norm.state_dict().items()}
    for name, linear in (("linear1", block.feed_forward[0]), ("linear2", block.feed_forward[-1])):
        state |= {f"{name}.{kind}": value for kind, value in linear.state_dict().items()}
    theirs.load_state_dict(state)
    return theirs.double()


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_equals_torch_with_its_weights(kind: str, norm: str, need_weights: bool) -> None:
    has_source = kind == "decoder"
    block = stirred(
        Block(WIDTH, HEADS, HIDDEN, source_width=WIDTH if has_source else None, norm=norm).double()
    )
    make = nn.TransformerDecoderLayer if has_source else nn.TransformerEncoderLayer
    options = {"activation": "gelu", "batch_first": True, "norm_first": norm == "pre"}
    theirs = copied(block, make(WIDTH, HEADS, HIDDEN, dropout=0.0, **options).double())
    states, lengths = double(B, Q, WIDTH), torch.tensor([Q, 3])
    past, padding = ~torch.ones(Q, Q).tril().bool(), torch.arange(Q) >= lengths[:, None]
    ours: dict = {"mask": masks.causal() & masks.lengths(lengths), "need_weights": need_weights}
    inputs = [states]
    if has_source:
        source, lengths = double(B, K, WIDTH), torch.tensor([2, K])
        ours |= {"source": source, "source_mask": masks.lengths(lengths)}
        inputs.append(source)
        expected = theirs(
            states,
            source,
            tgt_mask=past,
            tgt_key_padding_mask=padding,
            memory_key_padding_mask=torch.arange(K) >= lengths[:, None],
        )
    else:
        expected = theirs(states, src_mask=past, src_key_padding_mask=padding)
    found = block(states, **ours)
    assert_close(found.output, expected)
    names = {"self", "source"} if has_source else {"self"}
    assert set(found.weights) == (names if need_weights else set())
    direction = torch.randn_like(expected)
    last = list(block.own.query.parameters()) + list(block.feed_norm.parameters())
    our_gradients = torch.autograd.grad((found.output * direction).sum(), [*inputs, *last])
    (expected * direction).sum().backward()
    norm_of_feed = theirs.norm3 if has_source else theirs.norm2
    correct = [x.grad for x in inputs] + [
        theirs.self_attn.in_proj_weight.grad[:WIDTH],
        theirs.self_attn.in_proj_bias.grad[:WIDTH],
        norm_of_feed.weight.grad,
        norm_of_feed.bias.grad,
    ]
    for gradient, theirs_ in zip(our_gradients, correct, strict=True):
        assert_close(gradient, theirs_)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["none", "rotary", "linear"])
@pytest.mark.parametrize("has_source", [False, True])
def test_decoding_with_a_cache_equals_the_whole(
    has_source: bool, positions: str, norm: str
) -> None:
    block = Block(
        12,
        6,
        source_width=SOURCE if has_source else None,
        positions=positions,
        key_heads=3,
        norm=norm,
    ).double()
    states, source = double(B, Q, 12), double(B, K, SOURCE) if has_source else None
    seen = {"source_mask": masks.lengths([2, K])} if has_source else {}
    whole = block(states, masks.causal(), source=source, **seen)
    cache, outputs = None, []
    for t in range(Q):
        one = states[:, t : t + 1]
        first = source if cache is None else None
        passed = block(one, masks.causal(), source=first, cache=cache, need_weights=False, **seen)
        cache = passed.cache
        outputs.append(passed.output)
    assert_close(torch.cat(outputs, 1), whole.output)
    assert cache.own.key.shape[-2] == Q
    assert (cache.source is not None) == has_source


def test_the_future_and_the_padding_change_nothing() -> None:
    block = Block(WIDTH, HEADS, source_width=SOURCE).double()
    states, source = double(B, Q, WIDTH), double(B, K, SOURCE)
    seen = {"source": source, "source_mask": masks.lengths([3, K])}
    output = block(states, masks.causal(), **seen).output
    later = torch.cat([states[:, :3], double(B, Q - 3, WIDTH)], 1)
    assert torch.equal(block(later, masks.causal(), **seen).output[:, :3], output[:, :3])
    short = block(states[:1], masks.causal(), source=source[:1, :3]).output
    assert_close(short[0], output[0])


@pytest.mark.parametrize("top_k", [None, 1, 2])
def test_experts_take_the_place_of_the_feed_forward_network(top_k: int | None) -> None:
    block = Block(WIDTH, HEADS, HIDDEN, experts=3, top_k=top_k).double()
    states, real = double(B, Q, WIDTH), torch.arange(Q) < torch.tensor([[Q], [2]])
    found = block(states, masks.lengths(real.sum(-1)), real=real)
    assert found.weights["experts"].shape == (B, Q, 3)
    assert found.balance.ndim == 0
    looked = states + block.own(block.own_norm(states), mask=masks.lengths(real.sum(-1))).output
    mixed = block.feed_forward(block.feed_norm(looked), real)
    assert_close(found.output, looked + mixed.output)
    assert_close(found.balance, mixed.balance)
    (found.output.sum() + found.balance).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in block.parameters())


def test_equal_experts_equal_one_network() -> None:
    many, one = (Block(WIDTH, HEADS, HIDDEN, experts=n).double() for n in (3, 0))
    state = {name: p for name, p in many.state_dict().items() if "feed_forward" not in name}
    experts = many.feed_forward
    with torch.no_grad():
        for parameter in (
            experts.inner_weight,
            experts.inner_bias,
            experts.outer_weight,
            experts.outer_bias,
        ):
            parameter.copy_(parameter[:1].expand_as(parameter))
    state |= {
        "feed_forward.0.weight": experts.inner_weight[0].T,
        "feed_forward.0.bias": experts.inner_bias[0],
        "feed_forward.3.weight": experts.outer_weight[0].T,
        "feed_forward.3.bias": experts.outer_bias[0],
    }
    one.load_state_dict(state)
    states = double(B, Q, WIDTH)
    assert_close(many(states).output, one(states).output)


def test_dropout_falls_in_training_alone() -> None:
    block = Block(WIDTH, HEADS, dropout=0.5)
    states = torch.randn(B, Q, WIDTH)
    assert not torch.equal(block(states).output, block(states).output)
    block.eval()
    assert torch.equal(block(states).output, block(states).output)
    assert torch.equal(block(states).output, block(states).output)


def test_state_dict_round_trip() -> None:
    first, second = (Block(WIDTH, HEADS, source_width=SOURCE) for _ in range(2))
    second.load_state_dict(first.state_dict())
    states, source = torch.randn(B, Q, WIDTH), torch.randn(B, K, SOURCE)
    assert torch.equal(first(states, source=source).output, second(states, source=source).output)
    assert not list(first.buffers())


def test_a_wrong_block_is_refused_when_it_is_made() -> None:
    with pytest.raises(ValueError, match=r"unknown norm 'per': did you mean 'pre'\?"):
        Block(WIDTH, HEADS, norm="per")
    with pytest.raises(ValueError, match="4 heads do not divide a width of 15"):
        Block(WIDTH, 4)
    with pytest.raises(ValueError, match="a head has 5 of them"):
        Block(WIDTH, HEADS, positions="rotary")
    with pytest.raises(ValueError, match="top_k=2 chooses among experts, but there are none"):
        Block(WIDTH, HEADS, top_k=2)


@pytest.mark.usefixtures("shapes_unchecked")
def test_wrong_inputs_are_named() -> None:
    states = torch.randn(B, Q, WIDTH)
    looking, blind = Block(WIDTH, HEADS, source_width=SOURCE), Block(WIDTH, HEADS)
    with pytest.raises(ValueError, match="pass source=, or a cache= that holds it"):
        looking(states)
    with pytest.raises(ValueError, match="no attention to a source: make it with source_width="):
        blind(states, source=torch.randn(B, K, SOURCE))
    with pytest.raises(ValueError, match=r"sequence of shape \[2, 5, 4\] ends in 4; .* size 15"):
        blind(states[..., :4])
    with pytest.raises(ValueError, match=r"key of shape \[2, 7, 5\] ends in 5; .* size 13"):
        looking(states, source=torch.randn(B, K, 5))
