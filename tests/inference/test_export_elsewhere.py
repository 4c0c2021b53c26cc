"""Exported models give the same answers in `transformers` and CTranslate2."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

import regard
from regard.cli import main
from regard.data.batches import pad
from regard.inference.export.onnx import export
from regard.inference.import_run import import_run
from tests.pretrained.checkpoints import TEXTS, write_checkpoint
from tests.pretrained.translator_checkpoints import PAIRS, write_translator

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
SOURCES = [source for source, _ in PAIRS]


@pytest.fixture(scope="module", params=[("pre", True), ("post", False)])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A translator whose weights make every token depend on those before it."""
    folder = tmp_path_factory.mktemp("own")
    data = [folder / "pairs.en", folder / "pairs.de"]
    for path, texts in zip(data, zip(*PAIRS, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in texts * 3))
    norm, tied = request.param
    run = regard.train(
        "translation",
        [str(path) for path in data],
        out=folder / "run",
        model="transformer",
        width=24,
        layers=2,
        norm=norm,
        tied=tied,
        steps=2,
        tokenizer="word",
    )
    with torch.no_grad():
        for parameter in run.model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return run


def test_own_translators_have_the_same_logits_in_transformers(run: Any, tmp_path: Path) -> None:
    export(run, "huggingface", tmp_path / "hf")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf").eval()
    expected = "pegasus" if run.config["model"]["norm"] == "pre" else "marian"
    assert model.config.model_type == expected
    offset = run.task.source.size
    source, lengths = pad([np.array(row) for row in run.task.source.ids(SOURCES)])
    rows = [np.array([2, *row]) for row in run.task.target.ids([t for _, t in PAIRS])]
    target, written = pad(rows)
    mask = torch.arange(source.shape[1]) < lengths[:, None]
    with torch.no_grad():
        ours = run.model(source, lengths, target).logits
        theirs = model(
            input_ids=source, attention_mask=mask.long(), decoder_input_ids=target + offset
        ).logits
    assert torch.isinf(theirs[..., :offset]).all()
    for row, length in enumerate(written):
        torch.testing.assert_close(
            theirs[row, :length, offset:], ours[row, :length], atol=1e-4, rtol=1e-4
        )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "hf" / "tokenizer.json")
    )
    assert tokenizer(SOURCES[0])["input_ids"] == run.task.source.ids(SOURCES[:1])[0]
    assert "Regard" in (tmp_path / "hf" / "README.md").read_text()


def test_own_translators_write_the_same_in_ctranslate2(run: Any, tmp_path: Path) -> None:
    ctranslate2 = pytest.importorskip("ctranslate2")
    export(run, "ctranslate2", tmp_path / "ct2")
    translator = ctranslate2.Translator(str(tmp_path / "ct2"))
    names = [{n: name for name, n in t.names().items()} for t in (run.task.source, run.task.target)]
    given = [[names[0][token] for token in row] for row in run.task.source.ids(SOURCES)]
    found = translator.translate_batch(
        given, beam_size=1, max_decoding_length=12, suppress_sequences=[["<pad>"], ["<bos>"]]
    )
    best = run.task.translate(run.model, SOURCES, beam=1)
    for one, hypothesis in zip(found, best, strict=True):
        ours = [names[1][token] for token in hypothesis.output][:12]
        assert one.hypotheses[0][: len(ours)] == ours


def test_what_transformers_has_not_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS * 3))
    regard.train("translation", [str(data)], out=tmp_path / "run", width=8, steps=1)
    capsys.readouterr()
    for to in ("huggingface", "ctranslate2"):
        out = tmp_path / to
        assert main(["export", str(tmp_path / "run"), "--to", to, "--out", str(out)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "only translators with --model transformer" in line
        assert not out.exists()


@pytest.mark.parametrize(
    ("family", "head"),
    [
        ("bert", "ForSequenceClassification"),
        ("roberta", "ForTokenClassification"),
        ("gpt2", "LMHeadModel"),
        ("llama", "ForCausalLM"),
    ],
)
def test_imported_models_are_exported_back(family: str, head: str, tmp_path: Path) -> None:
    model, tokenizer = write_checkpoint(tmp_path / "hf", family, head)
    run = regard.load(import_run(tmp_path / "hf", tmp_path / "run").path)
    export(run, "huggingface", tmp_path / "back")
    again = type(model).from_pretrained(tmp_path / "back", attn_implementation="eager").eval()
    given = tokenizer(TEXTS[0], return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        torch.testing.assert_close(again(**given).logits, model(**given).logits)
    assert (tmp_path / "back" / "tokenizer.json").read_bytes() == (
        tmp_path / "hf" / "tokenizer.json"
    ).read_bytes()


@pytest.mark.parametrize("kind", ["marian", "bart", "t5"])
def test_imported_translators_are_exported_back(kind: str, tmp_path: Path) -> None:
    model, tokenizer = write_translator(tmp_path / "hf", kind)
    run = regard.load(import_run(tmp_path / "hf", tmp_path / "run").path)
    export(run, "huggingface", tmp_path / "back")
    again = type(model).from_pretrained(tmp_path / "back", attn_implementation="eager").eval()
    given = tokenizer(SOURCES[0], return_tensors="pt")
    target = torch.tensor([[model.config.decoder_start_token_id, 5, 7]])
    with torch.no_grad():
        torch.testing.assert_close(
            again(**given, decoder_input_ids=target).logits,
            model(**given, decoder_input_ids=target).logits,
        )


def test_a_head_that_was_trained_anew_is_exported(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "hf", "bert", "Model")
    data = tmp_path / "texts.tsv"
    data.write_text("".join(f"{text}\t{label}\n" for text in TEXTS for label in ("no", "yes") * 2))
    run = regard.train(
        "classify", [str(data)], out=tmp_path / "run", pretrained=str(tmp_path / "hf"), steps=2
    )
    export(run, "huggingface", tmp_path / "back")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "back")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    given = tokenizer(TEXTS[0], return_tensors="pt", return_token_type_ids=False)
    found = model.eval()(**given).logits.softmax(-1)[0]
    np.testing.assert_allclose(run.predict_proba(TEXTS[0]), found.detach(), atol=1e-5)
    assert list(model.config.id2label.values()) == list(run.labels)
