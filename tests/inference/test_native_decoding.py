"""Translations by the compiled decoder beside those by torch, on translators that have learnt."""

import io
from typing import Any

import numpy as np
import pytest

from regard.cli import main
from regard.errors import RegardError
from regard.models.native import native_library
from regard.serve.limits import Limits
from regard.serve.served_models import ServedModels
from tests.inference.trained import VARIANTS, sources, translator

TEXTS = [*sources(12, seed=5), *sources(4, seed=6, longest=14)]


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 5, "nbest": 3}], ids=str)
@pytest.mark.parametrize("variant", VARIANTS)
def test_translations_are_those_of_torch(
    variant: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = translator(variant)
    asked = {**options, "weights": True, "return_tokens": True}
    native = run.predict(TEXTS, **asked)
    quick = run.predict(TEXTS, **options)
    alone = run.predict(TEXTS[:4], batch_size=1, **options)
    monkeypatch.setattr(native_library, "_load", lambda: "it was not built")
    for number, (ours, theirs) in enumerate(zip(native, run.predict(TEXTS, **asked), strict=True)):
        assert ours.output == theirs.output == quick[number].output
        assert number >= len(alone) or ours.output == alone[number].output
        pairs = [(ours.details, theirs.details)]
        if "nbest" in ours.details:
            pairs = list(zip(ours.details["nbest"], theirs.details["nbest"], strict=True))
        for our, their in pairs:
            assert our["tokens"] == their["tokens"]
            np.testing.assert_allclose(
                our["token_log_probabilities"], their["token_log_probabilities"], atol=1e-4
            )
            assert our["weights"].keys() == their["weights"].keys()
            for name, weights in their["weights"].items():
                np.testing.assert_allclose(our["weights"][name], weights, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_int8_is_near_and_never_silent(
    variant: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = translator(variant)
    exact = run.predict(TEXTS, beam=1)
    quantized = run.predict(TEXTS, beam=1, quantize="int8")
    scores = [[one.details["log_probability"] for one in some] for some in (exact, quantized)]
    assert scores[0] != scores[1]
    assert sum(a.output == b.output for a, b in zip(exact, quantized, strict=True)) >= 12
    monkeypatch.setattr(native_library, "_load", lambda: "it was not built")
    with pytest.raises(RegardError, match="int8 needs the native decoder: it was not built"):
        run.predict(["dog"], quantize="int8")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"dog\n")))
    assert main(["predict", str(run.folder.path), "--quantize", "int8"]) == 2
    assert "--quantize" in capsys.readouterr().err


def test_a_server_quantizes_predictions_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    run = translator("transformer")
    served = ServedModels.load([run.folder.path], Limits(), quantize="int8")
    model = next(iter(served))
    try:
        found = model.worker.predict(TEXTS[:2])
        expected = run.predict(TEXTS[:2], quantize="int8")
        assert [one.details for one in found] == [one.details for one in expected]
    finally:
        served.close(1.0)
    monkeypatch.setattr(native_library, "_load", lambda: "it was not built")
    with pytest.raises(RegardError, match="int8 needs the native decoder: it was not built"):
        ServedModels.load([run.folder.path], Limits(), quantize="int8")
    with pytest.raises(RegardError, match="applies to none of these runs"):
        ServedModels.load([], Limits(), quantize="int8")
