"""Additive attention against a float64 loop from the equation, in every form."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.attention import additive_native as native
from regard.attention.additive import _check, additive_attention, additive_scores, choose

FORMS = ["blocks", "blocks by sigmoid", "plain", *(native.LEVELS if native.available() else ())]


@pytest.fixture(params=FORMS)
def form(request, monkeypatch):
    """The keyword that asks for a form; for the kernel, once for every instruction set."""
    if request.param == "plain":
        monkeypatch.setattr("regard.attention.additive._form", lambda *_: "plain")
        yield None
    elif request.param.startswith("blocks"):
        faster = request.param.endswith("sigmoid")
        monkeypatch.setattr("regard.attention.additive_blocks._sigmoid_is_faster", lambda: faster)
        monkeypatch.setattr("regard.attention.additive_blocks.ELEMENTS_PER_THREAD", 700)
        yield False
    else:
        try:
            native.force_level(request.param)
        except ValueError as reason:
            pytest.skip(str(reason))
        yield True
        native.force_level(None)


def loop(query, key, weight, value=None, seen=None):
    """The equation, query by query, in float64, for one batch axis; seen is [b, q, k]."""
    rows = []
    for b in range(query.shape[0]):
        for q in range(query.shape[1]):
            keys = [k for k in range(key.shape[1]) if seen is None or seen[b, q, k]]
            scores = (weight * torch.tanh(query[b, q] + key[b, keys])).sum(-1)
            if value is None:
                rows.append(scores)
            elif not keys:
                rows.append(torch.zeros(value.shape[2], dtype=value.dtype))
            else:
                rows.append((torch.softmax(scores, 0)[:, None] * value[b, keys]).sum(0))
    return torch.stack(rows).view(*query.shape[:2], -1)


def tensors(b=2, q=7, k=11, a=13, v=5, dtype=torch.float32, scale=1.0):
    shapes = ((b, q, a), (b, k, a), (a,), (b, k, v))
    return [(scale * torch.randn(shape)).to(dtype).requires_grad_() for shape in shapes]


def twins(inputs):
    return [tensor.detach().double().requires_grad_() for tensor in inputs]


def compare(inputs, exact, result, expected, rtol=1e-5, atol=1e-5):
    """Values and gradients, for a random gradient of the result."""
    assert result.shape == expected.shape
    gradient = torch.randn(result.shape)
    result.backward(gradient.to(result.dtype))
    if expected.requires_grad:
        expected.backward(gradient.double())
    torch.testing.assert_close(result.double(), expected, rtol=rtol, atol=atol)
    for tensor, twin in zip(inputs, exact, strict=True):
        wanted = torch.zeros_like(twin) if twin.grad is None else twin.grad
        room = atol * max(1.0, float(wanted.abs().max()) if wanted.numel() else 1.0)
        torch.testing.assert_close(tensor.grad.double(), wanted, rtol=rtol, atol=room)


SIZES = [
    (2, 7, 11, 13, 5),
    (1, 1, 1, 1, 1),
    (3, 1, 5, 17, 2),
    (1, 5, 1, 3, 7),
    (2, 2, 3, 37, 19),
    (1, 67, 37, 5, 3),
    (1, 3, 71, 33, 37),
]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_scores_equal_the_loop(form, sizes):
    *inputs, _ = tensors(*sizes)
    exact = twins(inputs)
    compare(inputs, exact, additive_scores(*inputs, native=form), loop(*exact))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_attention_equals_the_loop(form, sizes):
    inputs = tensors(*sizes)
    exact = twins(inputs)
    compare(inputs, exact, additive_attention(*inputs, native=form), loop(*exact))


def spans_of(b, q, k):
    """Spans of every kind: whole, one key, a prefix, a suffix, empty, reaching outside."""
    start = torch.randint(-2, k, (b, q))
    stop = start + torch.randint(0, k + 3, (b, q))
    start[0, 0], stop[0, 0] = 0, k
    start[-1, -1], stop[-1, -1] = 3, 3
    return start, stop


def inside(spans, k):
    at = torch.arange(k)
    return (at >= spans[0][..., None]) & (at < spans[1][..., None])


@pytest.mark.parametrize("kind", ["spans", "mask", "both", "one row", "nothing"])
@pytest.mark.parametrize("sizes", [(2, 7, 11, 13, 5), (3, 13, 41, 5, 3)], ids=str)
def test_only_what_is_seen_counts(form, kind, sizes):
    b, q, k, *_ = sizes
    inputs = tensors(*sizes)
    exact = twins(inputs)
    spans = spans_of(b, q, k) if kind in ("spans", "both") else None
    mask = None
    if kind != "spans":
        mask = torch.rand(b, 1 if kind == "one row" else q, k) < 0.4
        mask &= kind != "nothing"
    seen = torch.ones(b, q, k, dtype=torch.bool)
    seen = seen if spans is None else seen & inside(spans, k)
    seen = seen if mask is None else seen & mask
    result = additive_attention(*inputs, spans=spans, mask=mask, native=form)
    compare(inputs, exact, result, loop(*exact, seen=seen))
    assert (result[~seen.any(-1)] == 0).all()


def test_causal_rows_equal_shorter_calls(form):
    inputs = [tensor.detach() for tensor in tensors(1, 37, 37, 7, 3)]
    query, key, weight, value = inputs
    start, stop = torch.zeros(1, 37, dtype=torch.int64), torch.arange(1, 38)[None]
    result = additive_attention(*inputs, spans=(start, stop), native=form)
    for n in (1, 2, 17, 33, 37):
        alone = additive_attention(
            query[:, n - 1 : n], key[:, :n], weight, value[:, :n], native=form
        )
        torch.testing.assert_close(result[:, n - 1 : n], alone)


def test_leading_axes_broadcast(form):
    query, key = torch.randn(3, 1, 5, 13), torch.randn(3, 2, 7, 13)
    weight, value = torch.randn(13), torch.randn(2, 7, 3)
    mask = torch.rand(3, 1, 5, 7) < 0.7
    spans = torch.zeros(5, dtype=torch.int64), torch.randint(0, 8, (2, 5))
    inputs = [tensor.requires_grad_() for tensor in (query, key, weight, value)]
    exact = twins(inputs)
    flat = [x.expand(3, 2, *x.shape[-2:]).reshape(6, *x.shape[-2:]) for x in (*exact[:2], exact[3])]
    seen = (mask & inside(spans, 7)).expand(3, 2, 5, 7).reshape(6, 5, 7)
    expected = loop(flat[0], flat[1], exact[2], flat[2], seen).view(3, 2, 5, 3)
    compare(
        inputs,
        exact,
        additive_attention(*inputs, spans=spans, mask=mask, native=form),
        expected,
    )
    scores = additive_scores(query, key, weight, native=form)
    expected = loop(flat[0], flat[1], exact[2]).view(3, 2, 5, 7)
    torch.testing.assert_close(scores.double(), expected, rtol=1e-5, atol=1e-5)


def test_without_batch_axes(form):
    query, key, weight, value = (x.detach() for x in tensors(1))
    expected = additive_attention(query, key, weight, value, native=form)[0]
    torch.testing.assert_close(
        additive_attention(query[0], key[0], weight, value[0], native=form), expected
    )


@pytest.mark.parametrize("shape", [(2, 3, 0), (2, 0, 5), (0, 3, 5)], ids=str)
def test_no_keys_no_queries_no_batch(form, shape):
    b, q, k = shape
    inputs = tensors(b, q, k)
    output = additive_attention(*inputs, native=form)
    assert output.shape == (b, q, 5)
    assert (output == 0).all()
    output.sum().backward()
    assert all((tensor.grad == 0).all() for tensor in inputs)
    assert additive_scores(*inputs[:3], native=form).shape == (b, q, k)


@pytest.mark.parametrize("poison", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("how", ["spans", "mask"])
def test_what_nobody_sees_may_hold_anything(form, poison, how):
    b, q, k = 2, 7, 11
    inputs = tensors(b, q, k)
    seen = torch.ones(b, q, k, dtype=torch.bool)
    seen[..., 8:] = False
    seen[0, 3] = False
    clean = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    with torch.no_grad():
        for tensor in (inputs[1], inputs[3]):
            tensor[:, 8:] = poison
        inputs[0][0, 3] = poison
    stop = torch.full((b, q), 8)
    stop[0, 3] = 0
    options = {"mask": seen} if how == "mask" else {"spans": (torch.zeros_like(stop), stop)}
    gradient = torch.randn(b, q, 5)
    outputs = [additive_attention(*x, **options, native=form) for x in (clean, inputs)]
    gradient_with_poison = gradient.clone()
    gradient_with_poison[0, 3] = poison
    outputs[0].backward(gradient)
    outputs[1].backward(gradient_with_poison)
    torch.testing.assert_close(outputs[1], outputs[0])
    for tensor, twin in zip(inputs, clean, strict=True):
        torch.testing.assert_close(tensor.grad, twin.grad)


def test_a_poisoned_future_does_not_reach_the_past(form):
    if form is None:
        pytest.skip("the plain form empties only what no query sees")
    inputs = tensors(1, 11, 11)
    clean = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    with torch.no_grad():
        inputs[1][:, 9:] = float("nan")
        inputs[3][:, 9:] = float("nan")
    spans = torch.zeros(1, 11, dtype=torch.int64), torch.arange(1, 12)[None]
    outputs = [additive_attention(*x, spans=spans, native=form) for x in (clean, inputs)]
    torch.testing.assert_close(outputs[1][:, :9], outputs[0][:, :9])
    assert outputs[1][:, 9:].isnan().all()
    for output in outputs:
        output.sum().backward()
    torch.testing.assert_close(inputs[0].grad[:, :9], clean[0].grad[:, :9])


@pytest.mark.parametrize("scale", [8.0, 50.0, 1e30])
def test_saturated_units(form, scale):
    inputs = tensors(2, 7, 37, scale=1.0)
    with torch.no_grad():
        inputs[0] *= scale
        inputs[1] *= scale
        inputs[1][0, 0] = -inputs[0][0, 0]
        inputs[1][1] /= scale
    exact = twins(inputs)
    compare(inputs, exact, additive_attention(*inputs, native=form), loop(*exact))


def test_a_seen_nan_is_not_hidden(form):
    query, key, weight, value = (x.detach() for x in tensors())
    key[0, 3, 2] = float("nan")
    result = additive_attention(query, key, weight, value, native=form)
    assert result[0].isnan().all()
    assert not result[1].isnan().any()


def test_any_strides(form):
    query = torch.randn(13, 7, 2).permute(2, 1, 0)
    key = torch.randn(2, 22, 26)[:, ::2, ::2]
    weight = torch.randn(26)[::2]
    value = torch.randn(1, 1, 5).expand(2, 11, 5)
    inputs = [x.detach().requires_grad_() for x in (query, key, weight, value)]
    exact = twins(inputs)
    compare(inputs, exact, additive_attention(*inputs, native=form), loop(*exact))


def test_bfloat16_accumulates_in_float32(form):
    inputs = tensors(2, 7, 53, 257, 5, dtype=torch.bfloat16)
    exact = twins(inputs)
    result = additive_attention(*inputs, native=form)
    assert result.dtype == torch.bfloat16
    compare(inputs, exact, result, loop(*exact), rtol=1e-2, atol=1e-2)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.integers(1, 40), st.data())
def test_keys_in_any_order(b, q, k, a, data):
    """Permuting keys permutes scores and leaves the output alone; constant values come back."""
    torch.manual_seed(data.draw(st.integers(0, 99)))
    query, key, weight, value = (x.detach() for x in tensors(b, q, k, a))
    order = torch.tensor(data.draw(st.permutations(range(k))))
    scores = additive_scores(query, key, weight)
    torch.testing.assert_close(additive_scores(query, key[:, order], weight), scores[..., order])
    output = additive_attention(query, key, weight, value)
    mixed = additive_attention(query, key[:, order], weight, value[:, order])
    torch.testing.assert_close(mixed, output, atol=1e-5, rtol=1e-5)
    ones = additive_attention(query, key, weight, torch.ones_like(value))
    torch.testing.assert_close(ones, torch.ones_like(ones))


def test_gradcheck_of_the_blocks(monkeypatch):
    monkeypatch.setattr("regard.attention.additive_blocks.ELEMENTS_PER_THREAD", 20)
    inputs = tensors(2, 3, 5, 2, 3, dtype=torch.float64)
    spans = spans_of(2, 3, 5)
    mask = torch.rand(2, 3, 5) < 0.6
    mask[1, 1] = False

    def attention(*x: Tensor) -> Tensor:
        return additive_attention(*x, spans=spans, mask=mask, native=False)

    assert torch.autograd.gradcheck(attention, inputs)
    scores = lambda *x: additive_scores(*x, native=False)  # noqa: E731
    assert torch.autograd.gradcheck(scores, inputs[:3])


def test_double_backward_is_refused_with_words(form):
    if form is None:
        pytest.skip("the plain form has a second derivative")
    for call, inputs in ((additive_attention, tensors()), (additive_scores, tensors()[:3])):
        (first,) = torch.autograd.grad(
            call(*inputs, native=form).square().sum(), inputs[0], create_graph=True
        )
        with pytest.raises(RuntimeError, match="no second derivative"):
            first.sum().backward()


def test_many_small_batch_elements_share_a_block():
    inputs = tensors(17, 3, 5, 2, 3)
    exact = twins(inputs)
    compare(inputs, exact, additive_attention(*inputs, native=False), loop(*exact))


def test_choice():
    x = torch.zeros(2, 5, 8)
    assert choose(x.double(), x.double())[0] == "blocks"
    assert choose(x.double()[:, :1], x.double())[0] == "plain"
    assert "torch.float64" in choose(x, x, x.double())[1]
    assert choose(x, x)[0] == ("native" if native.available() else "blocks")


def test_errors_name_the_shapes():
    query, key, weight, _ = (x.detach().double() for x in tensors())
    with pytest.raises(ValueError, match=r"native=True, but torch.float64 is not for the C kernel"):
        additive_scores(query, key, weight, native=True)
    with pytest.raises(ValueError, match=r"query \[2, 7, 13\], key \[2, 11, 5\] and weight \[13\]"):
        _check(query, key[..., :5], weight)
    with pytest.raises(ValueError, match=r"key \[2, 11, 13\] and value \[2, 3, 5\]"):
        _check(query, key, weight, torch.zeros(2, 3, 5))
