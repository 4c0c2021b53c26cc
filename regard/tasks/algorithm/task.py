"""Algorithms learned from examples: problems generated as needed, and exact-match rate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.corpora.algorithms import endless_problems, make_problem
from regard.data import DataReport, Pair, Source, Summary, read_pairs
from regard.data.batches import ordered_batches, pad
from regard.data.shared_batches import map_batches
from regard.devices import to_device
from regard.errors import OptionError, RegardError, unknown
from regard.metrics import Measurement, Tally, by_length, exact_match, measure, symbol_accuracy
from regard.models import AlgorithmConfig, AlgorithmModel
from regard.tasks.algorithm.task_options import AlgorithmData
from regard.tasks.prediction import Prediction
from regard.tasks.shared.extra_metrics import extra_metrics
from regard.tasks.shared.losses import next_token_loss
from regard.tasks.task import Evaluation, Loss, Sample

EPOCH_BATCHES = 100
"""Batches of an epoch: there is no corpus, so that an epoch is what lies between validations."""

VALID_PROBLEMS, TEST_PROBLEMS = 200, 2000
"""Problems for validation, and for a test without files: half of trained lengths, half longer."""

BLANK, END = 1, 2
"""0 is padding; blanks stand where the model is to answer, and it ends its answer with END."""


class Batch(NamedTuple):
    """Problems followed by blanks, and the answer at each step; 0 where none is expected."""

    symbols: Tensor
    answers: Tensor


@dataclass(frozen=True)
class Algorithm:
    """Problems of one kind and their answers."""

    config: AlgorithmConfig
    data: AlgorithmData

    def build(self) -> AlgorithmModel:
        """A model with initial weights."""
        return AlgorithmModel(self.config, len(self.data.names()))

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of problems of one length each, [n, 2]: the length, and a seed to generate it.

        Lengths are sampled uniformly between the shortest and the longest of the epoch.
        """
        random = np.random.default_rng([seed, epoch])
        batches = []
        for _ in range(EPOCH_BATCHES):
            length = int(random.integers(self.data.shortest, self.data.longest_in(epoch) + 1))
            seeds = random.integers(2**62, size=max(1, budget // self.data.steps(length)))
            batches.append(np.stack([np.full_like(seeds, length), seeds], 1))
        return batches

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        data = self.data
        return self._batch(
            [
                make_problem(data.kind, length, Random(number), data.symbols)
                for length, number in examples.tolist()
            ]
        )

    def _batch(self, pairs: Sequence[Pair]) -> Batch:
        problems = self.numbers([pair.source for pair in pairs])
        targets = [[*row, END] for row in self.numbers([pair.target for pair in pairs])]
        rows = list(zip(problems, targets, strict=True))
        symbols, _ = pad([np.array([*row, *[BLANK] * len(answer)]) for row, answer in rows])
        answers, _ = pad([np.array([*[0] * len(row), *answer]) for row, answer in rows])
        return Batch(symbols, answers)

    def count(self, batch: Batch) -> int:
        """The number of symbols in the answers, including their ends."""
        return int((batch.answers != 0).sum())

    def loss(
        self, model: AlgorithmModel, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of each symbol of the answers."""
        logits = model(batch.symbols).logits
        return Loss(next_token_loss(logits, batch.answers, smoothing)), carried

    @property
    def shares_validation(self) -> bool:
        """Processes share out the batches of its validation."""
        return True

    def validate(self, model: AlgorithmModel) -> Evaluation:
        """Exact-match rate on problems of trained lengths, and on as many longer ones."""
        return self.evaluate(model, self.problems(VALID_PROBLEMS, seed=1))

    def validation_batches(self, budget: int) -> list[Batch]:
        """The validation problems of trained lengths, in batches of `budget` steps."""
        trained = self.problems(VALID_PROBLEMS, seed=1)[: VALID_PROBLEMS - VALID_PROBLEMS // 2]
        sizes = [self.data.steps(self._size(pair.source)) for pair in trained]
        batches = ordered_batches(np.array(sizes, dtype=np.int32), budget)
        return [self._batch([trained[i] for i in batch]) for batch in batches]

    def problems(self, count: int = TEST_PROBLEMS, seed: int = 2) -> list[Pair]:
        """New problems: half of trained lengths, half up to twice as long; the same for a seed."""
        data = self.data
        longer = min(data.longest + 1, data.double), data.double
        trained = endless_problems(data.kind, (data.shortest, data.longest), seed, data.symbols)
        beyond = endless_problems(data.kind, longer, -seed, data.symbols)
        return [*islice(trained, count - count // 2), *islice(beyond, count // 2)]

    def evaluate(
        self, model: AlgorithmModel, examples: Sequence[Pair], *, metrics: Sequence[str] = ()
    ) -> Evaluation:
        """Exact-match rate and symbol accuracy, by length too."""
        for pair in examples:
            self.numbers([pair.source, pair.target], pair.where)
        predictions = self.predict(model, [pair.source for pair in examples])
        predicted = [prediction.output.split() for prediction in predictions]
        gold = [pair.target.split() for pair in examples]
        exact = exact_match(predicted, gold)
        extra = extra_metrics("symbol sequences", metrics, predicted, gold)
        sizes = np.array([self._size(pair.source) for pair in examples])
        lines = tuple(
            {"source": pair.source, "target": pair.target, "predicted": prediction.output}
            for pair, prediction in zip(examples, predictions, strict=True)
        )
        return Evaluation(
            metrics={
                "exact_match": measure(exact),
                "symbol_accuracy": measure(symbol_accuracy(predicted, gold)),
                **self._by_trained_length(exact, sizes),
                **{name: measure(tally) for name, tally in extra.items()},
            },
            main="exact_match",
            higher=True,
            samples=tuple(Sample(*line.values()) for line in lines[:3]),
            by_length={
                str(bucket): value
                for bucket, value in by_length(exact, sizes, self._edges()).items()
            },
            lines=lines,
            tally=exact,
        )

    def predict(self, model: AlgorithmModel, texts: Sequence[str]) -> list[Prediction]:
        """The answer to each problem, and its log-probability."""
        rows = self.numbers(texts)
        read = [row[: self.max_symbols()] for row in rows]
        return [
            self.prediction(answer, log_probability, truncated=len(short) < len(row))
            for row, short, (answer, log_probability) in zip(
                rows, read, self._answers(model, read), strict=True
            )
        ]

    def prediction(
        self, answer: list[int], log_probability: float, *, truncated: bool
    ) -> Prediction:
        """An answer in words."""
        names = self.data.names()
        output = " ".join(names[number] for number in answer)
        return Prediction(output, truncated, {"log_probability": log_probability})

    @torch.no_grad()
    def _answers(
        self, model: AlgorithmModel, rows: Sequence[list[int]], budget: int = 16384
    ) -> list[tuple[list[int], float]]:
        """The answer to each problem, and its log-probability."""
        answers: list[tuple[list[int], float]] = [([], 0.0)] * len(rows)
        lengths = np.array([len(self.with_blanks(row)) for row in rows], dtype=np.int32)

        def compute(chosen: np.ndarray) -> list[tuple[list[int], float]]:
            symbols, _ = pad([np.array(self.with_blanks(rows[i])) for i in chosen])
            log_probabilities = model(to_device(symbols, model)).logits.log_softmax(-1)
            return [
                read_answer(row[len(rows[i]) : int(lengths[i])])
                for i, row in zip(chosen, log_probabilities, strict=True)
            ]

        for chosen, found in map_batches(
            ordered_batches(lengths, budget),
            compute,
            "answering",
            unit="problems",
            total=len(rows),
            weight=len,
            decode=lambda plain: [(symbols, log_probability) for symbols, log_probability in plain],
        ):
            for i, answer in zip(chosen, found, strict=True):
                answers[i] = answer
        return answers

    def with_blanks(self, row: list[int]) -> list[int]:
        """A problem, followed by blanks for the answer."""
        return [*row, *[BLANK] * self._longest_answer(row)]

    def _longest_answer(self, row: list[int]) -> int:
        """Steps for the answer, its end included: no answer is longer than its problem."""
        return 2 if self.data.kind == "recall" else len(row) + 1

    def max_symbols(self) -> int:
        """The number of symbols of the longest problem that is read."""
        longest = self.config.max_length
        return longest - 2 if self.data.kind == "recall" else (longest - 1) // 2

    def numbers(self, texts: Sequence[str], where: str = "") -> list[list[int]]:
        """Symbols by number; a symbol that is not known is an error."""
        known = {name: number for number, name in enumerate(self.data.names()) if number > END}
        for text in texts:
            for symbol in text.split():
                if symbol not in known:
                    place = f"{where}: " if where else ""
                    raise RegardError(place + unknown("symbol", symbol[:40], known))
        return [[known[symbol] for symbol in text.split()] for text in texts]

    def _size(self, source: str) -> int:
        """The length of a problem: its symbols, or its pairs."""
        symbols = len(source.split())
        return max(0, symbols - 2) // 2 if self.data.kind == "recall" else symbols

    def _edges(self) -> list[int]:
        longest, double = self.data.longest, self.data.double
        return sorted({max(1, longest // 2), longest, (longest + double) // 2, double})

    def _by_trained_length(self, exact: Tally, sizes: np.ndarray) -> dict[str, Measurement]:
        """The rate at trained lengths, at longer ones, and at the double length itself."""
        longest, double = self.data.longest, self.data.double
        groups = {
            ("exact_match_trained", "trained lengths"): sizes <= longest,
            ("exact_match_longer", "longer"): sizes > longest,
            (f"exact_match_{double}", f"length {double}"): (sizes == double) & (double > longest),
        }
        return {
            key: measure(replace(exact[chosen], name=f"{exact.name}, {lengths}"))
            for (key, lengths), chosen in groups.items()
            if chosen.any()
        }


def read_answer(log_probabilities: Tensor) -> tuple[list[int], float]:
    """The most likely symbols [t, v] up to END, and their log-probability, END included."""
    allowed = log_probabilities.clone()
    allowed[..., :END] = -torch.inf
    best, symbols = (part.tolist() for part in allowed.max(-1))
    end = symbols.index(END) if END in symbols else len(symbols)
    return symbols[:end], sum(best[: end + 1])


def read(data: AlgorithmData, sources: Sequence[Source], summary: Summary) -> Iterator[Pair]:
    """The problems and answers of some files."""
    return read_pairs(sources, None, None, summary)


def check(data: AlgorithmData, config: AlgorithmConfig) -> None:
    """Check that the model has room for the problems."""
    if config.model == "memory" and config.slots < data.longest:
        raise OptionError(
            "slots",
            f"expected {data.longest} or more, to hold problems of that length, got "
            f"{config.slots}: give more slots, or a smaller longest",
        )
    if config.max_length < (steps := data.steps(data.double)):
        raise OptionError(
            "max_length",
            f"expected {steps} or more, for problems of length {data.double} "
            f"and their answers, got {config.max_length}",
        )


def prepare(data: AlgorithmData, folder: Path, seed: int) -> DataReport:
    """Nothing is read or written: problems are generated as needed."""
    unit = "pairs" if data.kind == "recall" else "symbols"
    return DataReport(
        f"{data.kind}: problems of {data.shortest} to {data.longest} {unit}, generated as needed"
    )


def load(data: AlgorithmData, config: AlgorithmConfig, folder: Path) -> Algorithm:
    """The task of a run."""
    return Algorithm(config, data)
