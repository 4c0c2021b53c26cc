"""The loop: learning rates, clipping, accumulation and averaging by hand."""

import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from regard import RegardError
from regard.training import TrainingConfig
from regard.training.metrics_log import saved_weights
from regard.training.optimizer import learning_rate
from regard.training.run import train_run
from tests.training.tiny import OPTIONS, write_data


@pytest.mark.parametrize(
    ("schedule", "step", "share", "halvings", "expected"),
    [
        ("constant", 0, 0.0, 0, 2.0 / 10),
        ("constant", 9, 0.1, 0, 2.0),
        ("constant", 500, 0.9, 7, 2.0),
        ("inverse_root", 4, 0.1, 0, 1.0),
        ("inverse_root", 39, 0.5, 0, 1.0),
        ("plateau", 20, 0.2, 3, 0.25),
        ("plateau", 4, 0.1, 1, 0.5),
        ("warm_down", 60, 0.75, 0, 2.0),
        ("warm_down", 88, 0.8, 1, 0.8),
        ("warm_down", 110, 1.0, 0, 0.0),
        ("cosine", 10, 0.0, 0, 2.0),
        ("cosine", 4, 0.5, 0, 0.5),
        ("cosine", 60, 0.5, 0, 1.0),
        ("cosine", 35, 0.25, 0, 1 + math.sqrt(0.5)),
        ("cosine", 110, 1.0, 0, 0.0),
    ],
)
def test_learning_rates_by_hand(schedule, step, share, halvings, expected):
    config = TrainingConfig(learning_rate=2.0, warmup=10, schedule=schedule, steps=110)
    assert learning_rate(config, step, share, halvings) == pytest.approx(expected, abs=1e-12)


def test_no_warmup_begins_at_the_top():
    for schedule in ("constant", "inverse_root", "plateau", "cosine", "warm_down"):
        config = TrainingConfig(learning_rate=2.0, warmup=0, schedule=schedule, steps=5)
        assert learning_rate(config, 0, 0.0, 0) == 2.0


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": 0}, "option steps: expected 1 or more and at most 1000000000000, got 0"),
        ({"accumulate": 0}, "option accumulate: expected 1 or more"),
        ({"save_every": 0}, "option save_every: expected 1 or more"),
        ({"evaluate_every": -1}, "option evaluate_every: expected 1 or more"),
        (
            {"learning_rate": math.nan},
            "option learning_rate: expected a finite number, 0 or more, got nan",
        ),
        ({"clip": 0.0}, "option clip: expected more than 0"),
        ({"minutes": 0.0}, "option minutes: expected more than 0, got 0.0"),
        ({"minutes": math.nan}, "option minutes: expected more than 0, got nan"),
        (
            {"label_smoothing": 1.0},
            "option label_smoothing: expected 0 or more and less than 1, got 1.0",
        ),
        (
            {"schedule": "cosin"},
            "inverse_root, linear, plateau or warm_down, got 'cosin': did you mean 'cosine'",
        ),
        ({"schedule": "cosine"}, "cosine needs a budget: epochs, steps or minutes"),
        ({"schedule": "warm_down"}, "warm_down needs a budget: epochs, steps or minutes"),
    ],
)
def test_values_that_make_no_sense_are_named(options, words):
    with pytest.raises(RegardError, match=words):
        TrainingConfig(**options)


def run(tmp_path, name, task="classify", log=lambda line: None, **options):
    """Train, and return what was reported and written."""
    data = write_data(tmp_path, task)
    seen = []
    out = tmp_path / name
    given = {"data": data, **OPTIONS[task], "dropout": 0.0, **options}
    train_run(task, given, out, report=seen.append, log=log)
    return seen, out


def test_cosine_comes_down_with_the_minutes(tmp_path):
    seen, _ = run(tmp_path, "run", schedule="cosine", minutes=0.03, learning_rate=1.0, warmup=0)
    shares = [0.0, *(progress.share for progress in seen[:-1])]
    assert shares[-1] > 0.5
    for progress, share in zip(seen, shares, strict=True):
        expected = 0.5 * (1 + math.cos(math.pi * share))
        assert progress.learning_rate == pytest.approx(expected, abs=1e-9)


def test_accumulated_batches_make_the_step_of_one(tmp_path):
    """As many batches as an epoch has make the gradient of all examples at once."""
    alike = {"steps": 1, "average": 1, "learning_rate": 0.1, "word_dropout": 0.0}
    many, first = run(tmp_path, "many", accumulate=1000, batch_tokens=20, **alike)
    one, second = run(tmp_path, "one", accumulate=1, batch_tokens=100_000, **alike)
    assert many[0].position.batch > 5
    assert one[0].position.batch == 1
    assert many[0].loss == pytest.approx(one[0].loss, rel=1e-5)
    assert many[0].gradient_norm == pytest.approx(one[0].gradient_norm, rel=1e-4)
    norms = [
        json.loads((out / "metrics.jsonl").read_text())["gradient_norm"] for out in (first, second)
    ]
    assert norms == [many[0].gradient_norm, one[0].gradient_norm]


def test_long_gradients_are_clipped_and_their_length_is_logged(tmp_path):
    """After one step AdamW's first moment is a tenth (1 - 0.9) of the gradient it was given."""
    seen, out = run(tmp_path, "clipped", steps=1, clip=1e-3, average=1)
    state = load_file(out / "state" / "latest.safetensors")
    moments = [t for name, t in state.items() if name.endswith("exp_avg")]
    length = math.sqrt(sum(float((t.double() / 0.1).square().sum()) for t in moments))
    assert seen[0].gradient_norm > 1e-3
    assert length == pytest.approx(1e-3, rel=1e-3)


