"""One step of a decoder, and the state that passes from step to step.

A step is any function

    step(tokens [n], state) -> (log_probabilities [n, v], state, weights or None)

that reads the last token of n hypotheses and says how likely each next token is. Its `state` is a
nest of tuples, lists and dicts of tensors whose first axis is the n hypotheses; `weights` are
attention weights by name, [n, …, k]. A step whose attention can be pinned also takes the keyword
`allowed`, a bool tensor [n, k]: the keys that this position may attend to.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Weights = dict[str, Tensor]
"""Attention weights by name."""
Step = Callable[..., tuple[Tensor, Any, Weights | None]]
"""`step(tokens, state)` gives log-probabilities of the next token, the new state, and weights."""
Limit = int | Sequence[int] | Int[Tensor, " b"]
Prefix = Sequence[Sequence[int]]
AllowedKeys = Mapping[int, Bool[Tensor, "b k"]]
"""For some positions of the output, the keys that each sentence may attend to there."""


@dataclass(frozen=True)
class PerSentence:
    """A part of the state that all hypotheses of a sentence share, such as the encoder's states.

    It has a row for each hypothesis like the rest, but is not copied when hypotheses only change
    places within their sentence.
    """

    value: Any


@dataclass(frozen=True)
class Shared:
    """A part of the state that is not arranged by hypothesis: it is passed on as it is."""

    value: Any


class StepResult(NamedTuple):
    """The result of one step, checked."""

    log_probabilities: Float[Tensor, "n v"]
    state: Any
    weights: Weights


def advance(
    step: Step, tokens: Int[Tensor, " n"], state: Any, allowed: Bool[Tensor, "n k"] | None
) -> StepResult:
    """Take one step, and check that its rows are the hypotheses that were fed."""
    if allowed is None:
        log_probabilities, state, weights = step(tokens, state)
    else:
        log_probabilities, state, weights = step(tokens, state, allowed=allowed)
    if log_probabilities.ndim != 2 or len(log_probabilities) != len(tokens):
        raise ValueError(
            f"a step over {len(tokens)} hypotheses must return log-probabilities "
            f"[{len(tokens)}, v], got {list(log_probabilities.shape)}"
        )
    if log_probabilities.dtype in (torch.float16, torch.bfloat16):
        log_probabilities = log_probabilities.float()
    return StepResult(log_probabilities, state, weights or {})


def forbid_tokens(step: Step, tokens: Sequence[int]) -> Step:
    """The same step with some tokens forbidden; the others keep their log-probabilities.

    >>> step = forbid_tokens(lambda tokens, state: (torch.zeros(1, 4), state, None), [0, 2])
    >>> step(torch.tensor([1]), None)[0]
    tensor([[-inf, 0., -inf, 0.]])
    """
    columns = torch.tensor(tokens)

    def restricted(fed: Tensor, state: Any, **options: Any) -> tuple[Tensor, Any, Weights | None]:
        log_probabilities, state, weights = step(fed, state, **options)
        on_device = columns.to(log_probabilities.device)
        return log_probabilities.index_fill(1, on_device, float("-inf")), state, weights

    return restricted


class RepeatState(NamedTuple):
    """The state of a step, and the tokens that each hypothesis was fed so far."""

    inner: Any
    fed: Int[Tensor, "n t"]


def forbid_repeats(step: Step, length: int, after: int = 0) -> Step:
    """The same step over a `RepeatState`: no hypothesis writes the same `length` tokens twice.

    Nothing is forbidden before `after` tokens are written.

    Paulus, Xiong and Socher, 2018, https://arxiv.org/abs/1705.04304, section 2.5
    """
    if length < 1:
        raise ValueError(f"expected a length of 1 or more, got {length}")

    def restricted(
        fed: Tensor, state: RepeatState, **options: Any
    ) -> tuple[Tensor, Any, Weights | None]:
        log_probabilities, inner, weights = step(fed, state.inner, **options)
        read = torch.cat([state.fed, fed[:, None]], 1)
        # the first token is not written, but what the search begins with
        written = read[:, 1:]
        if written.shape[1] >= max(length, after):
            windows = written.unfold(1, length, 1)
            last = written[:, None, written.shape[1] - (length - 1) :]
            row, place = (windows[..., :-1] == last).all(-1).nonzero(as_tuple=True)
            log_probabilities = log_probabilities.clone()
            log_probabilities[row, windows[row, place, -1]] = float("-inf")
        return log_probabilities, RepeatState(inner, read), weights

    return restricted


def check_vocabulary(tokens: Int[Tensor, " n"], log_probabilities: Float[Tensor, "n v"]) -> Tensor:
    """The tokens that a caller demands, after a check that they are in the vocabulary."""
    v = log_probabilities.shape[1]
    if (tokens >= v).any() or (tokens < 0).any():
        outside = tokens[(tokens >= v) | (tokens < 0)].tolist()
        raise ValueError(f"tokens {outside} are not in the vocabulary of {v}, counted from 0")
    return tokens


def reorder(state: Any, index: Int[Tensor, " n"], moved: bool = True) -> Any:
    """The state of the hypotheses `index`; numbers, None and tensors without axes stay as they are.

    `moved` says whether any row now belongs to another sentence than before; if none does, parts
    that are the same for all hypotheses of a sentence need not be copied.
    """
    if isinstance(state, Tensor):
        return state.index_select(0, index) if state.ndim else state
    if isinstance(state, PerSentence):
        return PerSentence(reorder(state.value, index)) if moved else state
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return type(state)(*(reorder(part, index, moved) for part in state))
    if isinstance(state, tuple | list):
        return type(state)(reorder(part, index, moved) for part in state)
    if isinstance(state, dict):
        return {name: reorder(part, index, moved) for name, part in state.items()}
    if state is None or isinstance(state, bool | int | float | str | Shared):
        return state
    raise ValueError(
        "a state is made of tensors, tuples, lists, dicts, numbers and None, "
        f"not of {type(state).__name__}"
    )


def tensors(state: Any) -> Iterator[Tensor]:
    """The tensors of a state that have a row for each hypothesis."""
    if isinstance(state, Tensor):
        if state.ndim:
            yield state
    elif isinstance(state, PerSentence):
        yield from tensors(state.value)
    elif isinstance(state, tuple | list | dict):
        for part in state.values() if isinstance(state, dict) else state:
            yield from tensors(part)


@dataclass(frozen=True)
class Start:
    """Where each sentence starts, and how far it may go."""

    tokens: Int[Tensor, " b"]
    eos: int
    limits: Int[Tensor, " b"]
    shortest: int
    longest: int
    prefix: Int[Tensor, "b p"]
    allowed: AllowedKeys

    def required(self, position: int, sentences: Int[Tensor, " n"]) -> Int[Tensor, " n"] | None:
        """The tokens that the prefix requires at a position, −1 where it requires none."""
        if position >= self.prefix.shape[1]:
            return None
        return self.prefix[:, position].index_select(0, sentences)

    def repeat(self, times: int) -> "Start":
        """Each sentence several times over."""
        return Start(
            tokens=self.tokens.repeat_interleave(times),
            eos=self.eos,
            limits=self.limits.repeat_interleave(times),
            shortest=self.shortest,
            longest=self.longest,
            prefix=self.prefix.repeat_interleave(times, 0),
            allowed={at: mask.repeat_interleave(times, 0) for at, mask in self.allowed.items()},
        )

    def allowed_at(self, position: int, sentences: Int[Tensor, " n"]) -> Bool[Tensor, "n k"] | None:
        """The keys that a position may attend to, None where nothing is pinned."""
        mask = self.allowed.get(position)
        return None if mask is None else mask.index_select(0, sentences)


def prepare(
    state: Any,
    bos: int | Int[Tensor, " b"],
    eos: int,
    limit: Limit,
    prefix: Prefix | None = None,
    allowed: AllowedKeys | None = None,
) -> Start:
    """Check the arguments that all searches share, and bring them to one form."""
    b, device = sentences_of(state, bos)
    tokens = bos.long() if isinstance(bos, Tensor) else torch.full((b,), bos, device=device)
    limits = torch.as_tensor(limit, dtype=torch.long, device=device)
    if limits.ndim and len(limits) != b:
        raise ValueError(f"one limit per sentence is needed: {len(limits)} for {b} sentences")
    limits = limits.expand(b)
    shortest, longest = (int(limits.min()), int(limits.max())) if b else (1, 1)
    if shortest < 1:
        raise ValueError(f"a sentence needs a limit of at least one token, got {shortest}")
    for position, mask in (allowed or {}).items():
        if len(mask) != b:
            raise ValueError(
                f"allowed keys at position {position} have {len(mask)} rows for {b} sentences"
            )
    table = _prefix_table(prefix or [()] * b, b, eos, limits.tolist()).to(device)
    return Start(
        tokens=tokens,
        eos=eos,
        limits=limits,
        shortest=shortest,
        longest=longest,
        prefix=table,
        allowed={at: mask.to(device) for at, mask in (allowed or {}).items()},
    )


def sentences_of(state: Any, bos: int | Int[Tensor, " b"]) -> tuple[int, torch.device]:
    """How many sentences a state holds, and where it is."""
    leaves = [bos] if isinstance(bos, Tensor) else []
    leaves.extend(tensors(state))
    if not leaves:
        raise ValueError(
            "an empty state does not say how many sentences there are: give bos as a tensor [b]"
        )
    if any(len(leaf) != len(leaves[0]) for leaf in leaves):
        shapes = [list(leaf.shape) for leaf in leaves]
        raise ValueError(f"all of the state needs the batch axis first, got the shapes {shapes}")
    return len(leaves[0]), leaves[0].device


def pin_attention(
    pins: Sequence[Mapping[int, Sequence[int]] | None], keys: int
) -> dict[int, Bool[Tensor, "b k"]]:
    """The keys that each position may attend to, from {position: keys} of each sentence.

    A position that a sentence does not pin may attend to every key.

    >>> pin_attention([{0: [2]}, None], keys=3)
    {0: tensor([[False, False,  True], [ True,  True,  True]])}
    """
    masks: dict[int, Tensor] = {}
    for sentence, pin in enumerate(pins):
        for position, pinned in (pin or {}).items():
            if position < 0 or not all(0 <= key < keys for key in pinned):
                raise ValueError(
                    f"sentence {sentence} pins position {position} to {list(pinned)}, "
                    f"but there are {keys} keys, counted from 0"
                )
            mask = masks.setdefault(position, torch.ones(len(pins), keys, dtype=torch.bool))
            mask[sentence] = False
            mask[sentence, list(pinned)] = True
    return masks


def _prefix_table(prefix: Prefix, b: int, eos: int, limits: list[int]) -> Int[Tensor, "b p"]:
    if len(prefix) != b:
        raise ValueError(f"one prefix per sentence is needed: {len(prefix)} for {b} sentences")
    for sentence, (tokens, limit) in enumerate(zip(prefix, limits, strict=True)):
        if len(tokens) > limit:
            raise ValueError(
                f"the prefix of sentence {sentence} has {len(tokens)} tokens, over its limit of "
                f"{limit}"
            )
        if eos in list(tokens)[:-1]:
            raise ValueError(
                f"the prefix of sentence {sentence} continues after its end token {eos}"
            )
    table = torch.full((b, max(map(len, prefix), default=0)), -1)
    for sentence, tokens in enumerate(prefix):
        table[sentence, : len(tokens)] = torch.as_tensor(tokens, dtype=torch.long)
    return table
