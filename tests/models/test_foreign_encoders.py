"""An encoder or decoder of another package works wherever a built-in one does."""

import importlib.metadata
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest
import torch

import regard
from regard import plugins
from regard.errors import RegardError
from regard.inference.export import graphs_of
from regard.models import DECODERS, ENCODERS, LanguageConfig, TaggerConfig
from regard.models.algorithm import AlgorithmConfig
from regard.models.causal_networks import EncoderNetwork, TransformerNetwork
from regard.models.encoders import TransformerEncoder, make_encoder
from regard.models.layer_options import LayerOptions
from regard.plugins import Table
from tests.models import foreign_encoders
from tests.models.catalogue import BATCH, MAKERS, WIDTH, inputs, one, run
from tests.models.foreign_encoders import HERE, Averaging, Backwards, Convolution, Mirrored

MODELS: list[tuple[str, dict[str, Any]]] = [
    ("classifier", {}),
    ("classifier", {"pooling": "fixed", "queries": 2}),
    ("classifier", {"experts": 2}),
    ("tagger", {}),
    ("tagger", {"crf": False}),
    ("translator", {}),
    ("translator", {"attention": "none", "cell": "lstm"}),
    ("translator", {"decoder": "transformer", "layers": 1}),
]
FOREIGN = ["convolution", f"{HERE}:Averaging"]


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    ENCODERS.register("convolution", Convolution)
    DECODERS.register("mirrored", Mirrored)
    yield
    del ENCODERS._rows["convolution"]
    del DECODERS._rows["mirrored"]


@pytest.mark.parametrize("encoder", FOREIGN)
@pytest.mark.parametrize(("task", "config"), MODELS)
def test_padding_and_neighbours_change_nothing(
    task: str, config: dict[str, Any], encoder: str
) -> None:
    model, batch = MAKERS[task][0](encoder=encoder, **config).double().eval(), inputs()
    together = run(model, batch, need_weights=True)
    assert ("encoder.mean" in together.weights) == ("Averaging" in encoder)
    for row in range(BATCH):
        alone = run(model, one(batch, row), need_weights=True)
        real = int(batch["lengths"][row]) if task == "tagger" else None
        torch.testing.assert_close(together.logits[row, :real], alone.logits[0])


@pytest.mark.parametrize("encoder", FOREIGN)
@pytest.mark.parametrize(("task", "config"), MODELS)
def test_gradients_are_finite(task: str, config: dict[str, Any], encoder: str) -> None:
    model = MAKERS[task][0](encoder=encoder, **config)
    run(model, inputs()).logits.logsumexp(-1).sum().backward()
    for name, parameter in model.named_parameters():
        if not name.startswith("crf."):
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name


def test_an_encoder_says_itself_whether_it_needs_positions() -> None:
    for task in ("classifier", "tagger"):
        make = MAKERS[task][0]
        assert make(encoder="convolution").inputs.places.kind == "none"
        assert make(encoder=f"{HERE}:Averaging").inputs.places.kind == "sinusoids"
    translator = MAKERS["translator"][0]
    assert translator(encoder=f"{HERE}:Averaging").source.places.kind == "sinusoids"
    assert translator(encoder=f"{HERE}:Averaging").target.places.kind == "none"


LENGTH = 11


@pytest.mark.parametrize("encoder", ["none", "self", "recurrent", "transformer", "backwards"])
@pytest.mark.parametrize("pieces", [(1,) * LENGTH, (5, 6)])
def test_a_causal_encoder_reads_a_text_in_pieces(encoder: str, pieces: tuple[int, ...]) -> None:
    options = LayerOptions(WIDTH, heads=2, causal=True, max_keys=4 if encoder == "self" else LENGTH)
    made = Backwards(options) if encoder == "backwards" else make_encoder(encoder, options)
    body = EncoderNetwork(made, options).double().eval()
    vectors = torch.randn(3, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True)
    whole, _ = body(vectors, body.start(3), need_weights=True)
    state, parts = body.start(3, torch.zeros(3, 1, WIDTH, dtype=torch.float64)), []
    for piece in vectors.split(list(pieces), 1):
        output, state = body(piece, state, need_weights=True)
        parts.append(output.states)
    torch.testing.assert_close(torch.cat(parts, 1), whole.states)
    for place in range(LENGTH):
        (gradient,) = torch.autograd.grad(
            whole.states[:, place].sum(), vectors, retain_graph=True, allow_unused=True
        )
        assert (gradient[:, place + 1 :] == 0).all()
    assert list(whole.weights) == (["decoder.0.self"] if made.attends else [])


