"""Algorithms: problems that come back the same, a loss by a loop, runs that resume, exact match."""

import io
import json
import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.check import Inputs
from regard.cli import main
from regard.corpora import write_corpus
from regard.corpora.algorithms import ALGORITHMS
from regard.data import Pair
from regard.errors import RegardError
from regard.models import AlgorithmConfig, AlgorithmModel
from regard.tasks.algorithm.task import BLANK, END, EPOCH_BATCHES, Algorithm, check
from regard.tasks.algorithm.task_options import AlgorithmData
from regard.tasks.algorithm.trace import trace_problem
from regard.tasks.task import Task
from regard.trace import Trace
from regard.training.run import train_run
from tests.training.tiny import assert_same, everything

MODELS = ("memory", "recurrent", "transformer")
HEADS = {"memory.read": 2, "memory.write": 1}
SMALL = AlgorithmConfig(width=8, heads=2, layers=1, slots=7, slot_width=5)
TINY = {"width": 8, "heads": 2, "layers": 1, "slots": 12, "slot_width": 5, "longest": 3}
TINY |= {"batch_tokens": 40, "warmup": 2, "evaluate_every": 3, "save_every": 2}


def task(kind: str = "copy", **options) -> Algorithm:
    names = ("shortest", "longest", "symbols", "growth")
    data = {name: options.pop(name) for name in names if name in options}
    config = AlgorithmConfig(**(vars(SMALL) | options))
    return Algorithm(config, AlgorithmData(kind, **data))


def solved(kind: str, source: list[str]) -> list[str]:
    """The answer, by Python's own means."""
    if kind == "recall":
        known = dict(zip(source[:-2:2], source[1:-2:2], strict=True))
        return [known[source[-1]]]
    ways = {"copy": list, "reverse": lambda s: s[::-1], "sort": lambda s: sorted(s, key=int)}
    return ways[kind](source)


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_a_batch_asks_for_the_right_answers(kind):
    one = task(kind, longest=5, growth=9.0)
    assert isinstance(one, Task)
    names = one.data.names()
    for examples in one.plan(100, seed=3, epoch=1)[:20]:
        batch = one.batch(examples)
        assert batch.symbols.shape == batch.answers.shape == (len(examples), batch.symbols.shape[1])
        assert batch.symbols.numel() <= max(100, batch.symbols.shape[1])
        assert one.count(batch) == int((batch.symbols == BLANK).sum())
        for given_, wanted in zip(batch.symbols.tolist(), batch.answers.tolist(), strict=True):
            start = given_.index(BLANK)
            assert set(given_[start:]) == {BLANK}
            assert wanted[:start] == [0] * start
            assert wanted[-1] == END
            source = [names[number] for number in given_[:start]]
            assert [names[number] for number in wanted[start:-1]] == solved(kind, source)
            assert len(given_) == one.data.steps(int(examples[0, 0]))


@given(st.integers(0, 2**31), st.integers(0, 50))
@settings(max_examples=10, deadline=None)
def test_problems_are_a_function_of_seed_and_epoch(seed, epoch):
    one, other = task(), task()
    plans = one.plan(60, seed, epoch), other.plan(60, seed, epoch)
    assert len(plans[0]) == EPOCH_BATCHES
    assert all(np.array_equal(*pair) for pair in zip(*plans, strict=True))
    last = [plan[-1] for plan in plans]
    assert torch.equal(one.batch(last[0]).symbols, other.batch(last[1]).symbols)
    changed = one.plan(60, seed, epoch + 1), one.plan(60, seed + 1, epoch)
    assert all(not np.array_equal(plan[0], plans[0][0]) for plan in changed)


def test_lengths_grow_to_the_longest_and_no_further():
    one = task(longest=6, growth=2.0)
    found = [{int(batch[0, 0]) for batch in one.plan(60, 1, epoch)} for epoch in range(4)]
    assert found == [{1, 2}, {1, 2, 3, 4}, set(range(1, 7)), set(range(1, 7))]


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_tests_go_to_the_double_length_and_training_never_sees_them(kind):
    one = task(kind, longest=4)
    sizes = [one._size(pair.source) for pair in one.problems(60)]
    assert max(sizes[:30]) == 4
    assert min(sizes[30:]) == 5
    assert max(sizes) == 8
    assert one.problems(60) == one.problems(60) != one.problems(60, seed=1)
    for pair in one.problems(60):
        assert pair.target.split() == solved(kind, pair.source.split())


