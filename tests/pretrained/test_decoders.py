"""Imported language models give what `transformers` gives: logits, weights and texts."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.cli import main
from regard.data.batches import pad
from regard.inference.import_run import import_run
from regard.search import beam
from regard.tasks.language.generate import step_of
from tests.pretrained.checkpoints import FAMILIES_OF_DECODERS, TEXTS, write_checkpoint

HEADS = {"gpt2": "LMHeadModel"}


def load(family: str, folder: Path) -> tuple[Any, Any, Any]:
    """A model of `transformers`, its tokenizer, and the same model as a run."""
    model, tokenizer = write_checkpoint(
        folder / "hf", family, HEADS.get(family, "ForCausalLM"), bos_token_id=None
    )
    return model, tokenizer, regard.load(import_run(folder / "hf", folder / "run").path)


def rows_of(run: Any, tokenizer: Any) -> np.ndarray:
    """For each token of a run, its number in `transformers`; -1 where it has none."""
    names = run.task.tokenizer._inner.get_vocab()
    theirs = tokenizer.get_vocab()
    special = {"<bos>": tokenizer.bos_token, "<eos>": tokenizer.eos_token, "<pad>": None}
    rows = np.full(len(names), -1)
    for name, number in names.items():
        rows[number] = theirs.get(special.get(name, name) or "", -1)
    if tokenizer.bos_token == tokenizer.eos_token:
        rows[:3] = -1
    return rows


def start_of(tokenizer: Any, text: str) -> list[int]:
    """The tokens of a text in `transformers`, after the token that begins it."""
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    return [tokenizer.bos_token_id, *ids]


@pytest.mark.parametrize("family", FAMILIES_OF_DECODERS)
def test_logits_and_weights_are_those_of_transformers(family: str, tmp_path: Path) -> None:
    model, tokenizer, run = load(family, tmp_path)
    rows = rows_of(run, tokenizer)
    given = [start_of(tokenizer, text) for text in TEXTS]
    lengths = [len(ids) for ids in given]
    padded = torch.zeros(len(given), max(lengths), dtype=torch.long)
    for row, ids in zip(padded, given, strict=True):
        row[: len(ids)] = torch.tensor(ids)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        expected = model(input_ids=padded, attention_mask=mask.long(), output_attentions=True)
        start = run.model.start_token
        ours, _ = pad([np.array([start, *ids]) for ids in run.task.tokenizer.ids(TEXTS)])
        output, _ = run.model(ours, run.model.start(len(ours)), need_weights=True)
    present = rows >= 0
    for row, length in enumerate(lengths):
        np.testing.assert_array_equal(rows[ours[row, :length]], given[row])
        torch.testing.assert_close(
            output.logits[row, :length][:, present],
            expected.logits[row, :length][:, rows[present]],
            atol=1e-4,
            rtol=1e-4,
        )
        for layer, weights in enumerate(expected.attentions):
            torch.testing.assert_close(
                output.weights[f"decoder.{layer}.self"][row, :, :length, :length],
                weights[row, :, :length, :length],
                atol=1e-5,
                rtol=1e-4,
            )
    assert torch.isinf(output.logits[..., ~present]).all()


@pytest.mark.parametrize("family", FAMILIES_OF_DECODERS)
def test_greedy_search_and_beams_write_what_transformers_writes(
    family: str, tmp_path: Path
) -> None:
    model, tokenizer, run = load(family, tmp_path)
    rows = rows_of(run, tokenizer)
    end = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.eos_token_id}
    for text in ("The dog", "nobody knows"):
        given = torch.tensor([start_of(tokenizer, text)])
        mask = torch.ones_like(given)
        prompt = run.task.tokenizer.ids([text])[0]
        expected = model.generate(
            given, attention_mask=mask, max_new_tokens=20, do_sample=False, **end
        )
        hypothesis = run.task.continue_texts(
            run.model, [text], _sampling(tokens=20, temperature=0.0)
        )[0]
        found = rows[hypothesis.tokens]
        np.testing.assert_array_equal(found, expected[0, 1:].numpy())
        state = run.model.start(1)
        _, state = run.model(torch.tensor([[run.model.start_token, *prompt[:-1]]]), state)
        hypotheses = beam(
            step_of(run.model), state, bos=prompt[-1], eos=3, limit=12, width=4, nbest=4
        )[0]
        searched = model.generate(
            given,
            attention_mask=mask,
            max_new_tokens=12,
            num_beams=4,
            num_return_sequences=4,
            length_penalty=0.0,
            early_stopping="never",
            return_dict_in_generate=True,
            output_scores=True,
            do_sample=False,
            **end,
        )
        best = searched.sequences[0, given.shape[1] :].tolist()
        assert rows[hypotheses[0].tokens].tolist() == best[: len(hypotheses[0].tokens)]
        assert hypotheses[0].log_probability == pytest.approx(
            float(searched.sequences_scores[0]), abs=1e-3
        )


def _sampling(**options: Any) -> Any:
    from regard.tasks.language.task_options import Sampling

    return Sampling(**options)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_commands_work_on_an_imported_language_model(
    family: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, tokenizer, run = load(family, tmp_path)
    path, text = str(tmp_path / "run"), "The unhappy cats"
    data = tmp_path / "text.txt"
    data.write_text("".join(f"{line}\n" for line in TEXTS * 4))
    assert main(["predict", path, "--text", text, "--tokens", "5"]) == 0
    assert main(["generate", path, "--prompt", text, "--tokens", "5"]) == 0
    assert main(["show", path, "--text", text]) == 0
    assert main(["explain", path, "--text", text]) == 0
    assert main(["evaluate", path, "--data", str(data)]) == 0
    assert main(["score", path, "--data", str(data)]) == 0
    assert main(["info", path]) == 0
    assert "imported" in capsys.readouterr().out
    assert main(["export", path]) == 0
    # log p(text) is that of transformers, the end of the text included
    ids = torch.tensor([[*start_of(tokenizer, TEXTS[0]), tokenizer.eos_token_id]])
    with torch.no_grad():
        logits = model(ids[:, :-1]).logits.log_softmax(-1)
    expected = logits.gather(2, ids[:, 1:, None]).sum()
    assert run.log_probabilities([TEXTS[0]])[0].log_probability == pytest.approx(
        float(expected), abs=1e-3
    )


def test_a_text_beyond_the_last_position_is_read_in_parts(tmp_path: Path) -> None:
    _, _, run = load("gpt2", tmp_path)
    long = " ".join(TEXTS * 8)
    assert len(run.task.tokenizer.ids([long])[0]) > run.model.positions
    assert np.isfinite(run.log_probabilities([long])[0].log_probability)
    assert run.predict(long, tokens=5).truncated
    trace = run.trace(long)
    assert len(trace.sides["text"].tokens) == run.model.positions


def test_a_language_model_is_trained_further(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "hf", "llama", "ForCausalLM")
    data = tmp_path / "text.txt"
    data.write_text("".join(f"{line}\n" for line in TEXTS * 40))
    run = regard.train(
        "language",
        [str(data)],
        out=tmp_path / "run",
        pretrained=str(tmp_path / "hf"),
        window_tokens=32,
        epochs=3,
        learning_rate=1e-2,
        warmup=2,
    )
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    losses = [json.loads(line)["loss"] for line in lines if "loss" in json.loads(line)]
    assert losses[-1] < losses[0] - 1
    assert np.isfinite(run.log_probabilities([TEXTS[0]])[0].log_probability)


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("llama", {"rope_parameters": {"rope_type": "yarn", "factor": 2.0}}, "of type 'yarn'"),
        (
            "llama",
            {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}, "rope_parameters": None},
            "rope_scaling: low_freq_factor: expected a number, got None",
        ),
        ("mistral", {"sliding_window": 8}, "sliding_window 8 is not supported"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx True is not"),
        ("gpt2", {"n_head": 5}, "5 heads do not divide"),
    ],
)
def test_decoders_that_are_not_supported_end_in_one_line(
    family: str,
    settings: dict[str, Any],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_checkpoint(tmp_path / "hf", family, HEADS.get(family, "ForCausalLM"))
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    (tmp_path / "hf" / "config.json").write_text(json.dumps({**config, **settings}))
    capsys.readouterr()
    assert main(["import", str(tmp_path / "hf"), "--out", str(tmp_path / "run")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (tmp_path / "run").exists()


def test_a_decoder_is_no_encoder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_checkpoint(tmp_path / "hf", "gpt2", "LMHeadModel")
    write_checkpoint(tmp_path / "bert", "bert", "Model")
    arguments = ["--data", "built-in", "--out", str(tmp_path / "run")]
    capsys.readouterr()
    assert main(["train", "classify", *arguments[2:], "--pretrained", str(tmp_path / "hf")]) == 2
    assert "gpt2 is not an encoder" in capsys.readouterr().err
    arguments[3] = str(tmp_path / "run2")
    assert main(["train", "language", *arguments[2:], "--pretrained", str(tmp_path / "bert")]) == 2
    assert "bert is not a language model" in capsys.readouterr().err
