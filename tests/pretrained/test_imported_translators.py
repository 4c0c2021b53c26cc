"""An imported translator is a run: the commands work on it, and it is trained further."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.inference.import_run import import_run
from regard.training.run import train_run
from tests.pretrained.translator_checkpoints import PAIRS, write_translator

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
TEXT = "The unhappy cats sleep."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("translators")
    for kind in ("marian", "bart", "t5"):
        write_translator(folder / f"{kind}-hf", kind)
        import_run(folder / f"{kind}-hf", folder / kind)
    for side, texts in zip(("en", "de"), zip(*PAIRS, strict=True), strict=True):
        (folder / f"pairs.{side}").write_text("".join(f"{text}\n" for text in texts * 3))
    return folder


@pytest.mark.parametrize("kind", ["bart"])
def test_commands_work_on_an_imported_translator(
    kind: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, data = str(folder / kind), [str(folder / "pairs.en"), str(folder / "pairs.de")]
    assert main(["predict", run, "--text", TEXT, "--beam", "2"]) == 0
    assert main(["predict", run, "--text", TEXT, "--coverage", "0.1", "--replace-unknown"]) == 0
    assert main(["show", run, "--text", TEXT]) == 0
    assert main(["explain", run, "--text", TEXT]) == 0
    assert main(["explain", run, "--faithfulness", "--data", *data, "--limit", "2"]) == 0
    assert main(["evaluate", run, "--data", *data, "--beam", "1"]) == 0
    assert main(["score", run, "--data", *data]) == 0
    assert main(["align", run, "--data", *data, "--output", str(tmp_path / "links.txt")]) == 0
    assert len((tmp_path / "links.txt").read_text().splitlines()) == 3 * len(PAIRS)
    assert main(["info", run]) == 0
    assert "imported" in capsys.readouterr().out
    assert main(["export", run]) == 0
    assert (folder / kind / "onnx" / "decoder_step.onnx").exists()


@pytest.mark.parametrize("kind", ["marian", "bart", "t5"])
def test_looks_have_the_tokens_around_a_source(kind: str, folder: Path) -> None:
    run = regard.load(folder / kind)
    trace = run.trace(TEXT, beam=2)
    names = [token.text for token in trace.sides["source"].tokens if token.special]
    assert names == (["<s>", "</s>"] if kind == "bart" else ["</s>"])
    words = {token.word for token in trace.sides["source"].tokens} - {None}
    assert words == set(range(len(TEXT.split())))
    for look in trace.looks:
        assert look.weights.shape == (
            len(trace.sides[look.query_side].tokens),
            len(trace.sides[look.key_side].tokens),
        )
        np.testing.assert_allclose(look.weights.sum(-1), 1, atol=1e-5)
    explained = run.explain(TEXT)
    for attribution in explained.attributions:
        tokens = explained.sides[attribution.side].tokens
        assert np.asarray(attribution.values).shape[-1] == len(tokens)
        assert not any(token.special for token in tokens)


def test_alignments_leave_out_the_tokens_around_a_source(folder: Path) -> None:
    """The weights of a word are those of its tokens, wherever they stand among the keys."""
    from regard.data import Pair
    from regard.inference.align.alignments import pair_attention

    run = regard.load(folder / "bart")
    source, target = PAIRS[0]
    attention = pair_attention(run, [Pair(source, target)])[0]
    encoded, output = run.task.source.encode(source), run.task.target.ids([target])[0]
    with torch.no_grad():
        weights = run.model(
            torch.tensor([encoded.ids]),
            torch.tensor([len(encoded.ids)]),
            torch.tensor([[2, *output]]),
            need_weights=True,
        ).weights["decoder.1.source"][0, 1]
    word = [i for i, (start, _) in enumerate(encoded.offsets) if source[start:].startswith("cats")]
    (first,) = word
    expected = weights[0, first + 1]  # after <s>
    last = next(i for i, (start, _) in enumerate(encoded.offsets) if start >= source.index("are"))
    expected = weights[0, first + 1 : last + 1].sum()
    (tokens,) = [run.task.target.encode(target)]
    of_first = sum(1 for _, end in tokens.offsets if end <= len(target.split()[0]))
    rows = weights[:of_first, first + 1 : last + 1].sum(1).mean()
    assert attention.weights[1, 1, 0, 0, 2] == pytest.approx(float(rows), abs=1e-6)
    assert expected > 0


@pytest.mark.parametrize("kind", ["marian"])
def test_a_translator_is_trained_further_and_resumes_to_the_bit(
    kind: str, folder: Path, tmp_path: Path
) -> None:
    links = tmp_path / "links.txt"
    links.write_text("0-0\n" * (3 * len(PAIRS)))
    options = {
        "data": [str(folder / "pairs.en"), str(folder / "pairs.de")],
        "pretrained": str(folder / f"{kind}-hf"),
        "learning_rate": 1e-2,
        "warmup": 2,
        "max_tokens": 50,
        "alignments": str(links),
    }
    whole = regard.train("translation", out=tmp_path / "whole", epochs=4, **options)
    stopping = iter([False, True])
    train_run(
        "translation", {**options, "epochs": 4}, tmp_path / "parts", stop=lambda: next(stopping)
    )
    parts = regard.train("translation", out=tmp_path / "parts", epochs=4, **options)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, parts.model.state_dict()[name])
    lines = (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()
    losses = [record["loss"] for record in map(json.loads, lines) if "loss" in record]
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0]
    assert whole.config["training"]["schedule"] == "linear"


def test_language_codes_and_unknown_pieces_are_read_as_by_transformers(folder: Path) -> None:
    import transformers

    tokenizer = transformers.MarianTokenizer.from_pretrained(folder / "marian-hf")
    run = regard.load(folder / "marian")
    vocabulary = json.loads((folder / "marian-hf" / "vocab.json").read_text())
    special = {1: "<unk>", 2: "<pad>", 3: "</s>"}
    names = run.task.source._inner.get_vocab()
    by_number = {number: name.replace("\ue000", "") for name, number in names.items()}
    unknown = 0
    for text in (">>deu<< A dog barks.", "A  dog  sleeps!", "Ünknown ﬁsh … ½"):
        ours = []
        for number in run.task.source.ids([text])[0]:
            number = number if number < len(vocabulary) + 1 else 1
            name = special.get(number, by_number[number])
            unknown += number == 1
            ours.append(vocabulary[name.replace("▁>>", ">>")])
        assert ours == tokenizer(text)["input_ids"][:-1]
    assert unknown
