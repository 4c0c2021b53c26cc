"""A language model that writes while somebody reads: token by token, and stops when told to."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from regard.data.tokenizer import EOS
from regard.inference.runs import Run
from regard.models import LanguageModel, LanguageState
from regard.search import seeded, stream
from regard.tasks.generation import LONGEST_PROMPT, UNFINISHED, step_of
from regard.tasks.language import Language


class Enough(Exception):  # noqa: N818
    """Nothing more is to be written."""


@dataclass
class Writing:
    """One continuation, as far as it has come."""

    task: Language
    prompt: list[int]
    stops: Sequence[str]
    emit: Callable[[str], None]
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    """What was written and handed out."""
    reason: str = "length"

    def __post_init__(self) -> None:
        self.before = self.task.tokenizer.decode(self.prompt)

    def add(self, token: int) -> None:
        """One more token; text goes out as soon as it can no longer change."""
        self.tokens.append(token)
        now = self._continuation()
        if self._stopped(now):
            raise Enough
        held = max(
            [1 if now.endswith(UNFINISHED) else 0, *(_overlap(now, stop) for stop in self.stops)]
        )
        self._hand_out(now[: len(now) - held])

    def end(self, finished: bool) -> None:
        """Hand out what was held back."""
        now = self._continuation()
        if not self._stopped(now):
            self.reason = "stop" if finished else "length"
            self._hand_out(now)

    def _stopped(self, now: str) -> bool:
        places = [place for stop in self.stops if (place := now.find(stop)) >= 0]
        if places:
            self._hand_out(now[: min(places)])
            self.reason = "stop"
        return bool(places)

    def _continuation(self) -> str:
        whole = self.task.tokenizer.decode([*self.prompt, *self.tokens])
        if whole.startswith(self.before):
            return whole[len(self.before) :]
        return self.task.tokenizer.decode(self.tokens)

    def _hand_out(self, now: str) -> None:
        if len(now) > len(self.text):
            self.emit(now[len(self.text) :])
            self.text = now


def _overlap(text: str, stop: str) -> int:
    """How much of the end of a text may be the beginning of a stop.

    >>> _overlap("one, two", "wow"), _overlap("one", "x")
    (2, 0)
    """
    sizes = range(min(len(text), len(stop)), 0, -1)
    return next((n for n in sizes if text.endswith(stop[:n])), 0)


def write(
    run: Run,
    prompt: str,
    *,
    limit: int,
    stops: Sequence[str] = (),
    emit: Callable[[str], None] = lambda piece: None,
    cancelled: Callable[[], bool] = lambda: False,
    seed: int = 0,
    **options: Any,
) -> Writing:
    """Go on from a prompt for at most `limit` tokens; `options` are those of sampling."""
    task, model = run.task, run.model
    assert isinstance(task, Language)
    assert isinstance(model, LanguageModel)
    ids = task.tokenizer.ids([prompt])[0][-LONGEST_PROMPT:]
    writing = Writing(task, ids, stops, emit)
    first, state = _read(model, ids)
    tokens = stream(
        step_of(model),
        state,
        bos=first,
        eos=EOS,
        limit=limit,
        generator=seeded(seed, str(ids)),
        before=ids,
        **options,
    )
    try:
        for token in tokens:
            writing.add(token)
            if cancelled():
                return writing
        writing.end(finished=len(writing.tokens) < limit)
    except Enough:
        pass
    return writing


@torch.no_grad()
def _read(model: LanguageModel, ids: list[int]) -> tuple[int, LanguageState]:
    """Read a prompt, all but its last token, which is still to be fed."""
    state = model.start(1)
    if ids:
        _, state = model(torch.tensor([[EOS, *ids[:-1]]]), state)
    return (ids or [EOS])[-1], state
