"""Algorithms learned from examples: problems made as they are needed, and exact-match rate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.data import Pair, Source, Summary, read_pairs
from regard.data.batches import in_order, pad
from regard.data.builtin import KINDS, endless, sequence
from regard.errors import RegardError, unknown
from regard.metrics import Measured, Tally, by_length, exact_match, measure, token_accuracy
from regard.models import Machine, MachineConfig, Output
from regard.options import at_least
from regard.tasks.losses import next_token_loss
from regard.tasks.sides import named_side
from regard.tasks.task import Evaluation, Loss, Prediction, Sample
from regard.trace import Trace

DEFAULTS: dict[str, Any] = {
    "epochs": 60,
    "batch_tokens": 512,
    "learning_rate": 3e-3,
    "schedule": "constant",
    "patience": 15,
}

BATCHES = 100
"""Batches of an epoch: there is no corpus to pass over, only so many between two looks."""

LOOKED_AT, TESTED = 200, 2000
"""Problems of validation, and of a test without files: half of trained lengths, half longer."""

BLANK, END = 1, 2
"""0 is padding; blanks stand where the machine is to answer, and it ends its answer with END."""


@dataclass(frozen=True)
class AlgorithmData:
    """Which algorithm is to be learned, and on which problems."""

    kind: str = "copy"
    """copy, reverse, sort or recall."""
    shortest: int = 1
    """The shortest problem, in symbols (pairs, for recall)."""
    longest: int = 10
    """The longest problem of training; it is tested up to twice as long."""
    symbols: int = 20
    """How many numbers there are, from 0; the keys of recall are letters."""
    growth: float = 0.0
    """Curriculum: by how much the longest problem grows in an epoch, from 2 on; 0 = none."""

    def __post_init__(self) -> None:
        at_least(self, shortest=1, symbols=2, growth=0)
        if self.kind not in KINDS:
            raise RegardError(unknown("kind", self.kind, KINDS))
        at_least(self, longest=self.shortest)
        if self.kind == "recall" and self.longest > len(ascii_lowercase):
            raise RegardError(
                f"option longest: expected {len(ascii_lowercase)} or fewer pairs in recall, whose "
                f"keys are letters, got {self.longest}"
            )

    @property
    def double(self) -> int:
        """The longest problem of tests."""
        return min(2 * self.longest, len(ascii_lowercase) if self.kind == "recall" else 2**31)

    def reached(self, epoch: int) -> int:
        """The longest problem of an epoch."""
        if self.growth == 0:
            return self.longest
        return max(self.shortest, min(self.longest, 2 + int(self.growth * epoch)))

    def steps(self, length: int) -> int:
        """Steps of a machine that works on a problem: its symbols, and room for the answer."""
        return 2 * length + 4 if self.kind == "recall" else 2 * length + 1

    def names(self) -> list[str]:
        """All symbols, by number; the first three are padding, blank and end."""
        numbers = [str(number) for number in range(self.symbols)]
        return ["", "_", ".", *numbers, *((*ascii_lowercase, "?") if self.kind == "recall" else ())]


class Batch(NamedTuple):
    """Problems followed by blanks, and what to say at each step; 0 where nothing is asked."""

    symbols: Tensor
    answers: Tensor


@dataclass(frozen=True)
class Algorithm:
    """Problems of one kind and their answers."""

    config: MachineConfig
    data: AlgorithmData

    def build(self) -> Machine:
        """A machine with fresh weights."""
        return Machine(self.config, len(self.data.names()))

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of problems of one length each, [n, 2]: the length, and a number to draw it by.

        Lengths are drawn evenly between the shortest and the longest of the epoch. No problem comes
        twice but by chance.
        """
        random = np.random.default_rng([seed, epoch])
        batches = []
        for _ in range(BATCHES):
            length = int(random.integers(self.data.shortest, self.data.reached(epoch) + 1))
            drawn = random.integers(2**62, size=max(1, budget // self.data.steps(length)))
            batches.append(np.stack([np.full_like(drawn, length), drawn], 1))
        return batches

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        data = self.data
        return self._batch(
            [
                sequence(data.kind, length, Random(number), data.symbols)
                for length, number in examples.tolist()
            ]
        )

    def _batch(self, pairs: Sequence[Pair]) -> Batch:
        given = self._numbers([pair.source for pair in pairs])
        wanted = [[*row, END] for row in self._numbers([pair.target for pair in pairs])]
        rows = list(zip(given, wanted, strict=True))
        symbols, _ = pad([np.array([*row, *[BLANK] * len(answer)]) for row, answer in rows])
        answers, _ = pad([np.array([*[0] * len(row), *answer]) for row, answer in rows])
        return Batch(symbols, answers)

    def count(self, batch: Batch) -> int:
        """Symbols of answers, the end among them."""
        return int((batch.answers != 0).sum())

    def loss(
        self, model: nn.Module, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of each symbol of the answers."""
        logits = model(batch.symbols).logits
        return Loss(next_token_loss(logits, batch.answers, smoothing)), carried

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Exact-match rate on problems of trained lengths, and on as many longer ones."""
        return self.score(model, self.problems(LOOKED_AT, seed=1))

    def problems(self, count: int = TESTED, seed: int = 2) -> list[Pair]:
        """New problems: half of trained lengths, half up to twice as long; the same for a seed."""
        data = self.data
        longer = min(data.longest + 1, data.double), data.double
        trained = endless(data.kind, (data.shortest, data.longest), seed, data.symbols)
        beyond = endless(data.kind, longer, -seed, data.symbols)
        return [*islice(trained, count - count // 2), *islice(beyond, count // 2)]

    def score(self, model: nn.Module, examples: Sequence[Pair]) -> Evaluation:
        """Exact-match rate and the share of right symbols, by length too."""
        for pair in examples:
            self._numbers([pair.source, pair.target], pair.where)
        found = self.predict(model, [pair.source for pair in examples])
        predicted = [one.output.split() for one in found]
        gold = [pair.target.split() for pair in examples]
        exact = exact_match(predicted, gold)
        sizes = np.array([self._size(pair.source) for pair in examples])
        samples = zip(examples[:3], found[:3], strict=True)
        return Evaluation(
            metrics={
                "exact_match": measure(exact),
                "symbol_accuracy": measure(_symbol_accuracy(predicted, gold)),
                **self._reach(exact, sizes),
            },
            main="exact_match",
            higher=True,
            samples=tuple(Sample(pair.source, pair.target, one.output) for pair, one in samples),
            by_length={
                str(bucket): value
                for bucket, value in by_length(exact, sizes, self._edges()).items()
            },
            lines=tuple(
                {"source": pair.source, "target": pair.target, "predicted": one.output}
                for pair, one in zip(examples, found, strict=True)
            ),
        )

    def predict(self, model: nn.Module, texts: Sequence[str]) -> list[Prediction]:
        """The answer to each problem, and how likely the machine holds it to be."""
        names = self.data.names()
        rows = self._numbers(texts)
        kept = [row[: self._room()] for row in rows]
        return [
            Prediction(
                " ".join(names[number] for number in answer),
                len(short) < len(row),
                {"log_probability": chance},
            )
            for row, short, (answer, chance) in zip(
                rows, kept, self._answers(model, kept), strict=True
            )
        ]

    @torch.no_grad()
    def _answers(
        self, model: nn.Module, rows: Sequence[list[int]], budget: int = 16384
    ) -> list[tuple[list[int], float]]:
        """What the machine says to each problem before it says END, and the log-probability."""
        found: list[tuple[list[int], float]] = [([], 0.0)] * len(rows)
        lengths = np.array([len(row) + self._longest_answer(row) for row in rows], dtype=np.int32)
        for chosen in in_order(lengths, budget):
            asked = [self._asked(rows[i]) for i in chosen]
            chances = model(pad([np.array(row) for row in asked])[0]).logits.log_softmax(-1)
            chances[..., :END] = -torch.inf
            best, said = chances.max(-1)
            for i, row_best, row_said in zip(chosen, best.tolist(), said.tolist(), strict=True):
                steps = slice(len(rows[i]), int(lengths[i]))
                answer = row_said[steps]
                end = answer.index(END) if END in answer else len(answer)
                found[i] = answer[:end], sum(row_best[steps][: end + 1])
        return found

    @torch.no_grad()
    def trace(self, model: nn.Module, text: str) -> Trace:
        """What the machine says at each step, and where its heads are then."""
        from regard.tasks.traces import likeliest, looks  # which knows all tasks

        names = self.data.names()
        row = self._numbers([text])[0][: self._room()]
        asked = self._asked(row)
        output: Output = model(torch.tensor([asked]), need_weights=True)
        weights = {name: look[0] for name, look in output.weights.items()}
        sides = {
            "steps": named_side(names[number] for number in asked),
            "slots": named_side(str(slot) for slot in range(self.config.slots)),
        }
        where = {f"memory.{part}": ("steps", "slots") for part in ("read", "write")}
        where["decoder.self"] = ("steps", "steps")
        found = self.predict(model, [text])[0]
        return Trace(
            "algorithm",
            sides,
            looks(weights, sides, where),
            found.output,
            {**found.details, "cut": found.cut},
            likeliest(output.logits[0].log_softmax(-1)[len(row) :], names),
        )

    def _asked(self, row: list[int]) -> list[int]:
        return [*row, *[BLANK] * self._longest_answer(row)]

    def _longest_answer(self, row: list[int]) -> int:
        """Steps for the answer, its end included: no answer is longer than its problem."""
        return 2 if self.data.kind == "recall" else len(row) + 1

    def _room(self) -> int:
        """Symbols of the longest problem that is read."""
        longest = self.config.max_length
        return longest - 2 if self.data.kind == "recall" else (longest - 1) // 2

    def _numbers(self, texts: Sequence[str], where: str = "") -> list[list[int]]:
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

    def _reach(self, exact: Tally, sizes: np.ndarray) -> dict[str, Measured]:
        """The rate at trained lengths, at longer ones, and at the double length itself."""
        longest, double = self.data.longest, self.data.double
        parts = {
            "exact_match_trained": sizes <= longest,
            "exact_match_longer": sizes > longest,
            f"exact_match_{double}": (sizes == double) & (double > longest),
        }
        return {name: measure(exact[chosen]) for name, chosen in parts.items() if chosen.any()}


def _symbol_accuracy(predicted: Sequence[list[str]], gold: Sequence[list[str]]) -> Tally:
    """The share of the right answers' symbols that stand in their place."""
    cut = [
        (found + [""] * len(right))[: len(right)]
        for found, right in zip(predicted, gold, strict=True)
    ]
    return token_accuracy(cut, gold)


def read(data: AlgorithmData, sources: Sequence[Source], summary: Summary) -> Iterator[Pair]:
    """The problems and answers of some files."""
    return read_pairs(sources, None, None, summary)


def check(data: AlgorithmData, config: MachineConfig) -> None:
    """See that problems fit the machine before it is built."""
    if config.model == "memory" and config.slots < data.longest:
        raise RegardError(
            f"option slots: expected {data.longest} or more, to hold problems of that length, got "
            f"{config.slots}: give more slots, or a smaller longest"
        )
    if config.max_length < (steps := data.steps(data.double)):
        raise RegardError(
            f"option max_length: expected {steps} or more, for problems of length {data.double} "
            f"and their answers, got {config.max_length}"
        )


def prepare(data: AlgorithmData, folder: Path, seed: int) -> str:
    """Nothing is read or written: problems are made as they are needed."""
    unit = "pairs" if data.kind == "recall" else "symbols"
    return f"{data.kind}: problems of {data.shortest} to {data.longest} {unit}, made as needed"


def load(data: AlgorithmData, config: MachineConfig, folder: Path) -> Algorithm:
    """The task of a run."""
    return Algorithm(config, data)
