"""Algorithms: copy, reverse, sort and recall, learned from generated problems."""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.lazy_imports import deferred
from regard.models.model_configs import AlgorithmConfig
from regard.tasks.algorithm import task_options
from regard.tasks.registry import TaskSpec


def _new_problems(algorithm: Any) -> tuple[Sequence[Any], str]:
    problems = algorithm.problems()
    return problems, f"{len(problems)} new problems, half of trained lengths, half longer"


def _symbols(algorithm: Any) -> Mapping[str, Any]:
    from regard.tasks.algorithm.task import BLANK, END

    special = {"padding": 0, "blank": BLANK, "end": END}
    return {"special_symbols": special, "symbols": algorithm.data.names()}


SPEC = TaskSpec(
    name="algorithm",
    summary="learn to copy, reverse, sort or recall, with a memory",
    data=task_options.AlgorithmData,
    model=AlgorithmConfig,
    read=deferred("regard.tasks.algorithm.task:read"),
    prepare=deferred("regard.tasks.algorithm.task:prepare"),
    load=deferred("regard.tasks.algorithm.task:load"),
    train_example="--kind reverse --longest 12",
    attend_with="--model memory",
    training_defaults=task_options.TRAINING_DEFAULTS,
    compares="symbol sequences",
    check=deferred("regard.tasks.algorithm.task:check"),
    corpus="algorithms",
    generated=_new_problems,
    trace=deferred("regard.tasks.algorithm.trace:trace_problem"),
    screens=("memory", "self-attention", "steps", "compare", "training", "length"),
    example_texts=("3 1 4 1 5", "2 7 1 8 2 8", "0 1 2 3 4 5 6 7"),
    export_notes=(
        "a symbol is its index in symbols; after the problem come blanks, one for each symbol of "
        "the answer; what the model outputs at blanks is the answer, up to special_symbols.end",
        "where there is a start.onnx, it runs once and then model.onnx once per symbol: give it "
        "the outputs state.* of the start, and after each step its own outputs next.* as state.*",
    ),
    export_vocabulary=_symbols,
)
