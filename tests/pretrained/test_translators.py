"""Imported translators give what `transformers` gives: logits, weights and translations."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.data.batches import pad
from regard.inference.import_run import import_run
from regard.pretrained.checkpoint import open_checkpoint
from regard.pretrained.translator_tokenizers import read_translator_tokenizers
from regard.pretrained.weights_by_name import family_of
from regard.tasks.translation import decode
from tests.pretrained.translator_checkpoints import PAIRS, TRANSLATORS, write_translator

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
SOURCES = [source for source, _ in PAIRS]
TARGETS = [target for _, target in PAIRS]


class Both:
    """A model of `transformers`, and the same model as a run."""

    def __init__(self, kind: str, folder: Path, scale: float) -> None:
        self.model, self.tokenizer = write_translator(folder / "hf", kind, scale)
        self.run: Any = regard.load(import_run(folder / "hf", folder / "run").path)
        self.leads = kind == "bart"
        self.before = int(self.leads)
        architecture = self.run.task.pretrained.architecture
        assert architecture.frame == (self.before, 1)

    def ids(self, texts: list[str], side: str) -> list[list[int]]:
        """Numbers of `transformers`, with the tokens around a source."""
        if side == "source":
            return self.tokenizer(texts)["input_ids"]
        return self.tokenizer(text_target=texts)["input_ids"]


def pad_rows(rows: list[list[int]], value: int) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([len(row) for row in rows])
    padded = torch.full((len(rows), int(lengths.max())), value)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = torch.tensor(row)
    return padded, (torch.arange(padded.shape[1]) < lengths[:, None]).long()


@pytest.fixture(params=TRANSLATORS)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Both:
    large = "translations" in request.node.name
    return Both(request.param, tmp_path, 1.0 if large else 0.1)


def test_logits_and_weights_are_those_of_transformers(both: Both) -> None:
    run, model = both.run, both.model
    start = model.config.decoder_start_token_id
    sources, mask = pad_rows(both.ids(SOURCES, "source"), model.config.pad_token_id)
    rows = both.ids(TARGETS, "target")
    targets, _ = pad_rows([[start, *row[:-1]] for row in rows], model.config.pad_token_id)
    source, lengths = pad([np.array(row) for row in run.task.source.ids(SOURCES)])
    target, target_lengths = pad([np.array([2, *row]) for row in run.task.target.ids(TARGETS)])
    with torch.no_grad():
        expected = model(
            input_ids=sources,
            attention_mask=mask,
            decoder_input_ids=targets,
            output_attentions=True,
        )
        output = run.model(source, lengths, target, target_lengths, need_weights=True)
    lead = int(both.leads)
    numbers = _numbers(both)
    for row, (read, written) in enumerate(zip(mask.sum(1), target_lengths, strict=True)):
        torch.testing.assert_close(
            output.logits[row, :written][:, numbers >= 0],
            expected.logits[row, lead : lead + written][:, numbers[numbers >= 0]],
            atol=1e-4,
            rtol=1e-4,
        )
        for name, weights in output.weights.items():
            part, layer, kind = name.split(".")
            theirs, keys = expected.encoder_attentions, read
            if part == "decoder" and kind == "source":
                theirs = expected.cross_attentions
            elif part == "decoder":
                theirs, keys = expected.decoder_attentions, written
            given = theirs[int(layer)][row]
            given = given[:, :read] if part == "encoder" else given[:, lead : lead + written]
            ours = weights[row, :, : given.shape[1], :keys]
            torch.testing.assert_close(ours, given[..., :keys], atol=1e-5, rtol=1e-4)


def _numbers(both: Both) -> torch.Tensor:
    """For each token of the target, its number in `transformers`; -1 where it has none."""
    checkpoint = open_checkpoint(Path(both.run.config["data"]["pretrained"]))
    architecture = family_of(checkpoint).architecture(checkpoint)
    rows = read_translator_tokenizers(checkpoint, architecture).rows
    given = both.ids(TARGETS, "target")
    ours = both.run.task.target.ids(TARGETS)
    for row, numbers in zip(ours, given, strict=True):
        assert rows[row].tolist() == numbers[both.before : -1]
    return torch.from_numpy(rows)


@pytest.mark.parametrize("beam", [1, 4])
def test_translations_are_those_of_transformers(
    both: Both, beam: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, run, limit = both.model, both.run, 24
    end, biased = model.config.eos_token_id, hasattr(model, "final_logits_bias")
    if biased:  # so that translations end at different lengths
        more = 2.0 if both.leads else 0.7
        with torch.no_grad():
            model.final_logits_bias[0, end] += more
            run.model.words.bias[3] += more
    sources, mask = pad_rows(both.ids(SOURCES, "source"), model.config.pad_token_id)
    expected = model.generate(
        sources,
        attention_mask=mask,
        num_beams=beam,
        max_new_tokens=limit + int(both.leads),
        do_sample=False,
        suppress_tokens=[model.config.pad_token_id],
        early_stopping="never" if beam > 1 else None,
        forced_eos_token_id=None,
        forced_bos_token_id=0 if both.leads else None,
        return_dict_in_generate=True,
        output_scores=True,
    )
    monkeypatch.setattr(decode, "_length_limits", lambda task, lengths, _: [limit] * len(lengths))
    decoding = decode.Decoding(beam=beam, exact=True)
    found = [best for best, *_ in decode.decode(run.task, run.model, SOURCES, decoding)]
    numbers = _numbers(both).numpy()
    ends = 0
    for number, (row, best) in enumerate(zip(expected.sequences.tolist(), found, strict=True)):
        written = row[1 + int(both.leads) :]
        finished = end in written
        if best.finished and not finished:  # here a truncated translation never wins
            continue
        written = written[: written.index(end) + 1] if finished else written[:limit]
        assert numbers[best.tokens].tolist() == written
        ends += finished
        if beam > 1:
            score = float(expected.sequences_scores[number])
            assert best.normalized_log_probability == pytest.approx(score, abs=1e-3)
    assert ends or not biased
