"""Translation: pairs of sentences, an encoder–decoder, beam search and BLEU."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.data import Pair, Source, Summary, read_pairs
from regard.data.batches import in_order, pad, shuffled
from regard.data.corpus import Corpus, in_chunks
from regard.data.tokenizer import BOS, EOS, Tokenizer
from regard.metrics import bleu, chrf, measure
from regard.models import Translator, TranslatorConfig
from regard.options import at_least
from regard.search import Hypothesis, beam, greedy, power
from regard.tasks.parts import Parts, noted, parts, there
from regard.tasks.task import (
    Evaluation,
    Loss,
    Prediction,
    Sample,
    by_input_length,
    next_token_loss,
)

DEFAULTS: dict[str, Any] = {"epochs": 30, "patience": 5, "label_smoothing": 0.1, "average": 3}


@dataclass(frozen=True)
class TranslationData:
    """Where the pairs come from, and how they are cut into tokens."""

    data: list[str] | None = None
    """Two text files, or tables with both sides; the built-in pairs unless said."""
    valid: list[str] | None = None
    """The same for validation; a part of the data is set aside unless said."""
    source: str | None = None
    """The column, or file ending, to translate from."""
    target: str | None = None
    """The column, or file ending, to translate to."""
    tokenizer: str = "bpe"
    """word, bpe, unigram, character or bytes."""
    vocabulary: int = 8000
    """Tokens on each side at most."""
    lowercase: bool = False
    """Read and write lower case only."""
    max_tokens: int = 200
    """Longer sentences are left out of training, and counted; in use they are cut."""

    def __post_init__(self) -> None:
        at_least(self, max_tokens=1)


class Batch(NamedTuple):
    """Padded sources and targets; targets begin with the start and end with the end token."""

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor


@dataclass(frozen=True)
class Translation:
    """Translation between two languages that its tokenizers know."""

    config: TranslatorConfig
    source: Tokenizer
    target: Tokenizer
    max_tokens: int
    train: Corpus | None = None
    valid: Corpus | None = None

    def build(self) -> Translator:
        """A translator with fresh weights."""
        return Translator(self.config, self.source.size, self.target.size)

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of similar length, in random order."""
        corpus = there(self.train)
        sides = [corpus.lengths("source"), corpus.lengths("target") + 2]
        return shuffled(np.stack(sides, 1), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        rows = there(self.train).rows(examples)
        return Batch(*pad(rows["source"]), *pad([_framed(row) for row in rows["target"]]))

    def count(self, batch: Batch) -> int:
        """Target words, the end among them."""
        return int((batch.target_lengths - 1).sum())

    def loss(
        self, model: nn.Module, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of each next word."""
        output = model(batch.source, batch.source_lengths, batch.target[:, :-1])
        total = next_token_loss(output.logits, batch.target[:, 1:], smoothing)
        return Loss(total, output.balance), carried

    def evaluate(self, model: nn.Module) -> Evaluation:
        """BLEU of greedy translations of the validation data."""
        corpus = there(self.valid)
        pairs = [
            Pair(source, target)
            for source, target in zip(
                corpus.column("source_text"), corpus.column("target_text"), strict=True
            )
        ]
        return self.score(model, pairs, beam=1)

    def score(
        self,
        model: nn.Module,
        pairs: Sequence[Pair],
        *,
        beam: int = 5,
        lowercase: bool = False,
    ) -> Evaluation:
        """BLEU and chrF of translations of these pairs, by length too."""
        sources = [pair.source for pair in pairs]
        found = self.translate(model, sources, width=beam)
        texts = self.target.decode_batch([best.output for best in found])
        references = [pair.target for pair in pairs]
        metric = bleu(texts, references, lowercase=lowercase)
        return Evaluation(
            metrics={
                "bleu": measure(metric),
                "chrf": measure(chrf(texts, references, lowercase=lowercase)),
            },
            main="bleu",
            higher=True,
            samples=tuple(map(Sample, sources[:3], references[:3], texts[:3])),
            by_length=by_input_length(metric, [len(source.split()) for source in sources]),
            lines=tuple(
                {"source": pair.source, "reference": pair.target, "translation": text}
                for pair, text in zip(pairs, texts, strict=True)
            ),
        )

    def predict(self, model: nn.Module, texts: Sequence[str], *, beam: int = 5) -> list[Prediction]:
        """The best translation of each text, and its score."""
        rows = self.source.ids(texts)
        return [
            Prediction(
                self.target.decode(best.output),
                len(ids) > self.max_tokens,
                {"score": best.score, "log_probability": best.log_probability},
            )
            for best, ids in zip(self.translate(model, texts, width=beam), rows, strict=True)
        ]

    @torch.no_grad()
    def translate(
        self,
        model: nn.Module,
        texts: Sequence[str],
        *,
        width: int = 5,
        budget: int = 4096,
        need_weights: bool = False,
    ) -> list[Hypothesis]:
        """The best translation of each text, in order."""
        if width < 1:
            raise ValueError(f"a beam of width {width}: expected 1 or more")
        rows = self.source.ids(texts)
        ids = [np.array(row[: self.max_tokens], dtype=np.int64) for row in rows]
        found: list[Hypothesis | None] = [None] * len(ids)
        lengths = np.array([len(row) for row in ids], dtype=np.int32)
        for chosen in in_order(lengths, max(1, budget // width)):
            source, source_lengths = pad([ids[i] for i in chosen])
            limits = (2 * source_lengths + 10).clamp(max=self.config.max_length - 1).tolist()
            results = self._search(model, source, source_lengths, limits, width, need_weights)
            for i, result in zip(chosen, results, strict=True):
                found[i] = result
        return [result for result in found if result is not None]

    def _search(
        self,
        model: nn.Module,
        source: Tensor,
        lengths: Tensor,
        limits: list[int],
        width: int,
        need_weights: bool,
    ) -> list[Hypothesis]:
        assert isinstance(model, Translator)
        state = model.start(model.encode(source, lengths))
        step = partial(model.step, need_weights=need_weights)
        if width == 1:
            return greedy(step, state, bos=BOS, eos=EOS, limit=limits)
        best = beam(
            step,
            state,
            bos=BOS,
            eos=EOS,
            limit=limits,
            width=width,
            length_penalty=power(1.0),
            patience=1.0,
        )
        return [hypotheses[0] for hypotheses in best]


def read(data: TranslationData, sources: Sequence[Source], summary: Summary) -> Iterator[Pair]:
    """The pairs of some files."""
    return read_pairs(sources, data.source, data.target, summary)


def prepare(data: TranslationData, folder: Path, seed: int) -> str:
    """Read the pairs, learn the tokenizers, write the corpora; what was read, in words."""
    found: Parts[Pair] = parts("translation", data, read, seed)
    source = _learn((pair.source for pair in found.train()), data)
    target = _learn((pair.target for pair in found.train()), data)
    long = [0]
    found.write(folder, lambda pairs: _rows(pairs, source, target, data.max_tokens, long))
    source.save(folder / "source.json")
    target.save(folder / "target.json")
    left = f"{long[0]} pairs over {data.max_tokens} tokens were left out" if long[0] else ""
    return noted(found.told(), source.note, target.note, left)


def load(data: TranslationData, config: TranslatorConfig, folder: Path) -> Translation:
    """The task of a run whose data was prepared."""
    source, target = (Tokenizer.load(folder / f"{side}.json") for side in ("source", "target"))
    return Translation(config, source, target, data.max_tokens)


def _learn(texts: Iterable[str], data: TranslationData) -> Tokenizer:
    return Tokenizer.train(data.tokenizer, texts, data.vocabulary, data.lowercase)


def _rows(
    pairs: Iterable[Pair], source: Tokenizer, target: Tokenizer, most: int, long: list[int]
) -> Iterator[dict[str, Any]]:
    for chunk in in_chunks(pairs):
        sides = source.ids([p.source for p in chunk]), target.ids([p.target for p in chunk])
        for pair, left, right in zip(chunk, *sides, strict=True):
            if max(len(left), len(right)) > most:
                long[0] += 1
                continue
            yield {
                "source": left,
                "target": right,
                "source_text": pair.source,
                "target_text": pair.target,
            }


def _framed(ids: np.ndarray) -> np.ndarray:
    return np.concatenate([[BOS], ids, [EOS]])
