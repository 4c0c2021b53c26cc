"""`attend` against a float64 loop from the equations, and against torch's own attention."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.attention import attend, explain_path, masks, normalizers, scores, steps
from tests.attention import reference

B, H, Q, K, D, V, A = 2, 3, 5, 7, 11, 13, 17
GROUP = 2
SCORES = {
    "dot": (lambda: scores.dot, lambda m: reference.dot),
    "scaled_dot": (lambda: "scaled_dot", lambda m: reference.scaled_dot),
    "scale": (lambda: scores.ScaledDot(0.7), lambda m: lambda q, k: 0.7 * reference.dot(q, k)),
    "cosine": (lambda: "cosine", lambda m: reference.cosine),
    "bilinear": (
        lambda: scores.Bilinear(D, D),
        lambda m: lambda q, k: reference.bilinear(m, q, k),
    ),
    "mlp": (lambda: scores.MLP(D, D), lambda m: lambda q, k: reference.mlp(m, q, k)),
    "additive": (
        lambda: scores.Additive(D, D, A),
        lambda m: lambda q, k: reference.additive(m, q, k),
    ),
    "location": (
        lambda: scores.Location(D, K + 2),
        lambda m: lambda q, k: reference.location(m, q, k),
    ),
    "own": (
        lambda: lambda q, k: -(q.unsqueeze(-2) - k.unsqueeze(-3)).abs().sum(-1),
        lambda m: lambda q, k: -(q.unsqueeze(-2) - k.unsqueeze(-3)).abs().sum(-1),
    ),
}
LENGTHS = [K - 1, 0]
IDS = [0, 0, 1, 1, 1, 2, 2]
TENSOR = torch.rand(B, 1, Q, K, generator=torch.Generator().manual_seed(1)) > 0.5
TENSOR[1, 0, 3] = False
OFFSET = K - Q
MASKS = {
    "nothing": (None, lambda b, q, k: True),
    "causal": (masks.causal(), lambda b, q, k: k <= q + OFFSET),
    "lengths": (masks.lengths(LENGTHS), lambda b, q, k: k < LENGTHS[b]),
    "window": (masks.window(2), lambda b, q, k: abs(k - q - OFFSET) < 2),
    "causal window": (
        masks.causal() & masks.window(3),
        lambda b, q, k: q + OFFSET - 3 < k <= q + OFFSET,
    ),
    "causal lengths": (
        masks.causal() & masks.lengths(LENGTHS),
        lambda b, q, k: k <= q + OFFSET and k < LENGTHS[b],
    ),
    "prefix": (
        masks.causal() | masks.prefix([5, 1]),
        lambda b, q, k: k <= q + OFFSET or k < (5, 1)[b],
    ),
    "documents": (
        masks.documents(IDS),
        lambda b, q, k: IDS[q + OFFSET] == IDS[k],
    ),
    "dilated": (masks.dilated(2), lambda b, q, k: (q + OFFSET - k) % 2 == 0),
    "others": (masks.others(), lambda b, q, k: q + OFFSET != k),
    "not": (~masks.window(2), lambda b, q, k: abs(k - q - OFFSET) >= 2),
    "tensor": (TENSOR, lambda b, q, k: bool(TENSOR[b, 0, q, k])),
}


def draw(grouped: bool, dtype=torch.float64):
    """Query, key and value; grouped query heads share the key heads."""
    generator = torch.Generator().manual_seed(3)
    heads = H * GROUP if grouped else H
    shapes = (B, heads, Q, D), (B, H, K, D), (B, H, K, V)
    # scores stay positive, so that dividing by their sum is well-conditioned
    return [
        (torch.rand(*s, generator=generator, dtype=torch.float64) + 0.05).to(dtype).requires_grad_()
        for s in shapes
    ]


def gradients(output, weights, inputs):
    """Gradients of one random reading of output and weights."""
    generator = torch.Generator().manual_seed(5)
    total = output.new_zeros(())
    for tensor in (output, weights):
        if tensor is not None:
            probe = torch.randn(tensor.shape, generator=generator, dtype=torch.float64)
            total = total + (tensor * probe).sum()
    return torch.autograd.grad(
        total, inputs, retain_graph=True, allow_unused=True, materialize_grads=True
    )


@pytest.mark.parametrize("normalize", reference.NORMALIZERS)
@pytest.mark.parametrize("score", SCORES)
def test_values_and_gradients_equal_a_loop(score, normalize):
    make, equation = SCORES[score]
    ours = make()
    module = ours.double() if isinstance(ours, torch.nn.Module) else torch.nn.Module()
    twin = copy.deepcopy(module)
    for grouped in (False, True):
        query, key, value = draw(grouped)
        group = GROUP if grouped else 1
        wide_key, wide_value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
        raw = equation(twin)(query, wide_key)
        for name, (mask, allowed) in MASKS.items():
            expected, weights = reference.attend(
                raw, wide_value, allowed, reference.NORMALIZERS[normalize]
            )
            for looked in (None, weights):
                where = f"{name}, grouped {grouped}, weights {looked is not None}"
                options = {
                    "score": ours,
                    "normalize": normalize,
                    "need_weights": looked is not None,
                }
                got = attend(query, key, value, mask, **options)
                assert (got.weights is None) == (looked is None), where
                pairs = [(got.output, expected), (got.weights, looked)]
                pairs += zip(
                    gradients(*got, [query, key, value, *module.parameters()]),
                    gradients(expected, looked, [query, key, value, *twin.parameters()]),
                    strict=True,
                )
                for a, b in pairs:
                    if a is not None:
                        torch.testing.assert_close(a, b, msg=lambda m, w=where: f"{w}: {m}")


def test_hard_looks_at_the_best_key_with_the_gradient_of_softmax():
    query, key, value = draw(False)
    mask = MASKS["causal lengths"][0]
    soft = attend(query, key, value, mask)
    hard = attend(query, key, value, mask, normalize="hard")
    best = torch.zeros_like(soft.weights).scatter(-1, soft.weights.argmax(-1, keepdim=True), 1.0)
    assert torch.equal(hard.weights, best * (soft.weights.sum(-1, keepdim=True) > 0))
    for a, b in zip(
        gradients(hard.weights, None, [query, key]),
        gradients(soft.weights, None, [query, key]),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    "name", ["softmax", "sparsemax", "entmax15", "sigmoid", "top_k(2)", "sum", "none"]
)
@pytest.mark.parametrize(
    "score", ["scaled_dot", "cosine", "bilinear", "mlp", "additive", "location"]
)
def test_gradcheck_with_empty_rows(score, name):
    torch.manual_seed(2)
    module = scores.make_score(score, 3, 3, hidden=2, max_keys=9)
    module = module.double() if isinstance(module, torch.nn.Module) else module
    shapes = (2, 3, 3), (2, 5, 3), (2, 5, 2)
    inputs = [(torch.rand(s, dtype=torch.float64) + 0.1).requires_grad_() for s in shapes]
    mask = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 1, 0, 1, 1]], dtype=torch.bool)
    for need_weights in (True, False):

        def read(q, k, v, need_weights=need_weights):
            got = attend(q, k, v, mask, score=module, normalize=name, need_weights=need_weights)
            return tuple(t for t in got if t is not None)

        assert torch.autograd.gradcheck(read, inputs, fast_mode=True)


@pytest.mark.parametrize("mask", ["nothing", "causal", "lengths", "causal window", "tensor"])
def test_equals_torch_sdpa(mask):
    lazy, _ = MASKS[mask]
    query, key, value = draw(True, torch.float32)
    dense = None
    if lazy is not None:
        dense = masks.as_mask(lazy).tensor((B, H * GROUP, Q, K)).expand(B, 1, Q, K)
    expected = F.scaled_dot_product_attention(query, key, value, dense, enable_gqa=True)
    for need_weights in (True, False):
        got = attend(query, key, value, lazy, need_weights=need_weights).output
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3), (2, 3, 2), (2, 1, 3, 2)])
def test_any_leading_axes(leading):
    query, key, value = (torch.randn(*leading, n, s) for n, s in ((Q, D), (K, D), (K, V)))
    flat = [t.reshape(-1, *t.shape[-2:]) for t in (query, key, value)]
    for options in ({}, {"bias": torch.randn(Q, K)}, {"mask": masks.causal()}):
        for need_weights in (True, False):
            got = attend(query, key, value, need_weights=need_weights, **options).output
            one_by_one = [attend(q, k, v, **options).output for q, k, v in zip(*flat, strict=True)]
            torch.testing.assert_close(got, torch.stack(one_by_one).view(*leading, Q, V))


def test_leading_axes_broadcast():
    query, key, value = torch.randn(2, 1, Q, D), torch.randn(3, K, D), torch.randn(K, V)
    mask = torch.rand(5, 1, 1, Q, K) > 0.3
    for score in ("scaled_dot", scores.Additive(D, D, A)):
        spread = attend(
            query.expand(5, 2, 3, Q, D),
            key.expand(5, 2, 3, K, D),
            value.expand(5, 2, 3, K, V),
            mask,
            score=score,
        )
        for need_weights in (True, False):
            got = attend(query, key, value, mask, score=score, need_weights=need_weights)
            torch.testing.assert_close(got.output, spread.output)
    narrow = attend(query, key, value, mask)
    assert narrow.weights.shape == (5, 2, 3, Q, K)


def test_bias_soft_cap_and_mask_in_this_order():
    query, key, value = draw(False)
    bias = torch.randn(H, Q, K, dtype=torch.float64, requires_grad=True)
    mask, allowed = MASKS["causal lengths"]
    capped = 0.8 * torch.tanh((reference.scaled_dot(query, key) + bias) / 0.8)
    expected, weights = reference.attend(capped, value, allowed, reference.softmax)
    for need_weights in (True, False):
        got = attend(query, key, value, mask, bias=bias, softcap=0.8, need_weights=need_weights)
        torch.testing.assert_close(got.output, expected)
        for a, b in zip(
            gradients(got.output, None, [query, key, value, bias]),
            gradients(expected, None, [query, key, value, bias]),
            strict=True,
        ):
            torch.testing.assert_close(a, b)
    stages = steps(query, key, value, mask, bias=bias, softcap=0.8)
    torch.testing.assert_close(stages.products, reference.dot(query, key))
    torch.testing.assert_close(stages.scores, reference.scaled_dot(query, key))
    torch.testing.assert_close(stages.biased, stages.scores + bias)
    torch.testing.assert_close(stages.capped, capped)
    closed = torch.isneginf(stages.masked)
    assert torch.equal(stages.masked[~closed], stages.capped[~closed])
    assert all(
        closed[b, h, q, k] != allowed(b, q, k)
        for b, h, q, k in torch.cartesian_prod(*map(torch.arange, (B, H, Q, K))).tolist()
    )
    torch.testing.assert_close(stages.weights, weights)
    torch.testing.assert_close(stages.output, expected)


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("score", ["scaled_dot", "additive"])
def test_a_bias_of_minus_infinity_is_a_mask(score, learned):
    query, key, value = draw(False)
    score = scores.make_score(score, D, D)
    score = score.double() if isinstance(score, torch.nn.Module) else score
    mask = TENSOR.expand(B, 1, Q, K)
    bias = torch.zeros(B, 1, Q, K, dtype=torch.float64).masked_fill(~mask, float("-inf"))
    bias.requires_grad_(learned)
    expected = attend(query, key, value, mask, score=score)
    for need_weights in (True, False):
        got = attend(query, key, value, bias=bias, score=score, need_weights=need_weights)
        torch.testing.assert_close(got.output, expected.output)
        assert all(g.isfinite().all() for g in gradients(got.output, None, [query, key, value]))


def test_dropout_falls_on_the_weights_and_is_not_in_those_returned():
    query, key, value = draw(False, torch.float32)
    plain = attend(query, key, value)
    torch.manual_seed(7)
    dropped = attend(query, key, value, dropout=0.5)
    torch.manual_seed(7)
    kept = F.dropout(plain.weights, 0.5)
    assert torch.equal(dropped.weights, plain.weights)
    torch.testing.assert_close(dropped.output, kept @ value)
    torch.manual_seed(7)
    unseen = attend(query, key, value, dropout=0.5, need_weights=False)
    assert torch.equal(unseen.output, dropped.output)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("score", ["scaled_dot", "additive", "location"])
def test_no_keys_give_zeros(score, need_weights):
    score = scores.make_score(score, D, D)
    query, key, value = torch.randn(2, Q, D), torch.randn(2, 0, D), torch.randn(2, 0, V)
    got = attend(query, key, value, score=score, need_weights=need_weights)
    assert torch.equal(got.output, torch.zeros(2, Q, V))


@pytest.mark.parametrize("score", ["scaled_dot", "additive"])
def test_bf16_is_near_float32(score):
    score = scores.make_score(score, D, D, hidden=257)
    query, key, value = (torch.randn(2, n, s) for n, s in ((Q, D), (K, D), (K, V)))
    low = [t.bfloat16() for t in (query, key, value)]
    exact = attend(*(t.float() for t in low), score=score)
    if isinstance(score, torch.nn.Module):
        score.bfloat16()
    for need_weights in (True, False):
        got = attend(*low, score=score, need_weights=need_weights)
        assert got.output.dtype == torch.bfloat16
        torch.testing.assert_close(got.output.float(), exact.output, atol=0.02, rtol=0.02)


def test_explain_path_names_the_path_and_the_reason():
    query, key, value = draw(False, torch.float32)
    bias = torch.zeros(Q, K, requires_grad=True)
    additive = scores.Additive(D, D, A)
    cases = {
        "plain: the weights are requested": {},
        "fused: a dot-type": {"need_weights": False},
        "fused: a dot-type score": {"need_weights": False, "score": scores.Bilinear(D, D)},
        "plain: the normalizer is sparsemax": {"need_weights": False, "normalize": "sparsemax"},
        "plain: soft cap": {"need_weights": False, "softcap": 3.0},
        "plain: dropout": {"need_weights": False, "dropout": 0.1},
        "plain: the bias is learned": {"need_weights": False, "bias": bias},
        "plain: the score is not": {"need_weights": False, "score": lambda q, k: q @ k.mT},
        "plain: the weights are requested (additive scores by": {"score": additive},
        "additive ": {"need_weights": False, "score": additive},
    }
    for words, options in cases.items():
        assert str(explain_path(query, key, value, **options)).startswith(words)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    queries=st.integers(1, 9),
    keys=st.integers(1, 9),
    name=st.sampled_from(["softmax", "sparsemax", "entmax15", "top_k(3)", "hard"]),
    score=st.sampled_from(["dot", "cosine", "bilinear", "additive", "mlp"]),
)
def test_what_always_holds(seed, queries, keys, name, score):
    torch.manual_seed(seed)
    module = scores.make_score(score, 5, 5)
    query, key, value = torch.randn(queries, 5), torch.randn(keys, 5), torch.randn(keys, 3)
    mask = torch.rand(queries, keys) > 0.4
    got = attend(query, key, value, mask, score=module, normalize=name)
    sums = mask.any(-1).float()
    torch.testing.assert_close(got.weights.sum(-1), sums)
    assert (got.weights[~mask] == 0).all()
    assert (got.weights >= 0).all()
    order = torch.randperm(keys)
    shuffled = attend(query, key[order], value[order], mask[:, order], score=module, normalize=name)
    torch.testing.assert_close(shuffled.weights, got.weights[:, order], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(shuffled.output, got.output, atol=1e-5, rtol=1e-5)
    padded = attend(
        query,
        torch.cat([key, torch.full((2, 5), 1e4)]),
        torch.cat([value, torch.full((2, 3), 1e4)]),
        F.pad(mask, (0, 2)),
        score=module,
        normalize=name,
    )
    torch.testing.assert_close(padded.output, got.output)


def test_self_attention_without_weights_ignores_order():
    """The lectures' reweighing: dot products, normalised to sum one, at any length."""
    for length in (4, 19):
        words = torch.rand(length, 6)
        got = attend(words, words, words, score="dot", normalize="sum")
        torch.testing.assert_close(got.weights.sum(-1), torch.ones(length))
        order = torch.randperm(length)
        shuffled = attend(words[order], words[order], words[order], score="dot", normalize="sum")
        torch.testing.assert_close(shuffled.output, got.output[order])


def test_sparse_normalizers_refuse_a_second_derivative():
    scores_ = torch.randn(3, 5, requires_grad=True)
    for function in (normalizers.sparsemax, normalizers.entmax15):
        with pytest.raises(RuntimeError, match="differentiated only once"):
            torch.autograd.grad(function(scores_).pow(2).sum(), scores_, create_graph=True)


def test_second_derivative_of_the_plain_path():
    query, key, value = (torch.randn(3, 2, dtype=torch.float64, requires_grad=True) for _ in "qkv")

    def read(q, k, v):
        return attend(q, k, v, masks.causal()).output

    assert torch.autograd.gradgradcheck(read, (query, key, value))