def test_a_transformer_encoder_is_the_transformer_of_a_language_model() -> None:
    options = LayerOptions(WIDTH, heads=2, layers=2, causal=True)
    network = TransformerNetwork(options).eval()
    encoder = TransformerEncoder(options)
    encoder.stack = network.stack
    other = EncoderNetwork(encoder.eval(), options)
    vectors = torch.randn(3, LENGTH, WIDTH)
    one, two = (body(vectors, body.start(3), need_weights=True)[0] for body in (network, other))
    torch.testing.assert_close(one.states, two.states)
    torch.testing.assert_close(one.weights, two.weights)


@pytest.mark.parametrize("config", [LanguageConfig, AlgorithmConfig])
def test_an_encoder_that_reads_ahead_predicts_nothing(config: Any) -> None:
    with pytest.raises(RegardError, match="encoder 'convolution' reads ahead"):
        config(model="convolution")
    with pytest.raises(RegardError, match="3 heads do not divide a width"):
        config(model="self", heads=3)


def test_an_encoder_comes_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("averaging", f"{HERE}:Averaging", "regard.encoders")
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
    table: Table[Any] = Table("encoder", "regard.encoders", {})
    assert table["averaging"] is Averaging


def test_a_decoder_of_another_package_translates() -> None:
    model = MAKERS["translator"][0](decoder="mirrored")
    assert isinstance(model.decoder, Mirrored)
    assert run(model, inputs()).logits.isfinite().all()


@pytest.mark.usefixtures("shapes_unchecked")
def test_mistakes_are_named() -> None:
    with pytest.raises(RegardError, match="got 'convoluton': did you mean"):
        TaggerConfig(encoder="convoluton")
    with pytest.raises(RegardError, match="3 heads do not divide a width of 160"):
        TaggerConfig(encoder=f"{HERE}:Averaging", heads=3)
    with pytest.raises(RegardError, match="expected an even number"):
        TaggerConfig(encoder=f"{HERE}:Averaging", width=5, heads=5)
    with pytest.raises(RegardError, match="cannot be imported"):
        TaggerConfig(encoder="nowhere.at:all")
    with pytest.raises(ValueError, match="expected a torch module with the attribute size"):
        MAKERS["tagger"][0](encoder=f"{HERE}:Sizeless")


@pytest.mark.parametrize("encoder", ["convolution", f"{HERE}:Doubled"])
def test_an_export_says_that_there_is_no_graph(encoder: str) -> None:
    with pytest.raises(RegardError, match=r"the encoder (Convolution|Doubled) cannot be exported"):
        graphs_of(MAKERS["tagger"][0](encoder=encoder))
    with pytest.raises(RegardError, match="the encoder Backwards cannot be exported"):
        graphs_of(MAKERS["language"][0](model=f"{HERE}:Backwards"))
    with pytest.raises(RegardError, match="the decoder Mirrored cannot be exported"):
        graphs_of(MAKERS["translator"][0](decoder="mirrored"))


def test_a_run_with_a_foreign_encoder_is_trained_and_loaded(tmp_path: Any) -> None:
    options = {"width": 8, "steps": 3, "average": 1, "encoder": f"{HERE}:Convolution"}
    lines = [f"{label}\tthe film was {word}" for label, word in (("yes", "good"), ("no", "bad"))]
    (tmp_path / "data.tsv").write_text("label\ttext\n" + "\n".join(lines * 20) + "\n")
    run = regard.train("classify", tmp_path / "data.tsv", out=tmp_path / "run", **options)
    texts = ["the film was good", "bad"]
    assert isinstance(run.model.encoder, foreign_encoders.Convolution)
    assert regard.load(tmp_path / "run")(texts) == run(texts)
