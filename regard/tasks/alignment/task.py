"""Word alignment: pairs of sentences, two chains trained by expectation maximization, and AER."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data import DataReport, Pair, Source, Summary, read_pairs
from regard.data.batches import ordered_batches, pad
from regard.data.corpus import Corpus, write_rows
from regard.data.examples import AlignedPair
from regard.data.plausibility import check_not_numbers
from regard.errors import OptionError, RegardError
from regard.metrics import GoldLinks, Measurement, alignment_metrics, measure
from regard.metrics.gold import zero_based_links
from regard.tasks.alignment.align_pairs import PairPosteriors, align_pairs
from regard.tasks.alignment.chain_aligner import ChainAligner
from regard.tasks.alignment.expectation_maximization import ExpectationMaximization, counted_loss
from regard.tasks.alignment.link_threshold import agreement, choose_threshold
from regard.tasks.alignment.task_options import AlignerConfig, AlignmentData
from regard.tasks.alignment.word_pairs import WordPairs
from regard.tasks.prediction import Prediction
from regard.tasks.shared.by_length import by_input_length
from regard.tasks.shared.pairs_by_line import read_link_file, read_pairs_by_line
from regard.tasks.shared.splits import TRAIN, VALID, Splits, make_splits, require_corpus
from regard.tasks.task import Evaluation, Loss, Sample

MAX_CELLS = 2**28
"""Pairs of words in all sentence pairs together."""
SEPARATOR = "|||"
"""Between source and target, where a pair is one text."""


class Batch(NamedTuple):
    """Padded pairs; padding is cell 0, and the word after the last one."""

    cells: Tensor
    target: Tensor
    target_lengths: Tensor
    source: Tensor
    source_lengths: Tensor


@dataclass(frozen=True)
class Alignment:
    """Word alignment between two languages."""

    config: AlignerConfig
    data: AlignmentData
    pairs: WordPairs
    train: Corpus | None = None
    valid: Corpus | None = None

    def build(self) -> ChainAligner:
        """An aligner that has learned nothing."""
        return ChainAligner(self.config, self.pairs.sizes)

    def optimizer(self, model: ChainAligner, config: Any) -> ExpectationMaximization:
        """The updates of its training: one iteration over all pairs each."""
        for name, only in (
            ("learning_rate", 1.0),
            ("weight_decay", 0.0),
            ("label_smoothing", 0.0),
            ("bf16", False),
            ("compile", False),
        ):
            if getattr(config, name) not in (only, None):
                raise OptionError(
                    name, f"does not apply to expectation maximization: leave it {only}"
                )
        lengths = self._lengths()
        batches = len(ordered_batches(lengths, config.batch_tokens))
        if config.accumulate < batches:
            raise OptionError(
                "accumulate",
                f"expected {batches} or more, all batches of the data, which an iteration counts",
            )
        return ExpectationMaximization(model, self.pairs, int(lengths.sum()))

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """All pairs, in batches of similar length."""
        return ordered_batches(self._lengths(), budget)

    def _lengths(self) -> np.ndarray:
        corpus = require_corpus(self.train)
        return np.stack([corpus.lengths("source"), corpus.lengths("target")], 1)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        rows = require_corpus(self.train).rows(examples)
        words = self.pairs.sizes.words
        target, target_lengths = pad(rows["target"], words[0])
        source, source_lengths = pad(rows["source"], words[1])
        cells = np.zeros((len(examples), target.shape[1], source.shape[1]), np.int32)
        sizes = zip(target_lengths.tolist(), source_lengths.tolist(), strict=True)
        for matrix, (t, s), flat in zip(cells, sizes, rows["cells"], strict=True):
            matrix[:t, :s] = flat.reshape(t, s)
        return Batch(torch.from_numpy(cells), target, target_lengths, source, source_lengths)

    def count(self, batch: Batch) -> int:
        """The number of words on both sides."""
        return int(batch.target_lengths.sum() + batch.source_lengths.sum())

    def loss(
        self, model: ChainAligner, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """-log p of each side given the other; the gradients are expected counts."""
        words = batch.target, batch.source
        with torch.no_grad():
            emissions = model.emissions(
                batch.cells, words, (batch.target_lengths, batch.source_lengths)
            )
        return Loss(counted_loss(model, emissions, batch.cells, words)), carried

    def validate(self, model: ChainAligner) -> Evaluation:
        """The metrics on the validation data, which also choose the model's threshold."""
        corpus = require_corpus(self.valid)
        columns = corpus.column("source_text"), corpus.column("target_text")
        pairs = [Pair(source, target) for source, target in zip(*columns, strict=True)]
        gold = None
        if "links" in corpus.columns:
            gold = [_unpack_links(flat) for flat in corpus.column("links")]
        found = align_pairs(self, model, pairs)
        model.threshold.fill_(choose_threshold(found, gold))
        return self._evaluation(model, pairs, found, gold)

    def validation_batches(self, budget: int) -> list[Batch]:
        """None: the validation pairs are among those whose loss is the training loss."""
        return []

    def evaluate(
        self, model: ChainAligner, examples: Sequence[Pair], *, metrics: Sequence[str] = ()
    ) -> Evaluation:
        """Agreement of both directions, and AER where the examples have links."""
        gold = None
        if examples and all(isinstance(pair, AlignedPair) for pair in examples):
            links = [frozenset(pair.links) for pair in examples if isinstance(pair, AlignedPair)]
            gold = [GoldLinks(sure, sure) for sure in links]
        return self._evaluation(model, examples, align_pairs(self, model, examples), gold)

    def _evaluation(
        self,
        model: ChainAligner,
        pairs: Sequence[Pair],
        found: Sequence[PairPosteriors],
        gold: Sequence[GoldLinks] | None,
    ) -> Evaluation:
        predicted = [one.links(float(model.threshold)) for one in found]
        tally = agreement(found)
        metrics: dict[str, Measurement] = {"agreement": measure(tally)}
        if gold is not None:
            tallies = alignment_metrics(predicted, gold)
            metrics = {name: measure(value) for name, value in tallies.items()} | metrics
            tally = tallies["aer"]
        lines = tuple(
            {"source": pair.source, "target": pair.target, "links": format_links(links)}
            for pair, links in zip(pairs, predicted, strict=True)
        )
        expected = ["" if gold is None else format_links(g.sure) for g in (gold or pairs)[:3]]  # type: ignore[union-attr]
        return Evaluation(
            metrics=metrics,
            main="agreement" if gold is None else "aer",
            higher=gold is None,
            samples=tuple(
                Sample(join_pair(line["source"], line["target"]), links, line["links"])
                for line, links in zip(lines, expected, strict=False)
            ),
            by_length=by_input_length(tally, [len(pair.source.split()) for pair in pairs]),
            lines=lines,
            tally=tally,
        )

    def predict(self, model: ChainAligner, texts: Sequence[str]) -> list[Prediction]:
        """The links of each pair, written as one text: `source ||| target`."""
        found = align_pairs(self, model, [split_pair(text) for text in texts])
        threshold = float(model.threshold)
        return [Prediction(format_links(one.links(threshold))) for one in found]

    def fold(self, word: str) -> str:
        """A word as it is compared."""
        return word.lower() if self.data.lowercase else word


