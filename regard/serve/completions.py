"""Continuations in the shape of OpenAI's completions, whole or as a stream.

https://platform.openai.com/docs/api-reference/completions
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from regard.inference.runs import Run
from regard.serve.continuation import Writing, write
from regard.serve.limits import Limits
from regard.serve.plain import dumps
from regard.serve.schemas import (
    Schema,
    array,
    either,
    integer,
    nullable,
    number,
    record,
    text,
)
from regard.serve.shelf import Shelf

USAGE = record(
    {name: {"type": "integer"} for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
)
CHOICE = record(
    {
        "text": text(),
        "index": {"type": "integer"},
        "logprobs": {"type": "null"},
        "finish_reason": {"type": ["string", "null"]},
    }
)
COMPLETION = record(
    {
        "id": text(),
        "object": text(enum=["text_completion"]),
        "created": {"type": "integer"},
        "model": text(),
        "choices": array(CHOICE),
    },
    {"usage": nullable(USAGE)},
)


def request_schema(shelf: Shelf, limits: Limits) -> Schema:
    """A request; members that change nothing here are taken where they ask for nothing."""
    prompt = text(limits.text)
    stop = text(100, minLength=1)
    models = [one.id for one in shelf.where(lambda one: one.writes)]
    return record(
        {
            "model": text(enum=models),
            "prompt": either(prompt, array(prompt, least=1, most=limits.choices)),
        },
        {
            "max_tokens": nullable(integer(1, limits.written)),
            "temperature": nullable(number(0, 2)),
            "top_p": nullable(number(0.01, 1)),
            "n": nullable(integer(1, limits.choices)),
            "best_of": nullable(integer(1, 1)),
            "seed": nullable(integer(0, 2**31 - 1)),
            "stop": either({"type": "null"}, stop, array(stop, most=4)),
            "echo": nullable({"type": "boolean"}),
            "stream": nullable({"type": "boolean"}),
            "stream_options": nullable(record({}, {"include_usage": {"type": "boolean"}})),
            "frequency_penalty": nullable(number(0, 0)),
            "presence_penalty": nullable(number(0, 0)),
            "logprobs": {"type": "null"},
            "suffix": {"type": "null"},
            "user": text(1000),
        },
    )


@dataclass(frozen=True)
class Wanted:
    """What a request asks a model to write."""

    model: str
    prompts: list[str]
    n: int
    limit: int
    stops: list[str]
    echo: bool
    seed: int
    sampling: dict[str, float]
    usage: bool
    """Whether a stream ends with how much was read and written."""

    @classmethod
    def of(cls, body: dict[str, Any]) -> "Wanted":
        """From a request that was found right; a seed by chance unless one is given."""

        def given(name: str, otherwise: Any) -> Any:
            found = body.get(name)
            return otherwise if found is None else found

        prompt, stop = body["prompt"], given("stop", [])
        return cls(
            model=body["model"],
            prompts=[prompt] if isinstance(prompt, str) else prompt,
            n=int(given("n", 1)),
            limit=int(given("max_tokens", 16)),
            stops=[stop] if isinstance(stop, str) else stop,
            echo=given("echo", False),
            seed=int(given("seed", uuid.uuid4().int % 2**31)),
            sampling={
                "temperature": float(given("temperature", 1.0)),
                "top_p": float(given("top_p", 1.0)),
            },
            usage=given("stream_options", {}).get("include_usage", False),
        )

    def write(
        self,
        run: Run,
        cancelled: Callable[[], bool],
        emit: Callable[[int, str], None] = lambda index, piece: None,
        close: Callable[[int, str], None] = lambda index, reason: None,
    ) -> list[tuple[str, Writing]]:
        """Each continuation of each prompt, numbered in this order; each with a seed of its own."""
        made: list[tuple[str, Writing]] = []
        for prompt in self.prompts:
            for number_ in range(self.n):
                index = len(made)
                if self.echo:
                    emit(index, prompt)
                writing = write(
                    run,
                    prompt,
                    limit=self.limit,
                    stops=self.stops,
                    emit=lambda piece, index=index: emit(index, piece),  # type: ignore[misc]
                    cancelled=cancelled,
                    seed=(self.seed + number_) % 2**31,
                    **self.sampling,
                )
                close(index, writing.reason)
                made.append((prompt, writing))
        return made

    def usage_of(self, made: list[tuple[str, Writing]]) -> dict[str, int]:
        """Tokens read and written; a prompt with several continuations was read once."""
        read = sum(len(writing.prompt) for _, writing in made[:: self.n])
        written = sum(len(writing.tokens) for _, writing in made)
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        }


@dataclass(frozen=True)
class Answer:
    """The frame that all parts of one answer share."""

    model: str
    id: str
    created: int

    @classmethod
    def begin(cls, model: str) -> "Answer":
        """A new answer."""
        return cls(model, f"cmpl-{uuid.uuid4().hex}", int(time.time()))

    def document(
        self, choices: list[dict[str, Any]], usage: dict[str, int] | None = None
    ) -> dict[str, Any]:
        """An answer, or a part of one."""
        frame = {"id": self.id, "object": "text_completion", "created": self.created}
        found = {**frame, "model": self.model, "choices": choices}
        return found | ({"usage": usage} if usage is not None else {})

    def event(self, *parts: Any) -> bytes:
        """A part as a server-sent event."""
        return b"data: %s\n\n" % dumps(self.document(*parts))


def choice(index: int, piece: str, reason: str | None) -> dict[str, Any]:
    """One continuation, or a piece of one."""
    return {"text": piece, "index": index, "logprobs": None, "finish_reason": reason}


def whole(wanted: Wanted, made: list[tuple[str, Writing]]) -> dict[str, Any]:
    """All continuations in one document."""
    choices = [
        choice(i, (prompt if wanted.echo else "") + writing.text, writing.reason)
        for i, (prompt, writing) in enumerate(made)
    ]
    return Answer.begin(wanted.model).document(choices, wanted.usage_of(made))
