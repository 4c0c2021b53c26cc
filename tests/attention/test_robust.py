"""What users do that is not in the equations: hooks, subclasses, NaN in padding, torch.func."""

import pickle

import pytest
import torch

from regard.attention import attend, explain_path, masks, scores, steps

NAN = float("nan")


def draw(*sizes):
    return tuple(torch.randn(2, n, s) for n, s in sizes)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("score", ["dot", "cosine", "bilinear", "mlp", "additive", "location"])
@pytest.mark.parametrize(
    "normalize", ["softmax", "sparsemax", "sigmoid", "sum", "hard", "top_k(2)"]
)
def test_padding_may_hold_anything(score, normalize, need_weights):
    score = scores.make_score(score, 6, 6)
    query, key, value = draw((5, 6), (7, 6), (7, 3))
    poison = [t.clone() for t in (key, value)]
    for tensor in poison:
        tensor[0, 4:] = NAN
        tensor[1] = float("inf")
    query.requires_grad_()
    inputs = [query, *(t.requires_grad_() for t in poison)]
    for mask in (masks.lengths([4, 0]), masks.lengths([4, 0]) & masks.window(9)):
        got = attend(*inputs, mask, score=score, normalize=normalize, need_weights=need_weights)
        clean = attend(
            query, key, value, mask, score=score, normalize=normalize, need_weights=need_weights
        )
        torch.testing.assert_close(got.output, clean.output)
        for gradient in torch.autograd.grad(got.output.sum(), inputs, allow_unused=True):
            assert gradient is None or gradient.isfinite().all()


def test_padding_with_grouped_heads_and_masks_a_head():
    query, key, value = (torch.randn(2, h, n, 4) for h, n in ((6, 5), (3, 7), (3, 7)))
    mask = torch.rand(2, 6, 5, 7) > 0.3
    mask[..., 5:] = False
    expected = attend(query, key, value, mask).output
    key[..., 5:, :], value[..., 5:, :] = NAN, NAN
    for need_weights in (True, False):
        got = attend(query, key, value, mask, need_weights=need_weights).output
        torch.testing.assert_close(got, expected)


def test_steps_are_those_of_attend_whatever_stands_in_padding():
    query, key, value = draw((5, 6), (7, 6), (7, 3))
    mask = masks.lengths([4, 0])
    key[0, 4:], value[0, 4:], key[1], value[1] = NAN, NAN, NAN, NAN
    stages = steps(query, key, value, mask)
    got = attend(query, key, value, mask)
    torch.testing.assert_close(stages.output, got.output)
    torch.testing.assert_close(stages.weights, got.weights)
    assert stages.scores[0, :, 4:].isnan().all()


class Halved(scores.Additive):
    def forward(self, query, key):
        return super().forward(query, key) / 2


