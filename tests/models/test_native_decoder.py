"""The compiled decoder beside the translator it was compiled from, step by step."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.models import Translator, TranslatorConfig
from regard.models.native import native_decoder, native_library
from regard.models.native.native_decoder import NativeDecoder, explain_decoder

TRANSFORMERS: list[dict[str, Any]] = [
    {"model": "transformer", "width": 36, "heads": 6, "layers": 2},
    {"model": "transformer", "width": 34, "heads": 2, "norm": "post", "tied": False},
]
RECURRENT: list[dict[str, Any]] = [
    {},
    {"cell": "lstm", "attention": "bilinear"},
    {"cell": "elman", "attention": "dot", "order": "bahdanau", "input_feeding": True},
    {"cell": "lstm", "attention": "scaled_dot", "order": "bahdanau"},
    {"attention": "mlp", "input_feeding": False},
    {"encoder": "transformer", "decoder": "recurrent"},
    {"encoder": "recurrent", "decoder": "transformer"},
]
MODELS = TRANSFORMERS + RECURRENT
SOURCE = torch.randint(4, 29, (3, 7), generator=torch.Generator().manual_seed(3))
LENGTHS = torch.tensor([7, 4, 5])


def _model(options: dict[str, Any]) -> Translator:
    torch.manual_seed(5)
    model = Translator(TranslatorConfig(**{"width": 26, "heads": 2} | options), 29, 31)
    with torch.no_grad():
        for weights in model.parameters():
            if weights.ndim == 1:  # biases and norms begin as zeros and ones
                weights.add_(torch.randn_like(weights) * 0.2)
    return model.eval()


@torch.no_grad()
def _steps(
    model: Translator, decoder: Any, words: Tensor, rows: slice = slice(None), **options: Any
) -> list[tuple[Tensor, dict[str, Tensor]]]:
    state = decoder.start(model.encode(SOURCE[rows], LENGTHS[rows]))
    results = []
    for fed in words[rows].T:
        log_probabilities, state, weights = decoder.step(fed, state, **options)
        results.append((log_probabilities, weights))
    return results


WORDS = torch.randint(0, 31, (3, 6), generator=torch.Generator().manual_seed(4))


@pytest.mark.parametrize("options", MODELS, ids=str)
def test_steps_agree_with_torch(options: dict[str, Any]) -> None:
    model = _model(options)
    allowed = torch.rand(3, 7, generator=torch.Generator().manual_seed(6)) < 0.6
    allowed[2] = False  # a row that may attend to nothing
    for more in ({}, {"allowed": allowed}):
        expected = _steps(model, model, WORDS, **more)
        found = _steps(model, NativeDecoder(model), WORDS, **more)
        for (log_a, weights_a), (log_b, weights_b) in zip(expected, found, strict=True):
            torch.testing.assert_close(log_b, log_a, atol=1e-5, rtol=1e-5)
            assert list(weights_a) == list(weights_b)
            for name, weights in weights_a.items():
                torch.testing.assert_close(weights_b[name], weights, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("options", [TRANSFORMERS[0], RECURRENT[0]], ids=str)
@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_neither_batch_nor_looking_nor_threads_change_a_step(
    options: dict[str, Any], quantize: Any
) -> None:
    model = _model(options)
    decoder = NativeDecoder(model, quantize)
    together = _steps(model, decoder, WORDS)
    for looking in _steps(model, decoder, WORDS, need_weights=False):
        assert looking[1] == {}
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    again = _steps(model, decoder, WORDS, need_weights=False)
    torch.set_num_threads(threads)
    for (log_a, _), (log_b, _) in zip(together, again, strict=True):
        assert torch.equal(log_a, log_b)
    if quantize == "none":  # the encoder's states differ in their last bits with the batch
        alone = _steps(model, decoder, WORDS, rows=slice(1, 2))
        for (log_a, _), (log_b, _) in zip(together, alone, strict=True):
            torch.testing.assert_close(log_a[1:2], log_b, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("level", native_library.LEVELS)
def test_every_instruction_set_gives_the_same_step(level: str) -> None:
    try:
        native_library.force_level(level)
    except ValueError:  # this machine has fewer
        return
    try:
        for options in (TRANSFORMERS[1], RECURRENT[0], RECURRENT[1]):
            model = _model(options)
            expected = _steps(model, model, WORDS)[-1][0]
            torch.testing.assert_close(
                _steps(model, NativeDecoder(model), WORDS)[-1][0], expected, atol=1e-5, rtol=1e-5
            )
    finally:
        native_library.force_level(None)


@pytest.mark.parametrize("options", [TRANSFORMERS[0], RECURRENT[0]], ids=str)
def test_int8_stays_near(options: dict[str, Any]) -> None:
    model = _model(options)
    expected, found = (
        torch.stack([log for log, _ in _steps(model, decoder, WORDS)])
        for decoder in (model, NativeDecoder(model, "int8"))
    )
    assert 0 < (expected - found).abs().max() < 0.2


@pytest.mark.parametrize(
    "options", [*TRANSFORMERS, {}, {"cell": "lstm"}, {"cell": "gru", "layers": 2}], ids=str
)
@pytest.mark.parametrize("quantize", ["none", "int8"])
def test_the_encoder_agrees_with_torch(options: dict[str, Any], quantize: Any) -> None:
    model = _model(options)
    decoder = NativeDecoder(model, quantize)
    with torch.no_grad():
        expected = model.encode(SOURCE, LENGTHS, need_weights=True)
        found = decoder.encode(SOURCE, LENGTHS, need_weights=True)
        assert torch.equal(decoder.encode(SOURCE, LENGTHS).states, found.states)
    close = {"atol": 1e-5, "rtol": 1e-5} if quantize == "none" else {"atol": 0.3, "rtol": 0.0}
    torch.testing.assert_close(found.states, expected.states, **close)
    torch.testing.assert_close(found.last, expected.last, **close)
    assert list(found.weights) == list(expected.weights)
    for name, weights in expected.weights.items():
        for row, length in enumerate(LENGTHS.tolist()):
            torch.testing.assert_close(
                found.weights[name][row, :, :length], weights[row, :, :length], **close
            )


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_recurrent_encoder_reads_any_lengths(cell: str) -> None:
    model = _model({"cell": cell})
    lengths = torch.tensor([0, 7, 3, 7, 1])
    source = torch.randint(4, 29, (5, 9), generator=torch.Generator().manual_seed(8))
    with torch.no_grad():
        expected = model.encode(source, lengths)
        native = NativeDecoder(model)
        found = native.encode(source, lengths)
        alone = native.encode(source[2:3, :3], lengths[2:3])
        nothing = native.encode(source[:0], lengths[:0])
    torch.testing.assert_close(found.states, expected.states, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.last, expected.last, atol=1e-5, rtol=1e-5)
    assert torch.equal(alone.states[0], found.states[2, :3])
    assert nothing.states.shape == (0, 9, 26)


def test_a_state_may_be_continued_twice() -> None:
    model = _model(TRANSFORMERS[0])
    decoder = NativeDecoder(model)
    with torch.no_grad():
        state = decoder.start(model.encode(SOURCE, LENGTHS))
        _, once, _ = decoder.step(WORDS[:, 0], state)
        first = decoder.step(WORDS[:, 1], once)[0]
        decoder.step(WORDS[:, 2], once)
        assert torch.equal(decoder.step(WORDS[:, 1], once)[0], first)


REASONS = [
    ({"attention": "cosine"}, "its score is neither additive nor a dot product of prepared keys"),
    ({"attention": "none"}, "it has no attention"),
    ({"local": "p"}, "its attention is local"),
    ({"normalize": "sparsemax"}, "its normalizer is not softmax"),
    ({"model": "transformer", "experts": 2}, "its feed-forward networks are experts or have gates"),
    ({"model": "transformer", "attention": "additive"}, "its score is not a dot product"),
    ({"model": "transformer", "normalize": "sparsemax"}, "its normalizer is not softmax"),
]


@pytest.mark.parametrize(("options", "reason"), REASONS)
def test_what_a_plan_does_not_know_is_left_to_torch(options: dict[str, Any], reason: str) -> None:
    model = _model(options)
    assert str(explain_decoder(model)) == f"torch: {reason}"
    assert native_decoder.native_decoder(model) is None
    with pytest.raises(ValueError, match=f"cannot be compiled: {reason}"):
        NativeDecoder(model)


def test_models_that_may_answer_otherwise_are_left_to_torch() -> None:
    model = _model({})
    assert str(explain_decoder(model)) == f"native: compiled for {native_library.level()}"
    assert "training mode" in explain_decoder(model.train()).reason
    hook = model.eval().decoder.register_forward_hook(lambda *_: None)
    assert "a hook may change what a RecurrentDecoder gives" in explain_decoder(model).reason
    hook.remove()
    seen = []

    def watch(*_: Any) -> None:
        seen.append(1)

    watch.only_watches = True  # type: ignore[attr-defined]
    hook = model.decoder.register_forward_pre_hook(watch)
    _steps(model, NativeDecoder(model), WORDS)
    assert len(seen) == WORDS.shape[1]
    hook.remove()
    assert "torch.float64" in explain_decoder(model.double()).reason

    class Other(Translator):
        pass

    other = Other(TranslatorConfig(width=8), 9, 9).eval()
    assert explain_decoder(other).reason == "a Other is not a Translator itself"


def test_changed_weights_are_compiled_again() -> None:
    model = _model({})
    first = native_decoder.native_decoder(model)
    assert first is not None
    assert native_decoder.native_decoder(model) is first
    with torch.no_grad():
        model.words.bias += 1
    assert native_decoder.native_decoder(model) is not first


def test_updates_of_a_fused_optimizer_are_compiled_again() -> None:
    model = _model({})
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    for _ in range(2):
        compiled = native_decoder.native_decoder(model)
        expected, given = _steps(model, model, WORDS), _steps(model, compiled, WORDS)
        torch.testing.assert_close(given[-1][0], expected[-1][0], rtol=1e-4, atol=1e-4)
        for weights in model.parameters():
            weights.grad = torch.ones_like(weights)
        optimizer.step()


def test_without_the_library_torch_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_library, "_load", lambda: "it was not built")
    assert str(explain_decoder(_model({}))) == "torch: it was not built"
    with pytest.raises(RuntimeError, match="the native decoder: it was not built"):
        native_library.level()


def test_a_word_outside_of_the_vocabulary_is_an_error() -> None:
    model = _model(TRANSFORMERS[0])
    with pytest.raises(IndexError, match="not in the vocabulary of 31"):
        _steps(model, NativeDecoder(model), torch.full((3, 1), 31))


def test_positions_go_beyond_those_computed_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_decoder, "POSITIONS", 2)
    model = _model(TRANSFORMERS[0])
    expected = _steps(model, model, WORDS)[-1][0]
    torch.testing.assert_close(
        _steps(model, NativeDecoder(model), WORDS)[-1][0], expected, atol=1e-5, rtol=1e-5
    )