def split_pair(text: str) -> Pair:
    """Source and target of a pair that is one text.

    >>> split_pair("the house ||| la maison")
    Pair(source='the house', target='la maison', where='')
    """
    source, separator, target = text.partition(SEPARATOR)
    if not separator or SEPARATOR in target:
        raise RegardError(f"{text[:60]!r}: expected a pair: source {SEPARATOR} target")
    return Pair(source.strip(), target.strip())


def join_pair(source: str, target: str) -> str:
    """A pair as one text."""
    return f"{source} {SEPARATOR} {target}"


def format_links(links: Iterable[tuple[int, int]]) -> str:
    """A line of a Pharaoh file.

    >>> format_links({(1, 0), (0, 0)})
    '0-0 1-0'
    """
    return " ".join(f"{s}-{t}" for s, t in sorted(links))


def read(data: AlignmentData, sources: Sequence[Source], summary: Summary) -> Iterator[Pair]:
    """The pairs of some files."""
    return read_pairs(sources, data.source, data.target, summary)


def prepare(data: AlignmentData, folder: Path, seed: int) -> DataReport:
    """Read the pairs, number their words, write the corpora; what was understood."""
    splits: Splits[Pair] = make_splits("english_french", data, read, seed)
    next(splits.train(), None)  # which reads the header
    if guessed := splits.guessed():
        options = ("source", "target")
        check_not_numbers((p.source for p in splits.train()), guessed, "source", options)
        check_not_numbers((p.target for p in splits.train()), guessed, "target", options)
    gold = _read_gold(data)
    valid, links = list(splits.valid()), None
    if gold is not None:
        valid, links = [pair for pair, _ in gold], [one for _, one in gold]
    elif all(isinstance(pair, AlignedPair) for pair in valid):
        sure = [frozenset(pair.links) for pair in valid if isinstance(pair, AlignedPair)]
        links = [GoldLinks(one, one) for one in sure]
    every = list(chain(splits.train(), splits.valid()))  # sentences only: nothing to hold out
    kept = [pair for pair in every if _longest(pair) <= data.max_words]
    left_out = f"{len(every) - len(kept):,} pairs, over {data.max_words} words, were left out"
    if not kept or not valid:
        purpose = "train on" if not kept else "validate with"
        raise RegardError(f"nothing is left to {purpose}: {splits.summary()}; {left_out}")
    together = sum(len(pair.source.split()) * len(pair.target.split()) for pair in kept)
    if together > MAX_CELLS:
        raise RegardError(
            f"{together:,} pairs of words occur together, more than {MAX_CELLS:,}, which take some "
            "16 GB: use fewer pairs, or a smaller --max-words"
        )
    fold = Alignment(AlignerConfig(), data, WordPairs([(), ()], np.array([-1]), 1)).fold
    sides = [
        [[fold(word) for word in text.split()] for text in texts]
        for texts in ([pair.target for pair in kept], [pair.source for pair in kept])
    ]
    pairs, words, cells = WordPairs.of(sides, 1)
    pairs.save(folder)
    if len(pairs.codes) >= 2**31:
        raise RegardError(f"{len(pairs.codes):,} pairs of words occur together: use fewer pairs")
    rows = zip(*words, cells, strict=True)
    write_rows(folder / TRAIN, ({"target": t, "source": s, "cells": c} for t, s, c in rows))
    write_rows(folder / VALID, _valid_rows(valid, links))
    return replace(
        splits.report(
            {"train": len(kept), "valid": len(valid)},
            vocabularies={"source": len(pairs.words[1]), "target": len(pairs.words[0])},
            notes=[left_out] if len(kept) < len(every) else [],
        ),
        read=splits.summary().replace(HELD_OUT, "; the model learns from all of them"),
    )