@pytest.mark.parametrize("model", MODELS)
def test_the_loss_is_that_of_a_loop(model):
    one = task("reverse", model=model)
    machine = one.build()
    batch = one._batch([Pair("3 1 4", "4 1 3"), Pair("7", "7")])
    found, _ = one.loss(machine, batch, 0.0, [])
    logits = machine(batch.symbols).logits.double().tolist()
    expected = 0.0
    for row, wanted in zip(logits, batch.answers.tolist(), strict=True):
        for values, right in zip(row, wanted, strict=True):
            if right:
                expected += math.log(sum(map(math.exp, values))) - values[right]
    assert one.count(batch) == 6
    assert float(found.total.detach()) == pytest.approx(expected, rel=1e-5)


def said(one: Algorithm, machine: AlgorithmModel, source: str) -> str:
    """The answer to one problem by itself, a symbol at a time."""
    names = one.data.names()
    given_ = [names.index(symbol) for symbol in source.split()]
    answer: list[str] = []
    while len(answer) < one._longest_answer(given_):
        steps = torch.tensor([[*given_, *[BLANK] * (len(answer) + 1)]])
        chosen = int(machine(steps).logits[0, -1, END:].argmax()) + END
        if chosen == END:
            break
        answer.append(names[chosen])
    return " ".join(answer)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["sort", "recall"])
def test_an_answer_is_the_same_alone_and_in_company(kind, model):
    one = task(kind, model=model, longest=3)
    machine = one.build().eval()
    texts = [pair.source for pair in one.problems(12)]
    found = one.predict(machine, texts)
    assert [answer.output for answer in found] == [said(one, machine, text) for text in texts]
    assert all(answer.details["log_probability"] <= 0 for answer in found)
    assert not any(answer.truncated for answer in found)


def test_metrics_are_counted_by_hand(monkeypatch):
    one = task(longest=2)
    pairs = [Pair("1", "1"), Pair("1 2", "1 2"), Pair("5 6 7", "5 6 7"), Pair("1 2 3 4", "1 2 3 4")]
    outputs = ["1", "1", "5 6 8", "1 2 3 4 5"]
    answers = [([one.data.names().index(s) for s in o.split()], -1.0) for o in outputs]
    monkeypatch.setattr(Algorithm, "_answers", lambda *_: answers)
    found = one.evaluate(one.build(), pairs)
    values = {name: value.value for name, value in found.metrics.items()}
    assert values == {
        "exact_match": 0.25,
        "symbol_accuracy": 0.8,
        "exact_match_trained": 0.5,
        "exact_match_longer": 0.0,
        "exact_match_4": 0.0,
    }
    assert {name: (v.value, v.n) for name, v in found.by_length.items()} == {
        "0–1": (1.0, 1),
        "2–2": (0.0, 1),
        "3–3": (0.0, 1),
        "4–4": (0.0, 1),
    }
    assert found.lines[1] == {"source": "1 2", "target": "1 2", "predicted": "1"}


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ({"model": "memory"}, {"memory.read", "memory.write"}),
        ({"model": "memory", "addressing": "dnc"}, {"memory.read", "memory.write"}),
        ({"model": "transformer"}, {"decoder.0.self"}),
        ({"model": "recurrent"}, set()),
    ],
)
def test_weights_have_a_row_a_step_and_change_nothing(model, names):
    one = task("copy", **model)
    machine = one.build().eval()
    symbols = torch.randint(1, 23, (3, 11))
    output = machine(symbols, need_weights=True)
    assert output.weights.keys() == names
    for name, weights in output.weights.items():
        assert weights.shape == ((3, HEADS[name], 11, 7) if "memory" in name else (3, 2, 11, 11))
        sums = weights.sum(-1)
        exact = model.get("addressing") != "dnc"
        assert (sums <= 1 + 1e-5).all()
        assert not exact or torch.allclose(sums, torch.ones(()))
    torch.testing.assert_close(output.logits, machine(symbols).logits)
    assert machine(symbols).weights == {}


