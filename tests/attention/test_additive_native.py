"""The C kernel as a citizen of torch: operators, threads, determinism, the build itself."""

import os
import subprocess
import sys

import pytest
import torch
from torch.library import opcheck

from regard.attention import additive_native as native
from regard.attention.additive import additive_attention, additive_scores, choose

needs_kernel = pytest.mark.skipif(not native.available(), reason=str(native.why_not()))


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def tensors(b=2, q=7, k=11, a=13, v=5):
    shapes = ((b, q, a), (b, k, a), (a,), (b, k, v))
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


def gradients(inputs, **options):
    output = additive_attention(*inputs, native=True, **options)
    return output, *torch.autograd.grad(output.cos().sum(), inputs)


@pytest.mark.skipif(os.environ.get("CI") != "true", reason="only CI insists on the kernel")
def test_ci_builds_and_uses_the_kernel():
    assert native.why_not() is None
    query, key, _, value = tensors()
    assert choose(query, key, value)[0] == "native"


def test_availability_is_explained():
    assert native.available() == (native.why_not() is None)


def test_a_missing_kernel_is_explained(monkeypatch):
    why = "the kernel was not built"
    monkeypatch.setattr(native, "_load", lambda: why)
    query, key, weight, value = tensors()
    assert not native.available()
    assert choose(query, key) == ("blocks", why)
    assert additive_attention(query, key, weight, value).shape == (2, 7, 5)
    with pytest.raises(ValueError, match=f"native=True, but {why}"):
        additive_scores(query, key, weight, native=True)
    with pytest.raises(RuntimeError, match=why):
        native.scores(query.detach(), key.detach(), weight.detach())


@needs_kernel
def test_unknown_level():
    with pytest.raises(
        ValueError, match="unknown instruction set 'sse9': expected one of baseline"
    ):
        native.force_level("sse9")


@needs_kernel
@pytest.mark.parametrize("level", native.LEVELS)
def test_tanh_to_a_millionth(level):
    try:
        native.force_level(level)
    except ValueError as reason:
        pytest.skip(str(reason))
    x = torch.cat([torch.linspace(-25, 25, 100_003), torch.tensor([0.0, 1e30, -1e30, 1e-30])])
    error = (native.tanh(x).double() - x.double().tanh()).abs().max()
    native.force_level(None)
    assert error < 5e-7


@needs_kernel
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("sizes", [(5, 7, 11, 13, 3), (1, 131, 149, 17, 5)], ids=str)
def test_same_numbers_every_time(threads, count, sizes):
    threads(count)
    inputs = tensors(*sizes)
    first = gradients(inputs)
    for _ in range(3):
        for one, other in zip(first, gradients(inputs), strict=True):
            assert torch.equal(one, other)


@needs_kernel
def test_threads_agree(threads):
    """Long enough that the work is cut into chunks of queries and keys, causal and not."""
    inputs = tensors(1, 131, 149, 17, 5)
    causal = torch.zeros(131, dtype=torch.int64), torch.arange(19, 150)
    for spans in (None, causal):
        results = []
        for count in (1, 2, 3):
            threads(count)
            results.append(gradients(inputs, spans=spans))
        for result in results[1:]:
            for one, other in zip(results[0], result, strict=True):
                torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@needs_kernel
def test_operators_pass_torch_checks():
    query, key, weight, value = tensors()
    start = torch.zeros(2, 7, dtype=torch.int64)
    mask = torch.rand(2, 7, 11) < 0.7
    opcheck(native.scores, (query, key, weight))
    opcheck(native.attention, (query, key, weight, value, None, None, None, None))
    opcheck(
        native.attention,
        (query, key, weight, value, start, start + 5, mask, torch.tensor([1, 0])),
    )


@needs_kernel
def test_meta_tensors():
    inputs = [tensor.detach().to("meta") for tensor in tensors()]
    assert additive_attention(*inputs).shape == (2, 7, 5)
    assert additive_scores(*inputs[:3]).device.type == "meta"
    inputs = [tensor.requires_grad_() for tensor in inputs]
    additive_attention(*inputs).sum().backward()
    assert inputs[1].grad.shape == (2, 11, 13)


@needs_kernel
def test_under_autocast_it_runs_in_float32():
    query, key, weight, value = tensors(a=257)
    expected = additive_attention(query, key, weight, value)
    with torch.autocast("cpu", torch.bfloat16):
        result = additive_attention(query, key, weight, value)
        operator, _ = native.attention(query, key, weight, value, None, None, None, None)
    assert result.dtype == operator.dtype == torch.float32
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(operator, expected)


COMPILED = """
import torch
from regard.attention.additive import additive_attention

def attend(*inputs):
    spans = torch.zeros(7, dtype=torch.int64), torch.arange(3, 10)
    return additive_attention(*inputs, spans=spans).sin()

shapes = ((2, 7, 13), (2, 11, 13), (13,), (2, 11, 5))
inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
expected = torch.autograd.grad(attend(*inputs).sum(), inputs)
compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
for one, other in zip(torch.autograd.grad(compiled(*inputs).sum(), inputs), expected):
    torch.testing.assert_close(one, other)
"""


@needs_kernel
def test_compiled_in_one_graph():
    """In a process of its own, because the compiler cannot look through the checks of shapes."""
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@needs_kernel
def test_with_and_without_the_operator():
    inputs = tensors()
    with torch.no_grad():
        direct = additive_attention(*inputs), additive_scores(*inputs[:3])
    assert torch.equal(direct[0], additive_attention(*inputs))
    assert torch.equal(direct[1], additive_scores(*inputs[:3]))


@needs_kernel
def test_memory_is_linear_in_the_length():
    """At 16384 keys the scores of all pairs alone would be a gigabyte."""
    query, key, weight, value = (x.detach() for x in tensors(1, 16384, 16384, 4, 4))
    last = torch.arange(1, 16385)
    output = additive_attention(query, key, weight, value, spans=(last - 1, last))
    torch.testing.assert_close(output, value)
