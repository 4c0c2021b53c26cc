"""Sampling: each token is sampled from the model's distribution, tempered or truncated."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.devices import widest_float
from regard.search.hypotheses import Hypothesis
from regard.search.penalties import LengthPenalty, no_length_penalty
from regard.search.ranking import best_candidates
from regard.search.single_path import Choose, follow
from regard.search.step import (
    AllowedKeys,
    Limit,
    Prefix,
    Start,
    Step,
    advance,
    prepare,
    reorder,
    tensors,
)


@torch.no_grad()
def sample(
    step: Step,
    state: Any,
    *,
    bos: int | Int[Tensor, " b"],
    eos: int,
    limit: Limit,
    samples: int = 1,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    repetition_penalty: float = 1.0,
    generator: torch.Generator | Sequence[torch.Generator] | None = None,
    length_penalty: LengthPenalty = no_length_penalty,
    prefix: Prefix | None = None,
    before: Sequence[Sequence[int]] | None = None,
    allowed: AllowedKeys | None = None,
) -> list[list[Hypothesis]]:
    """Outputs sampled from the model, `samples` for each sentence, in the order of sampling.

    A token's log-probability is multiplied by `repetition_penalty` if it was produced before, or
    stands in `before` (what a sentence's state has read already), divided by `temperature` (0: the
    most likely token), kept if among the `top_k` (Fan et al. 2018,
    https://arxiv.org/abs/1805.04833) and if in the smallest set of most likely tokens that holds
    `top_p` of the probability (Holtzman et al. 2020, https://arxiv.org/abs/1904.09751).
    Log-probabilities in the result are the model's own, before all this.

    The random numbers of a sentence are generated before the search, so that sentences decoded in
    order give the same outputs in batches of any size; with a generator for each sentence they do
    in any order.
    """
    _check(samples, temperature, top_k, top_p, repetition_penalty)
    start = prepare(state, bos, eos, limit, prefix, allowed)
    b, device = len(start.tokens), start.tokens.device
    choose = _sampler(
        _uniforms(start, samples, generator),
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        repetition_penalty=repetition_penalty,
        before=[tokens for tokens in before or [()] * b for _ in range(samples)],
    )
    copies = torch.arange(b, device=device).repeat_interleave(samples)
    paths = follow(step, reorder(state, copies), start.repeat(samples), choose, length_penalty)
    return [paths[i * samples : (i + 1) * samples] for i in range(b)]


@torch.no_grad()
def stream(
    step: Step,
    state: Any,
    *,
    bos: int | Int[Tensor, " 1"],
    eos: int,
    limit: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    repetition_penalty: float = 1.0,
    generator: torch.Generator | None = None,
    before: Sequence[int] = (),
) -> Iterator[int]:
    """The tokens that `sample` gives for one sentence, each as soon as it is sampled."""
    _check(1, temperature, top_k, top_p, repetition_penalty)
    where = next((tensor.device for tensor in tensors(state)), None)
    first = bos if isinstance(bos, Tensor) else torch.tensor([bos], device=where)
    start = prepare(state, first, eos, limit)
    choose = _sampler(
        _uniforms(start, 1, generator),
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        repetition_penalty=repetition_penalty,
        before=[before],
    )
    tokens, only = start.tokens, torch.zeros_like(start.tokens)
    for position in range(limit):
        log_probabilities, state, _ = advance(step, tokens, state, None)
        tokens = choose(log_probabilities, position, only, tokens)
        if int(tokens) == eos:
            return
        yield int(tokens)


def text_generator(seed: int, text: str) -> torch.Generator:
    """A random generator for one text: its numbers are the same in any batch and order."""
    digest = sha256(f"{seed} {text}".encode("utf-8", "replace")).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8]) >> 1)


def support(
    logits: Float[Tensor, "n v"], top_k: int | None, top_p: float
) -> tuple[Float[Tensor, "n c"], Int[Tensor, "n c"] | None]:
    """Probabilities (not yet normalised) of the tokens that may be sampled, and which they are.

    None stands for all tokens in their own order. Among equals the lower token is kept.
    """
    tokens = None
    if top_k is not None:
        logits, tokens = best_candidates(logits, top_k)
    elif top_p < 1:
        logits, tokens = logits.sort(dim=1, descending=True, stable=True)
    probabilities = logits.to(widest_float(logits.device)).softmax(1)
    if top_p < 1:
        before = probabilities.cumsum(1) - probabilities
        probabilities = probabilities.where(before < top_p, 0.0)
    return probabilities, tokens


def sample_index(
    probabilities: Float[Tensor, "n c"], uniforms: Float[Tensor, " n"]
) -> Int[Tensor, " n"]:
    """The place where the cumulative distribution first exceeds a uniform number in [0, 1)."""
    cumulative = probabilities.cumsum(1)
    return torch.searchsorted(
        cumulative, uniforms[:, None] * cumulative[:, -1:], right=True
    ).squeeze(1)


def _sampler(
    uniforms: Float[Tensor, "r t"],
    *,
    temperature: float,
    top_k: int | None,
    top_p: float,
    repetition_penalty: float,
    before: Sequence[Sequence[int]],
) -> Choose:
    """The choice of `follow`: it samples the next token of each row.

    Row r of `uniforms` belongs to the r-th sample of the search, however many rows have left the
    batch since: `choose` gets the numbers of the rows that are left as `sentences`.
    """
    # Which tokens each sample has produced or read, bool [r, v]: made at the first step, which
    # shows the size of the vocabulary, then marked with the token that was fed to each step.
    seen: list[Tensor] = []

    def choose(
        log_probabilities: Float[Tensor, "n v"],
        position: int,
        sentences: Int[Tensor, " n"],
        tokens: Int[Tensor, " n"],
    ) -> Int[Tensor, " n"]:
        logits = log_probabilities
        if repetition_penalty != 1:
            if position == 0:
                shape = len(uniforms), logits.shape[1]
                seen.append(torch.zeros(shape, dtype=torch.bool, device=logits.device))
                for row, read in enumerate(before):
                    seen[0][row, list(read)] = True
            else:
                seen[0][sentences, tokens] = True
            logits = torch.where(seen[0][sentences], logits * repetition_penalty, logits)
        most, best = logits.max(1, keepdim=True)
        if temperature < torch.finfo(logits.dtype).tiny:  # 0, or division would overflow
            return best.squeeze(1)
        probabilities, kept = support((logits - most) / temperature, top_k, top_p)
        place = sample_index(probabilities, uniforms[sentences, position])
        return place if kept is None else kept.gather(1, place[:, None]).squeeze(1)

    return choose


def _uniforms(
    start: Start, samples: int, generator: torch.Generator | Sequence[torch.Generator] | None
) -> Float[Tensor, "r t"]:
    b = len(start.tokens)
    each = list(generator) if isinstance(generator, Sequence) else [generator] * b
    if len(each) != b:
        raise ValueError(f"one generator per sentence is needed: {len(each)} for {b} sentences")
    first = each[0] if each else None
    device = torch.device("cpu") if first is None else first.device
    numbers = torch.zeros(b * samples, start.longest, dtype=torch.float64, device=device)
    given = (start.prefix >= 0).sum(1).repeat_interleave(samples).tolist()
    for row, limit in enumerate(start.limits.repeat_interleave(samples).tolist()):
        # The prefix takes no random numbers, so that what follows is the same whether a text was
        # given as a prefix or read into the state beforehand.
        numbers[row, given[row] : limit].uniform_(generator=each[row // samples])
    return numbers.to(start.tokens.device, widest_float(start.tokens.device))


def _check(
    samples: int, temperature: float, top_k: int | None, top_p: float, repetition_penalty: float
) -> None:
    wrong = {
        f"samples must be at least 1, got {samples}": samples < 1,
        f"temperature must be at least 0, got {temperature}": not temperature >= 0,
        f"top_k must be at least 1, got {top_k}": top_k is not None and top_k < 1,
        f"top_p must be above 0 and at most 1, got {top_p}": not 0 < top_p <= 1,
        f"repetition_penalty must be above 0, got {repetition_penalty}": not repetition_penalty > 0,
    }
    for message, holds in wrong.items():
        if holds:
            raise ValueError(message)