def test_a_trace_shows_where_the_heads_were():
    one = task("recall", longest=2)
    machine = one.build().eval()
    with torch.no_grad():
        found = trace_problem(one, machine, "a 1 b 2 ? a")
    assert [token.text for token in found.sides["steps"].tokens][4:] == ["?", "a", "_", "_"]
    assert [(look.name, look.weights.shape) for look in found.looks] == [
        ("memory.read", (8, 7)),
        ("memory.read", (8, 7)),
        ("memory.write", (8, 7)),
    ]
    assert len(found.alternatives) == 2
    assert found.output == one.predict(machine, ["a 1 b 2 ? a"])[0].output
    assert Trace.from_json(found.to_json()).output == found.output


@pytest.mark.parametrize("controller", ["feed_forward", "elman", "gru", "lstm"])
@pytest.mark.parametrize("addressing", ["ntm", "dnc"])
def test_the_future_changes_nothing_and_padding_neither(addressing, controller):
    one = task(addressing=addressing, controller=controller, read_heads=2)
    machine = one.build().eval()
    symbols = torch.randint(1, 23, (3, 11))
    changed = symbols.clone()
    changed[:, 7:] = torch.randint(0, 23, (3, 4))
    assert torch.equal(machine(symbols).logits[:, :7], machine(changed).logits[:, :7])
    torch.testing.assert_close(machine(symbols[:, :7]).logits, machine(symbols).logits[:, :7])
    loss = machine(symbols).logits.logsumexp(-1).sum()
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in machine.parameters())


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    "options",
    [
        {"model": "memory"},
        {"model": "memory", "addressing": "dnc", "controller": "lstm"},
        {"model": "recurrent"},
        {"model": "transformer"},
    ],
)
def test_regard_check_finds_nothing(options):
    machine = task(**options).build().double()

    def make_inputs(batch, generator):
        symbols = torch.randint(1, 23, (batch, 7), generator=generator)
        looks = {"decoder.0.self": "b _ t t"} if options["model"] == "transformer" else None
        return Inputs({"symbols": symbols}, output="b t v", weights=looks, causal="t", padded="")

    def call(module, given_, need_weights):
        output = module(given_["symbols"], need_weights=need_weights)
        return (output.logits, output.weights) if need_weights else output.logits

    regard.check(machine, make_inputs, call).raise_if_failed()


@pytest.mark.parametrize("model", MODELS)
def test_every_model_learns_a_few_problems_by_heart(model):
    one = task("copy", model=model, width=24, slots=9, slot_width=8, symbols=5, longest=4)
    machine = one.build()
    pairs = [Pair("3 1 4", "3 1 4"), Pair("0 2 2", "0 2 2"), Pair("4 4 1", "4 4 1")]
    batch = one._batch(pairs)
    optimizer = torch.optim.Adam(machine.parameters(), lr=2e-2)
    for _ in range(60):
        loss, _ = one.loss(machine, batch, 0.0, [])
        optimizer.zero_grad()
        loss.total.backward()
        torch.nn.utils.clip_grad_norm_(machine.parameters(), 1.0)
        optimizer.step()
    found = one.evaluate(machine.eval(), pairs)
    assert found.metrics["exact_match"].value == 1
    assert found.samples[0].predicted == "3 1 4"


def test_a_memory_learns_the_algorithm_and_not_the_lengths():
    one = Algorithm(AlgorithmConfig(slots=20), AlgorithmData("copy", longest=4, symbols=10))
    machine = one.build()
    optimizer = torch.optim.Adam(machine.parameters(), lr=1e-2)
    for examples in [batch for epoch in range(3) for batch in one.plan(256, 1, epoch)]:
        loss, _ = one.loss(machine, one.batch(examples), 0.0, [])
        optimizer.zero_grad()
        loss.total.backward()
        torch.nn.utils.clip_grad_norm_(machine.parameters(), 1.0)
        optimizer.step()
        if float(loss.total.detach()) < 0.01 * len(examples):
            break
    found = one.evaluate(machine.eval(), one.problems(200)).metrics
    assert found["exact_match_trained"].value >= 0.97
    assert found["exact_match_longer"].value >= 0.9


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("algorithm") / "run"
    return regard.train("algorithm", out=out, kind="reverse", steps=4, **TINY)


