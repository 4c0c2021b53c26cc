"""Products by oneDNN: as exact as by MKL, taken only where measured, kept by a run."""

import json

import pytest
import torch

from regard.training import matrix_products
from regard.training.matrix_products import _has_choice, choose_library, measure, multiply_by
from regard.training.run import train_run
from tests.training.tiny import OPTIONS, write_data

CPU = torch.device("cpu")
needs_choice = pytest.mark.skipif(not _has_choice(), reason="this torch leaves no choice here")
FAST = {"mkl": 3.0, "onednn": 1.0, "error": 3e-7}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(matrix_products, "_has_choice", lambda: True)
    return tmp_path / "regard" / "matrix_products.json"


@needs_choice
@pytest.mark.parametrize(("rows", "inner", "columns"), [(37, 53, 71), (1, 129, 7), (260, 31, 515)])
def test_values_and_gradients_are_those_of_float32(rows, inner, columns):
    torch.manual_seed(1)
    x, weight, out = (torch.randn(a, b) for a, b in ((rows, inner), (columns, inner), (rows, 1)))
    parts = []
    for library, dtype in (("mkl", torch.float64), ("mkl", torch.float32), ("onednn", None)):
        left, right = (t.clone().to(dtype or torch.float32).requires_grad_() for t in (x, weight))
        with multiply_by(library):
            product = left @ right.t()
            product.backward(out.to(product.dtype).expand_as(product).contiguous())
        parts.append([product.detach(), left.grad, right.grad])
    exact, plain, fast = parts
    for truth, one, other in zip(exact, plain, fast, strict=True):
        scale = float(truth.norm())
        assert float((one - truth).norm()) < 1e-6 * scale
        if measure()["error"] < matrix_products.EXACT:
            assert float((other - truth).norm()) < 1e-6 * scale


@needs_choice
def test_the_setting_ends_with_its_block_even_after_an_error():
    before = torch.backends.mkldnn.matmul.fp32_precision

    def fail():
        with multiply_by("onednn"):
            assert torch.backends.mkldnn.matmul.fp32_precision == "bf16"
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert torch.backends.mkldnn.matmul.fp32_precision == before


@pytest.mark.parametrize(
    ("measured", "library"),
    [
        (FAST, "onednn"),
        ({**FAST, "onednn": 2.9}, "mkl"),
        ({**FAST, "error": 2e-3}, "mkl"),
        (None, "mkl"),
    ],
)
def test_onednn_is_taken_where_it_is_faster_and_as_exact(measured, library, cache, monkeypatch):
    monkeypatch.setattr(matrix_products, "_measure_apart", lambda: measured)
    assert choose_library(CPU) == library
    assert list(json.loads(cache.read_text()).values()) == [library]
    monkeypatch.setattr(matrix_products, "_measure_apart", lambda: pytest.fail("measured twice"))
    assert choose_library(CPU) == library


@pytest.mark.parametrize("content", ["", "[1]", '{"other machine": "onednn"}', '{"x": 3}'])
def test_what_another_machine_or_a_damaged_file_says_does_not_count(content, cache, monkeypatch):
    monkeypatch.setattr(matrix_products, "_measure_apart", lambda: None)
    cache.parent.mkdir()
    cache.write_text(content)
    assert choose_library(CPU) == "mkl"


def test_a_process_that_dies_while_it_measures_changes_nothing(cache, monkeypatch):
    program = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
    run = matrix_products.subprocess.run
    monkeypatch.setattr(
        matrix_products.subprocess,
        "run",
        lambda command, **options: run([command[0], "-c", program], **options),
    )
    assert choose_library(CPU) == "mkl"


def test_a_measurement_that_took_too_long_is_made_again(cache, monkeypatch):
    monkeypatch.setattr(matrix_products, "SECONDS", 0.01)
    assert choose_library(CPU) == "mkl"
    assert not cache.exists()
    monkeypatch.setattr(matrix_products, "_measure_apart", lambda: FAST)
    assert choose_library(CPU) == "onednn"


def test_a_device_that_is_no_cpu_is_not_measured(cache, monkeypatch):
    monkeypatch.setattr(matrix_products, "_measure_apart", lambda: pytest.fail("measured"))
    assert choose_library(torch.device("meta")) == "mkl"


@needs_choice
@pytest.mark.parametrize(
    ("began", "resumed", "used"), [("mkl", "onednn", "mkl"), ("onednn", "mkl", "mkl")]
)
def test_a_run_resumes_with_its_own_library_where_that_is_exact(
    began, resumed, used, tmp_path, monkeypatch
):
    def train(library, steps):
        monkeypatch.setattr("regard.training.loop.choose_library", lambda device: library)
        train_run("classify", {"data": data, **OPTIONS["classify"], "steps": steps}, out)
        lines = (out / "metrics.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line)["products"] for line in lines if "products" in line]

    data, out = write_data(tmp_path, "classify"), tmp_path / "run"
    assert set(train(began, 2)) == {began}
    assert train(resumed, 4)[-1] == used
