"""A validation that processes share out gives what a single process computes, to the bit."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier

import pytest
import torch

from regard.data.shared_batches import map_batches, share_batches
from regard.inference.load_run import load
from regard.tasks.shared.splits import with_corpora
from regard.tasks.task import SharesValidation
from regard.training.loss_module import evaluation_mode
from regard.training.run import train_run
from regard.training.validation_loss import validation_loss
from tests.training.tiny import write_data

WORLD = 3
MORE = {
    "condition": {"condition": "label"},
    "translation": {"vocabulary": 300, "max_tokens": 60},
}


@dataclass
class Meeting:
    """Where threads exchange values as processes do."""

    barrier: Barrier = field(default_factory=lambda: Barrier(WORLD))
    values: list[str] = field(default_factory=lambda: [""] * WORLD)


@dataclass
class Thread:
    rank: int
    meeting: Meeting
    world: int = WORLD

    def exchange(self, value):
        self.meeting.values[self.rank] = json.dumps(value)
        self.meeting.barrier.wait(60)
        values = [json.loads(text) for text in self.meeting.values]
        self.meeting.barrier.wait(60)
        return values


def in_threads(compute):
    """What `compute(rank)` gives in each of several threads that share."""
    meeting = Meeting()

    def run(rank):
        with share_batches(Thread(rank, meeting)):
            return compute(rank)

    with ThreadPoolExecutor(WORLD) as pool:
        futures = [pool.submit(run, rank) for rank in range(WORLD)]
        return [future.exception() or future.result() for future in futures]


@pytest.mark.parametrize("task", ["classify", "tag", "translation", "condition"])
def test_metrics_and_loss_are_those_of_one_process(task, tmp_path):
    name = "language" if task == "condition" else task
    data = write_data(tmp_path, "classify" if task == "condition" else task)
    own = {"data": data, "steps": 2, "width": 8, "batch_tokens": 20} | MORE.get(task, {})
    train_run(name, own, tmp_path / "run", device="cpu")
    run = load(tmp_path / "run", "cpu")
    prepared = with_corpora(run.task, tmp_path / "run" / "data")
    assert isinstance(prepared, SharesValidation)

    def validate(rank=0):
        with torch.no_grad():
            evaluation = prepared.validate(run.model)
            return evaluation, validation_loss(prepared, run.model, 0.1, 20)

    with evaluation_mode(run.model):
        alone, loss = validate()
        shared = in_threads(validate)
    for evaluation, shared_loss in shared:
        assert shared_loss == loss
        assert evaluation.metrics == alone.metrics
        assert evaluation.lines == alone.lines
        assert evaluation.samples == alone.samples
        assert evaluation.by_length == alone.by_length


def test_batches_are_computed_once_and_come_in_their_order():
    computed = []

    def compute(batch):
        computed.append(batch)
        return batch * 0.1

    found = in_threads(lambda rank: list(map_batches(range(7), compute, "", unit="")))
    assert found == [[(n, n * 0.1) for n in range(7)]] * WORLD
    assert sorted(computed) == list(range(7))


def test_what_a_batch_consists_of_is_not_shared_out_again():
    def inner(batch):
        return [result for _, result in map_batches(range(batch), float, "", unit="")]

    found = in_threads(lambda rank: list(map_batches(range(4), inner, "", unit="")))
    assert found == [[(n, [float(i) for i in range(n)]) for n in range(4)]] * WORLD


def test_an_error_in_one_process_ends_the_validation_in_all():
    def compute(batch):
        if batch == 4:
            raise ValueError("not finite")
        return batch

    errors = in_threads(lambda rank: list(map_batches(range(7), compute, "", unit="")))
    assert [str(error) for error in errors] == [
        "another process could not compute its part: not finite",
        "not finite",
        "another process could not compute its part: not finite",
    ]