HELD_OUT = "; a part was held out for validation"


def _longest(pair: Pair) -> int:
    return max(len(pair.source.split()), len(pair.target.split()))


def _valid_rows(
    pairs: Sequence[Pair], links: Sequence[GoldLinks] | None
) -> Iterator[dict[str, Any]]:
    for i, pair in enumerate(pairs):
        row: dict[str, Any] = {"source_text": pair.source, "target_text": pair.target}
        yield row if links is None else row | {"links": _pack_links(links[i])}


def _pack_links(links: GoldLinks) -> np.ndarray:
    """Source word, target word, 1 if sure, and so on."""
    flat = [(s, t, (s, t) in links.sure) for s, t in sorted(links.possible | links.sure)]
    return np.array(flat, np.int32).reshape(-1)


def _unpack_links(flat: np.ndarray) -> GoldLinks:
    links = [tuple(row) for row in np.reshape(flat, (-1, 3)).tolist()]
    possible = frozenset((s, t) for s, t, _ in links)
    return GoldLinks(frozenset((s, t) for s, t, sure in links if sure), possible)


def _read_gold(data: AlignmentData) -> list[tuple[Pair, GoldLinks]] | None:
    """The validation pairs with their gold links, if there are any."""
    if data.valid is None or data.valid_gold is None:
        return None
    pairs = read_pairs_by_line(data.valid, data.source, data.target)
    lengths = [(len(pair.source.split()), len(pair.target.split())) for pair in pairs]
    gold = zero_based_links(read_link_file(data.valid_gold), lengths)
    return [(pair, links) for pair, links in zip(pairs, gold, strict=True) if pair.source]


def load(data: AlignmentData, config: AlignerConfig, folder: Path) -> Alignment:
    """The task of a run whose data was prepared."""
    return Alignment(config, data, WordPairs.load(folder, config.prefix_letters))
