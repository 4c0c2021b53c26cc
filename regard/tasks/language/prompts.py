"""Prompts: a text to continue, perhaps preceded by a label or a vector that it is written from."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from regard.data.tokenizers.tokenizer import Tokenizer
from regard.errors import OptionError
from regard.models import LanguageModel, LanguageState
from regard.tasks.language.conditional import Conditional
from regard.tasks.language.generate import (
    StopSequenceError,
    TextStream,
    continue_prompts,
    generate_pieces,
    longest_prompt,
    most_tokens,
    stream_tokens,
)
from regard.tasks.language.task import Language, start_state
from regard.tasks.language.task_options import ReadingOptions, Sampling
from regard.tasks.prediction import Prediction


class Prompt(NamedTuple):
    """The text to continue, and the state before its first token."""

    tokenizer: Tokenizer
    text: str
    state: LanguageState


def parse_prompt(
    task: Language | Conditional,
    model: LanguageModel,
    given: str,
    reading: ReadingOptions | None = None,
) -> Prompt:
    """A prompt as it was given; a run with a condition has the condition before a tab."""
    if isinstance(task, Language):
        return Prompt(task.tokenizer, given, start_state(model, 1, reading))
    if reading is not None and reading.cache:
        raise OptionError("cache", "does not apply to runs that write from a condition")
    condition, text = task.split_prompt(given)
    return Prompt(task.tokenizer, text, task.start(model, task.condition_tensor([condition])))


def generate(
    task: Language | Conditional, model: LanguageModel, given: str, **options: Any
) -> Iterator[str]:
    """Pieces of the continuation of a prompt, as they are written."""
    sampling = Sampling(**options)
    prompt = parse_prompt(task, model, given, sampling)
    ids = prompt.tokenizer.ids([prompt.text])[0]
    return generate_pieces(model, prompt.tokenizer, ids, prompt.state, sampling)


def sample_continuations(
    task: Language | Conditional, model: LanguageModel, given: str, number: int, **options: Any
) -> list[Prediction]:
    """Several continuations of one prompt, which they begin with."""
    sampling = Sampling(**options)
    tokenizer, text, state = parse_prompt(task, model, given, sampling)
    ids, names = tokenizer.ids([text])[0], tokenizer.vocabulary()
    hypotheses = continue_prompts(model, [ids], lambda chosen: state, sampling, samples=number)[0]
    return [
        Prediction(
            tokenizer.decode([*ids, *hypothesis.output]),
            len(ids) > longest_prompt(model),
            {
                "log_probability": hypothesis.log_probability,
                "tokens": [names[token] for token in hypothesis.tokens],
                "token_log_probabilities": hypothesis.token_log_probabilities,
                "finished": hypothesis.finished,
            },
        )
        for hypothesis in hypotheses
    ]


def stream_text(
    task: Language | Conditional,
    model: LanguageModel,
    given: str,
    *,
    stops: Sequence[str] = (),
    emit: Any = lambda piece: None,
    cancelled: Any = lambda: False,
    **options: Any,
) -> TextStream:
    """Continue a prompt up to a stop sequence; `emit` receives the pieces as they are written."""
    sampling = Sampling(**options)
    tokenizer, text, state = parse_prompt(task, model, given, sampling)
    ids = tokenizer.ids([text])[0][-longest_prompt(model) :]
    written = TextStream(tokenizer, ids, stops, emit)
    try:
        for token in stream_tokens(model, ids, state, sampling):
            written.add(token)
            if cancelled():
                return written
        written.end(finished=len(written.tokens) < most_tokens(model, len(ids), sampling))
    except StopSequenceError:
        pass
    return written