class Named(torch.nn.Module):
    """A user's score whose attributes have the names of ours."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(6))
        self.project = torch.nn.Linear(6, 6)
        self.factors = 3

    def forward(self, query, key):
        return (self.project(query) * self.weight) @ key.mT


@pytest.mark.parametrize("make", [lambda: Halved(6, 6, 9), Named])
def test_a_users_module_is_called_on_every_path(make):
    query, key, value = draw((5, 6), (7, 6), (7, 3))
    module = make()
    seen = attend(query, key, value, score=module)
    torch.testing.assert_close(seen.weights, module(query, key).softmax(-1))
    unseen = attend(query, key, value, score=module, need_weights=False)
    torch.testing.assert_close(unseen.output, seen.output)


@pytest.mark.parametrize("kind", [scores.Bilinear, scores.Additive])
def test_hooks_are_honoured(kind):
    query, key, value = draw((5, 6), (7, 6), (7, 3))
    module = kind(6, 6)
    module.register_forward_hook(lambda module, inputs, output: output * 0)
    got = attend(query, key, value, score=module, need_weights=False)
    torch.testing.assert_close(got.output, value.mean(1, keepdim=True).expand_as(got.output))


@pytest.mark.parametrize("need_weights", [True, False])
def test_tensors_in_combinations_are_checked(need_weights):
    query, key, value = draw((5, 6), (7, 6), (7, 3))
    for wrong in (torch.ones(9, 9), torch.ones(5, 6)):
        with pytest.raises(ValueError, match=r"mask of shape .* does not broadcast with scores"):
            attend(query, key, value, masks.causal() & wrong.bool(), need_weights=need_weights)
    wide = masks.causal() & torch.ones(4, 5, 7).bool()
    got = attend(query[:1], key[:1], value[:1], wide, need_weights=need_weights)
    assert got.output.shape == (4, 5, 3)


def test_transposed_inputs_stay_on_the_fused_kernel():
    columns = torch.randn(1, 2, 16, 64).mT
    assert explain_path(columns, columns, columns, need_weights=False).name == "fused"
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        got = attend(columns, columns, columns, need_weights=False).output
    torch.testing.assert_close(got, attend(columns, columns, columns).output)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("score", ["dot", "additive"])
def test_transforms_of_torch_func(score, need_weights):
    score = scores.make_score(score, 6, 6)
    query, key, value = draw((5, 6), (7, 6), (7, 3))

    def read(q):
        return attend(q, key, value, score=score, need_weights=need_weights).output

    query.requires_grad_()
    (expected,) = torch.autograd.grad(read(query).sum(), query)
    torch.testing.assert_close(torch.func.grad(lambda q: read(q).sum())(query.detach()), expected)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own
def test_forward_derivatives_of_additive_scores():
    score = scores.Additive(6, 6, 9).double()
    query, key, value = (t.double() for t in draw((5, 6), (7, 6), (7, 3)))
    step = torch.randn_like(query)
    for need_weights in (True, False):

        def read(q, need_weights=need_weights):
            return attend(q, key, value, score=score, need_weights=need_weights).output

        _, got = torch.func.jvp(read, (query,), (step,))
        numeric = (read(query + 1e-6 * step) - read(query - 1e-6 * step)) / 2e-6
        torch.testing.assert_close(got, numeric, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("need_weights", [True, False])
def test_a_bias_of_another_dtype(need_weights):
    query, key, value = (t.bfloat16() for t in draw((5, 6), (7, 6), (7, 3)))
    bias = torch.randn(5, 7)
    got = attend(query, key, value, bias=bias, need_weights=need_weights).output
    exact = attend(query.float(), key.float(), value.float(), bias=bias).output
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), exact, atol=0.05, rtol=0.05)


def test_no_keys_keep_the_graph():
    query = torch.randn(2, 5, 6, requires_grad=True)
    got = attend(query, torch.randn(2, 0, 6), torch.randn(2, 0, 3), need_weights=False)
    got.output.sum().backward()
    assert (query.grad == 0).all()


def test_masks_pickle_and_draw_together():
    for mask in (masks.causal(), masks.dilated(2), masks.others() & masks.lengths([2])):
        again = pickle.loads(pickle.dumps(mask))
        assert torch.equal(again.tensor((1, 3, 4)), mask.tensor((1, 3, 4)))
    assert str(masks.documents([0, 0, 1]) & masks.causal()) == "█ · ·\n█ █ ·\n· · █"
    assert str(masks.causal() & torch.ones(2, 2).bool()) == "█ ·\n█ █"


@pytest.mark.usefixtures("shapes_unchecked")
def test_things_that_are_not_tensors():
    query, key, value = draw((5, 6), (7, 6), (7, 3))
    for arguments, options, words in (
        (([[1.0]], key, value), {}, "query must be a tensor; got list"),
        (
            (query, key.double(), value),
            {},
            "must have the same dtype; got torch.float32, torch.float64",
        ),
        ((query, key, value), {"bias": 1.0}, "a floating-point tensor; got float"),
        ((query, key, value), {"score": None}, "a score is a name, a function .* got None"),
        ((query, key, value), {"normalize": None}, "a normalizer is a name or a function"),
        ((query, key, value), {"softcap": NAN}, "softcap must be a positive number"),
    ):
        with pytest.raises(ValueError, match=words):
            attend(*arguments, **options)
    with pytest.raises(ValueError, match=r"window\(2.5\): expected a whole number"):
        masks.window(2.5)