def test_a_run_is_loaded_with_the_same_answers(run):
    again = regard.load(run.folder.path)
    texts = ["3 1 4", "", "15 9 2 6 5"]
    assert again(texts) == run(texts)
    assert run(texts)[1] == ""
    assert {"exact_match", "symbol_accuracy"} < run.evaluate().metrics.keys()
    assert run.evaluate().by_length.keys() == {"0–1", "2–3", "4–4", "5–6"}
    assert [look.name for look in again.trace("1 2").looks][1:] == ["memory.read", "memory.write"]


def test_a_file_of_problems_is_evaluated(run, tmp_path, capsys):
    written = write_corpus("algorithms", tmp_path / "corpus", 100, kind="reverse")
    (test,) = written.files["test"]
    found = run.evaluate(str(test))
    assert len(found.lines) == written.counts["test"]
    assert main(["evaluate", str(run.folder.path), "--data", str(test), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["metrics"]["exact_match"]["value"] == found.metrics["exact_match"].value
    test.write_text("source\ttarget\n1 2\t2 1\n1 x\tx 1\n")
    with pytest.raises(RegardError, match=r"test.tsv:3: unknown symbol 'x'"):
        run.evaluate(str(test))


def test_a_line_of_symbols_comes_out_for_each_that_goes_in(run, capfdbinary, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"3 1 4\n\n7\n")))
    assert main(["predict", str(run.folder.path)]) == 0
    lines = capfdbinary.readouterr().out.decode().split("\n")
    assert lines == [*run(["3 1 4", "", "7"]), ""]


def test_what_is_too_long_is_cut_and_told(run):
    longest = run.task.config.max_length
    found = run.predict(["1 " * 255, "1 " * 256])
    assert longest == 512
    assert [one.truncated for one in found] == [False, True]
    assert found[0].output == found[1].output


@pytest.mark.parametrize("model", MODELS)
def test_a_run_that_was_stopped_ends_as_one_that_was_not(model, tmp_path):
    options = {"kind": "sort", "model": model, "steps": 7, "average": 2, **TINY}
    regard.train("algorithm", out=tmp_path / "whole", **options)
    steps = []

    def stop() -> bool:
        return len(steps) % 3 == 0

    for _ in range(7):
        _, position = train_run(
            "algorithm", options, tmp_path / "parts", report=steps.append, stop=stop
        )
        if position.done:
            break
    assert len(steps) == 7
    assert_same(everything(tmp_path / "parts"), everything(tmp_path / "whole"))


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "copi"}, "'copi': did you mean 'copy'?"),
        ({"model": "memroy"}, "did you mean 'memory'?"),
        ({"controller": "lsmt"}, "did you mean 'lstm'?"),
        ({"addressing": "ntn"}, "did you mean 'ntm'?"),
        ({"slots": 9}, "option slots: expected 10 or more, to hold problems of that length, got 9"),
        ({"max_length": 30}, "option max_length: expected 41 or more"),
        ({"shortest": 5, "longest": 4}, "option longest: expected 5 or more, got 4"),
        ({"shortest": 0}, "option shortest: expected 1 or more"),
        ({"symbols": 1}, "option symbols: expected 2 or more"),
        ({"kind": "recall", "longest": 27}, "expected 26 or fewer pairs"),
        ({"write_heads": 2, "addressing": "dnc"}, "one write head, got 2"),
    ],
)
def test_wrong_options_are_told_before_anything_is_made(options, words, tmp_path):
    with pytest.raises(RegardError) as error:
        train_run("algorithm", options, tmp_path / "run")
    assert words in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_what_is_no_symbol_is_told(run):
    with pytest.raises(RegardError, match="unknown symbol '20'"):
        run(["1 20"])
    with pytest.raises(RegardError, match="unknown symbol '_'"):
        run(["_"])


def test_a_memory_need_not_hold_the_double_length():
    check(AlgorithmData(longest=10), AlgorithmConfig(slots=10))
