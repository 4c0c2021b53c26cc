"""Completions in the format of OpenAI's API, whole or as a stream.

https://platform.openai.com/docs/api-reference/completions
"""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from regard.inference.run import Run
from regard.serve.http.strict_json import dumps
from regard.serve.limits import Limits
from regard.serve.served_models import ServedModels
from regard.tasks.shared.json_schema import (
    Schema,
    array,
    either,
    integer,
    nullable,
    number,
    record,
    text,
)

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
MAX_SEED = 2**31 - 1


def request_schema(models: ServedModels, limits: Limits) -> Schema:
    """A request; unsupported members are accepted only with the value that has no effect."""
    prompt = text(limits.text_characters, title="prompt")
    stop = text(100, minLength=1)
    ids = [model.id for model in models.select(lambda model: model.continues_prompts)]
    return record(
        {
            "model": text(enum=ids),
            "prompt": either(prompt, array(prompt, least=1, most=limits.completions)),
        },
        {
            "max_tokens": nullable(integer(1, limits.generated_tokens)),
            "temperature": nullable(number(0, 2)),
            "top_p": nullable(number(0.01, 1)),
            "n": nullable(integer(1, limits.completions)),
            "best_of": nullable(integer(1, 1)),
            "seed": nullable(integer(0, MAX_SEED)),
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


class Completion(NamedTuple):
    """One continuation of a prompt."""

    prompt: str
    generated: Any
    """The stream that `TextGeneration.stream` returned: its prompt, tokens, text and reason."""


@dataclass(frozen=True)
class CompletionRequest:
    """A request with its defaults filled in."""

    model: str
    prompts: list[str]
    n: int
    max_tokens: int
    stops: list[str]
    echo: bool
    seed: int
    sampling: dict[str, float]
    include_usage: bool
    """Whether a stream ends with the number of tokens."""

    @classmethod
    def from_body(cls, body: dict[str, Any]) -> "CompletionRequest":
        """From a body that matches the schema; without a seed, one is chosen at random."""

        def member(name: str, default: Any) -> Any:
            value = body.get(name)
            return default if value is None else value

        prompt, stop = body["prompt"], member("stop", [])
        return cls(
            model=body["model"],
            prompts=[prompt] if isinstance(prompt, str) else prompt,
            n=int(member("n", 1)),
            max_tokens=int(member("max_tokens", 16)),
            stops=[stop] if isinstance(stop, str) else stop,
            echo=member("echo", False),
            seed=int(member("seed", uuid.uuid4().int % (MAX_SEED + 1))),
            sampling={
                "temperature": float(member("temperature", 1.0)),
                "top_p": float(member("top_p", 1.0)),
            },
            include_usage=member("stream_options", {}).get("include_usage", False),
        )

    def generate(
        self,
        run: Run,
        cancelled: Callable[[], bool],
        on_text: Callable[[int, str], None] = lambda index, piece: None,
        on_end: Callable[[int, str], None] = lambda index, reason: None,
    ) -> list[Completion]:
        """`n` completions of each prompt, numbered in this order, each with its own seed.

        Args:
            run: a run that generates text.
            cancelled: whether to stop; asked after each token.
            on_text: receives the number of a completion and the next piece of its text.
            on_end: receives the number of a completion and why it ended.
        """
        generation = run.spec.generation
        assert generation is not None  # the schema accepts no other models
        completions: list[Completion] = []
        for prompt in self.prompts:
            for sample in range(self.n):
                index = len(completions)
                if self.echo:
                    on_text(index, prompt)
                generated = generation.stream(
                    run.task,
                    run.model,
                    prompt,
                    tokens=self.max_tokens,
                    stops=self.stops,
                    emit=lambda piece, index=index: on_text(index, piece),
                    cancelled=cancelled,
                    seed=(self.seed + sample) % (MAX_SEED + 1),
                    **self.sampling,
                )
                on_end(index, generated.reason)
                completions.append(Completion(prompt, generated))
        return completions

    def usage(self, completions: list[Completion]) -> dict[str, int]:
        """Numbers of tokens; a prompt with several completions counts once."""
        prompt_tokens = sum(len(one.generated.prompt) for one in completions[:: self.n])
        completion_tokens = sum(len(one.generated.tokens) for one in completions)
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        }

    def document(self, completions: list[Completion]) -> dict[str, Any]:
        """All completions as one response."""
        choices = [
            choice(
                index,
                (completion.prompt if self.echo else "") + completion.generated.text,
                completion.generated.reason,
            )
            for index, completion in enumerate(completions)
        ]
        return ResponseHeader.create(self.model).document(choices, self.usage(completions))


@dataclass(frozen=True)
class ResponseHeader:
    """The members that all events of one response share."""

    model: str
    id: str
    created: int

    @classmethod
    def create(cls, model: str) -> "ResponseHeader":
        """The header of a new response."""
        return cls(model, f"cmpl-{uuid.uuid4().hex}", int(time.time()))

    def document(
        self, choices: list[dict[str, Any]], usage: dict[str, int] | None = None
    ) -> dict[str, Any]:
        """A response, or the part of it that one event holds."""
        document = {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }
        return document | ({"usage": usage} if usage is not None else {})

    def event(self, choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
        """A part of the response as a server-sent event."""
        return b"data: %s\n\n" % dumps(self.document(choices, usage))


def choice(index: int, piece: str, reason: str | None) -> dict[str, Any]:
    """One completion, or a piece of one."""
    return {"text": piece, "index": index, "logprobs": None, "finish_reason": reason}
