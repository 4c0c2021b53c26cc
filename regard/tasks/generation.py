"""Text that a language model writes, and how well it foresees the text of others."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from regard.data.blueprints import GLUE
from regard.data.tokenizer import EOS, UNWRITTEN, Tokenizer
from regard.metrics import Tally, perplexity
from regard.models import LanguageModel, LanguageState
from regard.search import Hypothesis, Step, sample, seeded, stream, without

LONGEST_PROMPT = 500
"""Tokens of a prompt that are read: the last ones of a longer one."""
UNFINISHED = ("\ufffd", GLUE)
"""What a text ends with where its last character is not whole."""
TOGETHER = 32
"""Prompts that are continued at once."""


def continued(
    model: LanguageModel,
    prompt: Sequence[int],
    state: LanguageState,
    *,
    seed: int = 0,
    **options: Any,
) -> Hypothesis:
    """What a model writes after a prompt, from a first state; the prompt is a part of it.

    The log-probability is that of what was written; `options` are those of `continuations`.
    """
    ids = list(prompt)[-LONGEST_PROMPT:]
    found = continuations(model, [ids], lambda chosen: state, seed=seed, **options)[0][0]
    return replace(found, tokens=[*ids, *found.tokens])


@torch.no_grad()
def continuations(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    start: Callable[[list[int]], LanguageState],
    *,
    samples: int = 1,
    limit: int = 100,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    repetition_penalty: float = 1.0,
    seed: int = 0,
) -> list[list[Hypothesis]]:
    """What a model writes after each prompt, so many times; the prompts are not a part of it.

    Args:
        model: a language model.
        prompts: tokens, of which the last are read if there are too many.
        start: the first state of some prompts, by their numbers.
        samples: how many continuations of each.
        limit: tokens that each may have.
        temperature: 0 takes the likeliest token every time.
        top_k: draw among so many of the likeliest tokens.
        top_p: draw among the likeliest tokens that have this much probability together.
        repetition_penalty: lower the log-probability of tokens that were there this many times.
        seed: of the random numbers; a prompt has the same draws in any company.
    """
    read = [list(prompt)[-LONGEST_PROMPT:] for prompt in prompts]
    order = sorted(range(len(read)), key=lambda i: len(read[i]))
    found: list[list[Hypothesis]] = [[] for _ in read]
    for first in range(0, len(order), TOGETHER):
        chosen = order[first : first + TOGETHER]
        rows = [read[i] for i in chosen]
        shared = len(rows[0])
        fed, state = _read(model, [row[:shared] for row in rows], start(chosen))
        rest = [row[shared:] for row in rows]
        drawn = sample(
            step_of(model),
            state,
            bos=fed,
            eos=EOS,
            limit=[len(row) + limit for row in rest],
            samples=samples,
            prefix=rest,
            before=[row[:shared] for row in rows],
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            repetition_penalty=repetition_penalty,
            generator=[seeded(seed, str(row)) for row in rows],
        )
        for i, row, some in zip(chosen, rest, drawn, strict=True):
            found[i] = [_after(one, len(row)) for one in some]
    return found


@torch.no_grad()
def pieces(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompt: Sequence[int],
    state: LanguageState,
    *,
    limit: int = 100,
    seed: int = 0,
    **options: Any,
) -> Iterator[str]:
    """What `continued` writes after a prompt, in pieces of text as they are written.

    Characters that take several tokens come whole.
    """
    ids = list(prompt)[-LONGEST_PROMPT:]
    fed, state = _read(model, [ids], state)
    generator = seeded(seed, str(ids))
    said = tokenizer.decode(ids)
    tokens = stream(
        step_of(model),
        state,
        bos=int(fed),
        eos=EOS,
        limit=limit,
        generator=generator,
        before=ids,
        **options,
    )
    made = list(ids)
    for token in tokens:
        made.append(token)
        text = tokenizer.decode(made)
        if not text.startswith(said) or text.endswith(UNFINISHED):
            continue
        if text != said:
            yield text[len(said) :]
            said = text
    text = tokenizer.decode(made)
    if text != said and text.startswith(said):
        yield text[len(said) :]


def perplexities(losses: Any, words: Any, tokens: Any, size: Any) -> dict[str, Tally]:
    """Perplexity per word, token and byte, from the losses of parts of a text and their counts."""
    return {
        "perplexity_per_word": perplexity(losses, words, "word"),
        "perplexity_per_token": perplexity(losses, tokens, "token"),
        "perplexity_per_byte": perplexity(losses, size, "byte"),
    }


def step_of(model: LanguageModel) -> Step:
    """The model as a search wants it: one token further, with log-probabilities."""

    def step(tokens: Tensor, state: LanguageState) -> tuple[Tensor, LanguageState, None]:
        output, state = model(tokens[:, None], state)
        return output.logits[:, 0].log_softmax(-1), state, None

    return without(step, UNWRITTEN)


def _read(
    model: LanguageModel, prompts: Sequence[Sequence[int]], state: LanguageState
) -> tuple[Tensor, LanguageState]:
    """Read prompts of one length, all but their last token, which is still to be fed."""
    tokens = torch.tensor([[EOS, *prompt] for prompt in prompts])
    if tokens.shape[1] > 1:
        _, state = model(tokens[:, :-1], state)
    return tokens[:, -1], state


def _after(found: Hypothesis, given: int) -> Hypothesis:
    """A hypothesis without the first tokens, which were dictated."""
    chances = found.token_log_probabilities[given:]
    total = sum(chances)
    return replace(
        found,
        tokens=found.tokens[given:],
        token_log_probabilities=chances,
        log_probability=total,
        score=total,
    )
