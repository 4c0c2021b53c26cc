"""Language modelling: the next token of a text, freely or given a label or a vector."""

from collections.abc import Mapping
from typing import Any

from regard.lazy_imports import deferred
from regard.models.model_configs import LanguageConfig
from regard.tasks.language import task_options
from regard.tasks.language.serve import SHAPES
from regard.tasks.registry import SCREENS, TaskSpec, TextGeneration


def _is_running_text(data: Any) -> bool:
    return data.condition is None


def _no_free_prompts(data: Mapping[str, Any]) -> str:
    return "it writes from a condition" if data.get("condition") else ""


SPEC = TaskSpec(
    name="language",
    summary="model text: predict the next word, generate, measure perplexity",
    data=task_options.LanguageData,
    model=LanguageConfig,
    read=deferred("regard.tasks.language.task:read"),
    prepare=deferred("regard.tasks.language.task:prepare"),
    load=deferred("regard.tasks.language.task:load"),
    train_example="--data text.txt --model transformer --minutes 10",
    attend_with="--attention additive",
    training_defaults=task_options.TRAINING_DEFAULTS,
    defaults_with={
        "pretrained": task_options.PRETRAINED_DEFAULTS,
        "condition": task_options.CONDITION_DEFAULTS,
    },
    adopt=deferred("regard.tasks.language.pretrained_model:adopt"),
    check=deferred("regard.tasks.language.task:check"),
    corpus="stories",
    running_text=_is_running_text,
    predict_options=task_options.Sampling,
    evaluate_options=task_options.ReadingOptions,
    score_options=task_options.ReadingOptions,
    trace=deferred("regard.tasks.language.trace:trace_text"),
    explain=deferred("regard.tasks.language.explain:explain_next_token"),
    example_text=deferred("regard.tasks.shared.vector_inputs:text_of_example"),
    log_probabilities=deferred("regard.tasks.language.log_probabilities:text_log_probabilities"),
    generation=TextGeneration(
        generate=deferred("regard.tasks.language.prompts:generate"),
        samples=deferred("regard.tasks.language.prompts:sample_continuations"),
        stream=deferred("regard.tasks.language.prompts:stream_text"),
        unavailable=_no_free_prompts,
    ),
    http=SHAPES,
    screens=("language", *SCREENS),
    example_texts=(
        "Greta was a chemist who lived near the archive . Her cousin Nora owned a faulty robot . "
        "Greta was afraid because Nora had touched the robot .",
        "Near the orchard lived a beekeeper called Rosalind . One morning Horace , her cousin , "
        "brought her a ripe seed .",
        "In those days Stella worked as a hunter at the ruined tower .",
    ),
    export_notes=(
        "start.onnx once, then model.onnx with any number of tokens at a time: give it the outputs "
        "state.* of the start, and after each call its own outputs next.* as state.*",
        "a text begins with first_token, and ends with special_tokens.end",
    ),
)