def test_checkpoints_that_stay_are_the_weights_after_their_updates(tmp_path):
    # votes of n-grams are weighed in each validation, which changes the weights
    options = {"steps": 9, "schedule": "constant", "average": 2, "learning_rate": 0.1}
    options |= {"word_ngrams": 0}
    seen, out = run(tmp_path, "kept", keep_every=4, **options)
    plain, _ = run(tmp_path, "plain", **options)
    stay = {f"step-{step}.safetensors" for step in (4, 8)}
    assert stay <= {path.name for path in (out / "checkpoints").iterdir()}
    for step in (4, 8):
        short = options | {"steps": step, "average": 1, "evaluate_every": step}
        run(tmp_path, f"short-{step}", **short)
        expected = load_file(tmp_path / f"short-{step}/model.safetensors")
        found = load_file(out / "checkpoints" / f"step-{step}.safetensors")
        assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert [progress.loss for progress in seen] == [progress.loss for progress in plain]


@pytest.mark.parametrize("learning_rate", [0.05, 0.5])
def test_the_average_is_the_mean_of_the_best_checkpoints(tmp_path, learning_rate):
    said = []
    # with votes of n-grams, likelihood decides in place of accuracy
    options = {"average": 3, "learning_rate": learning_rate, "word_ngrams": 0}
    _, out = run(tmp_path, "averaged", log=said.append, **options)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    last, validations = lines[-1], lines[:-1]

    def merit(line):
        return line["metrics"]["accuracy"]["value"], -line["validation_loss"]

    best = max(map(merit, validations))
    assert len(last["averaged"]) == 3
    parts = [load_file(out / "checkpoints" / name) for name in last["averaged"]]
    model = load_file(out / "model.safetensors")
    assert last["kept"] == (merit(last) > best)
    saved = saved_weights(lines)
    if last["kept"]:
        assert saved == last
        expected = {k: np.mean([p[k].double().numpy() for p in parts], axis=0) for k in model}
        for name, tensor in model.items():
            torch.testing.assert_close(
                tensor.double().numpy(), expected[name], rtol=1e-5, atol=1e-7
            )
    else:
        assert merit(saved) == best
        single = load_file(out / "checkpoints" / f"step-{saved['step']}.safetensors")
        assert all(torch.equal(model[name], single[name]) for name in model)
    value = f"{100 * last['metrics']['accuracy']['value']:.1f} %"
    end = "better, kept" if last["kept"] else "not better, left out"
    assert said[-1] == f"average of the best 3: accuracy {value}, {end}"
    accuracies = {line["step"]: line["metrics"]["accuracy"]["value"] for line in validations}
    kept = [accuracies[int(name.removeprefix("step-").split(".")[0])] for name in last["averaged"]]
    assert sorted(kept) == sorted(accuracies.values())[-3:]


def test_of_equal_metrics_the_lower_loss_is_better(tmp_path):
    options = {"evaluate_every": 1, "patience": 2, "learning_rate": 1e-6, "warmup": 0, "average": 1}
    valid = write_data(tmp_path, "classify")
    _, out = run(tmp_path, "equal", valid=valid, steps=8, schedule="constant", **options)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    losses = [line["validation_loss"] for line in lines]
    assert len({line["metrics"]["accuracy"]["value"] for line in lines}) == 1
    assert losses == sorted(losses, reverse=True)
    assert len(lines) == 8  # patience did not end it
    assert all(line["best"] for line in lines)


def test_training_leaves_the_random_numbers_of_the_caller_alone(tmp_path):
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    run(tmp_path, "run", steps=2)
    assert torch.equal(torch.rand(4), expected)


def test_a_label_that_is_seen_only_in_the_part_set_aside_is_no_error(tmp_path):
    rows = [f"text number {i}\t{'common' if i % 2 else 'frequent'}" for i in range(40)]
    for place in range(40):
        unique = [*rows[:place], rows[place].split("\t")[0] + "\trare", *rows[place + 1 :]]
        (tmp_path / "data.tsv").write_text("text\tlabel\n" + "\n".join(unique) + "\n")
        options = OPTIONS["classify"] | {"steps": 1, "data": str(tmp_path / "data.tsv")}
        train_run("classify", options, tmp_path / str(place))
        if place % 10 == 9:  # a tenth of the places is enough
            break


def test_two_lines_of_metrics_are_two_lines_whatever_the_samples_hold(tmp_path):
    texts = [f"a\u2028b\x85c {i}\t{i % 2}" for i in range(20)]
    (tmp_path / "data.tsv").write_text("text\tlabel\n" + "\n".join(texts) + "\n")
    options = OPTIONS["classify"] | {"data": str(tmp_path / "data.tsv"), "average": 1}
    out = tmp_path / "run"
    steps = iter(range(9))
    train_run("classify", options, out, stop=lambda: next(steps) == 8)
    before = (out / "metrics.jsonl").read_text().split("\n")
    train_run("classify", options, out)
    after = (out / "metrics.jsonl").read_text().split("\n")
    assert after[: len(before) - 1] == before[:-1]
    assert len(before) > 3
