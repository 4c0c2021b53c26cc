"""What a language model is asked to go on from: a text, and perhaps something it is about."""

from typing import Any, NamedTuple

from torch import nn

from regard.data.tokenizer import Tokenizer
from regard.models import LanguageModel, LanguageState
from regard.tasks.conditional import Conditional
from regard.tasks.language import Language


class Prompt(NamedTuple):
    """The text to go on from, and the state before its first token."""

    model: LanguageModel
    tokenizer: Tokenizer
    text: str
    state: LanguageState


def prompted(task: Any, model: nn.Module, given: str) -> Prompt:
    """A prompt as it was given; a text about a label or vector has that before a tab."""
    if isinstance(model, LanguageModel) and isinstance(task, Language):
        return Prompt(model, task.tokenizer, given, model.start(1))
    if isinstance(model, LanguageModel) and isinstance(task, Conditional):
        about, text = task._asked(given)
        return Prompt(model, task.tokenizer, text, task._start(model, task._tensor([about])))
    raise ValueError(f"a {type(task).__name__} writes no text of its own")
