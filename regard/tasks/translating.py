"""Translations of texts: search, sampling, forced decoding, pinned attention, unknown words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.batches import in_order, pad
from regard.data.tokenizer import BOS, EOS, UNK, UNWRITTEN, Tokenizer
from regard.data.words import token_to_word
from regard.errors import RegardError
from regard.models import Translator, TranslatorConfig
from regard.options import at_least
from regard.search import (
    Coverage,
    Hypothesis,
    PerSentence,
    Step,
    beam,
    forced,
    greedy,
    pinned,
    power,
    sample,
    seeded,
    without,
)
from regard.tasks.sides import word_spans, written
from regard.tasks.task import Prediction

BUDGET = 4096
"""Source tokens that are decoded at once, each counted once a hypothesis."""
Pins = Mapping[int, Sequence[int]]
"""For positions of the target, the source tokens that may be looked at there."""


@runtime_checkable
class Sides(Protocol):
    """What translating needs of a task."""

    @property
    def config(self) -> TranslatorConfig:
        """How the model is built."""
        ...

    @property
    def source(self) -> Tokenizer:
        """The tokenizer of what comes in."""
        ...

    @property
    def target(self) -> Tokenizer:
        """The tokenizer of what goes out."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens of a source that are read."""
        ...


@dataclass(frozen=True)
class Decoding:
    """How a translation is looked for."""

    beam: int = 5
    """Width of the beam; 1 takes the likeliest token every time."""
    nbest: int = 1
    """How many translations of each text."""
    length_penalty: float = 1.0
    """α in log p(y) / |y|^α, by which finished translations are compared; 0 for log p(y)."""
    coverage: float = 0.0
    """β of the penalty for source words that were not looked at (Wu et al., 2016)."""
    temperature: float | None = None
    """Draw each token, from a distribution this much flatter, rather than search."""
    top_k: int | None = None
    """Draw among so many of the likeliest tokens."""
    top_p: float | None = None
    """Draw among the likeliest tokens that have this much probability together."""
    repetition_penalty: float | None = None
    """Draw, and lower the log-probability of tokens that were there before this many times."""
    seed: int = 0
    """Of the random numbers; a text has the same draw wherever it stands."""
    replace_unknown: bool = False
    """Put the most attended source token where the model wrote an unknown one."""
    tokens: bool = False
    """Tell the tokens and their log-probabilities."""
    weights: bool = False
    """Tell the attention weights."""
    exact: bool = False
    """Search until no better translation can come, not until a beam full of them has ended."""

    def __post_init__(self) -> None:
        at_least(self, beam=1, nbest=1, coverage=0, temperature=0, top_k=1)
        for name, limit in (("length_penalty", 10), ("coverage", 1000)):
            if not abs(getattr(self, name)) <= limit:
                raise RegardError(
                    f"option {name}: expected {limit} at most, got {getattr(self, name)}"
                )
        if self.nbest > self.beam and not self.drawn:
            raise RegardError(f"option nbest: expected {self.beam} at most, the width of the beam")
        for name in ("top_p", "repetition_penalty"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= (1 if name == "top_p" else float("inf")):
                most = " and at most 1" if name == "top_p" else ""
                raise RegardError(f"option {name}: expected above 0{most}, got {value}")

    @property
    def drawn(self) -> bool:
        """Whether translations are drawn at random."""
        return any(v is not None for v in (self.temperature, self.top_k, self.top_p)) or (
            self.repetition_penalty is not None
        )


def predict(
    task: Sides,
    model: nn.Module,
    texts: Sequence[str],
    decoding: Decoding,
    prefixes: Sequence[str] | None = None,
    force: Pins | None = None,
) -> list[Prediction]:
    """The best translation of each text, its score, and what else was asked for.

    Args:
        task: the tokenizers and limits.
        model: a translator.
        texts: what to translate.
        decoding: how.
        prefixes: what each translation begins with.
        force: for positions of the target, in tokens, the source words that it may look at there.
    """
    encoded = task.source.encode_batch(texts)
    found = decode(
        task,
        model,
        texts,
        decoding,
        prefixes=None if prefixes is None else task.target.ids(prefixes),
        pins=None if force is None else [word_pins(task, text, force) for text in texts],
        need_weights=decoding.weights or decoding.replace_unknown,
    )
    names = task.target.vocabulary() if decoding.tokens else None
    made = []
    for source, hypotheses in zip(encoded, found, strict=True):
        tokens = source.tokens[: task.max_tokens]
        records = [_record(task.target, one, tokens, decoding, names) for one in hypotheses]
        best = {name: value for name, value in records[0].items() if name != "output"}
        if decoding.weights:
            best["source_tokens"] = tokens
        if decoding.nbest > 1:
            best["nbest"] = records
        made.append(Prediction(records[0]["output"], len(source.ids) > task.max_tokens, best))
    return made


@torch.no_grad()
def decode(
    task: Sides,
    model: nn.Module,
    texts: Sequence[str],
    decoding: Decoding,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    pins: Sequence[Pins | None] | None = None,
    need_weights: bool = False,
    budget: int = BUDGET,
) -> list[list[Hypothesis]]:
    """The translations of each text, in order, best first; drawn ones as they were drawn.

    Args:
        task: the tokenizers and limits.
        model: a translator.
        texts: what to translate.
        decoding: how.
        prefixes: the tokens that each translation begins with.
        pins: where positions of each translation may look.
        need_weights: whether hypotheses keep their attention.
        budget: source tokens at once.
    """
    ids = _sources(task, texts)
    found: list[list[Hypothesis]] = [[] for _ in ids]
    rows = decoding.nbest if decoding.drawn else decoding.beam
    for chosen in _batches(ids, max(1, budget // rows)):
        batch = _Batch.of(task, model, [ids[i] for i in chosen], need_weights)
        given = None if prefixes is None else [list(prefixes[i]) for i in chosen]
        look = pinned([pins[i] for i in chosen], batch.keys) if pins is not None else None
        generators = [seeded(decoding.seed, texts[i]) for i in chosen]
        results = _search(task, batch, decoding, given, look, generators)
        for i, result in zip(chosen, results, strict=True):
            found[i] = result
    return found


@torch.no_grad()
def score(
    task: Sides,
    model: nn.Module,
    texts: Sequence[str],
    targets: Sequence[Sequence[int]],
    *,
    finished: bool = True,
    pins: Sequence[Pins | None] | None = None,
    need_weights: bool = False,
    budget: int = BUDGET,
) -> list[Hypothesis]:
    """log p(y | x) of given targets, with the end token unless `finished` is False."""
    ids = _sources(task, texts)
    rows = [np.array([*row, EOS] if finished else row, dtype=np.int64) for row in targets]
    found: list[Hypothesis | None] = [None] * len(ids)
    for chosen in _batches(ids, budget, [len(row) for row in rows]):
        batch = _Batch.of(task, model, [ids[i] for i in chosen], need_weights)
        look = pinned([pins[i] for i in chosen], batch.keys) if pins is not None else None
        results = forced(
            batch.step, batch.state, *pad([rows[i] for i in chosen]), bos=BOS, eos=EOS, look=look
        )
        for i, result in zip(chosen, results, strict=True):
            found[i] = result
    return [one for one in found if one is not None]


@dataclass(frozen=True)
class _Batch:
    """Sources that a decoder is about to translate."""

    model: Translator
    lengths: Tensor
    keys: int
    state: Any
    step: Step

    @classmethod
    def of(
        cls, task: Sides, model: nn.Module, ids: Sequence[np.ndarray], need_weights: bool
    ) -> "_Batch":
        assert isinstance(model, Translator)
        source, lengths = pad(ids)
        state: Any = model.start(model.encode(source, lengths))
        shared = state._replace(source=PerSentence(state.source))
        return cls(model, lengths, source.shape[1], shared, _step_of(model, need_weights))


def _step_of(model: Translator, need_weights: bool) -> Step:
    """A step whose state says that hypotheses of a sentence share its source."""

    def step(tokens: Tensor, state: Any, look: Tensor | None = None) -> tuple[Tensor, Any, Any]:
        plain = state._replace(source=state.source.value)
        chances, after, weights = model.step(tokens, plain, look=look, need_weights=need_weights)
        return chances, after._replace(source=state.source), weights

    return step


def _search(
    task: Sides,
    batch: _Batch,
    decoding: Decoding,
    prefix: list[list[int]] | None,
    look: Mapping[int, Tensor] | None,
    generators: list[torch.Generator],
) -> list[list[Hypothesis]]:
    penalty = decoding.repetition_penalty
    common: dict[str, Any] = {
        "bos": BOS,
        "eos": EOS,
        "limit": _limits(task, batch.lengths, prefix),
        "prefix": prefix,
        "look": look,
        "length_penalty": power(decoding.length_penalty),
    }
    if decoding.drawn:
        return sample(
            without(batch.step, UNWRITTEN),
            batch.state,
            samples=decoding.nbest,
            temperature=1.0 if decoding.temperature is None else decoding.temperature,
            top_k=decoding.top_k,
            top_p=1.0 if decoding.top_p is None else decoding.top_p,
            repetition_penalty=1.0 if penalty is None else penalty,
            generator=generators,
            **common,
        )
    if decoding.beam == 1 and not decoding.coverage:
        return [[one] for one in greedy(without(batch.step, UNWRITTEN), batch.state, **common)]
    return beam(
        without(_covering(batch, decoding), UNWRITTEN),
        batch.state,
        width=decoding.beam,
        nbest=decoding.nbest,
        coverage=_coverage(batch, decoding.coverage),
        patience=None if decoding.exact else 1.0,
        **common,
    )


def _covering(batch: _Batch, decoding: Decoding) -> Step:
    """Coverage counts weights, so that they are needed whether the caller wants them or not."""
    return _step_of(batch.model, need_weights=True) if decoding.coverage else batch.step


def _coverage(batch: _Batch, beta: float) -> Coverage | None:
    if not beta:
        return None
    start = torch.full((len(batch.lengths),), BOS)
    name = _last_source(_step_of(batch.model, True)(start, batch.state)[2] or {})
    if name is None:
        raise RegardError("option coverage: this model has no attention to count")
    real = torch.arange(batch.keys) < batch.lengths[:, None]
    return Coverage(name, beta, real)


def _last_source(weights: Mapping[str, Tensor]) -> str | None:
    """The name of the last attention from target to source, None where there is none."""
    names = [name for name in weights if name.split(".")[-1] == "source"]
    return names[-1] if names else None


def _sources(task: Sides, texts: Sequence[str]) -> list[np.ndarray]:
    return [np.array(row[: task.max_tokens], dtype=np.int64) for row in task.source.ids(texts)]


def _batches(
    ids: Sequence[np.ndarray], budget: int, targets: Sequence[int] | None = None
) -> list[np.ndarray]:
    lengths = np.array([len(row) for row in ids], dtype=np.int32)
    if targets is not None:
        lengths = np.stack([lengths, np.array(targets, dtype=np.int32)], 1)
    return in_order(lengths, budget) if len(ids) else []


def _limits(task: Sides, lengths: Tensor, prefix: list[list[int]] | None) -> list[int]:
    most = task.config.max_length - 1
    given = [len(row) for row in prefix] if prefix is not None else [0] * len(lengths)
    if max(given, default=0) >= most:
        raise RegardError(f"a prefix of {max(given)} tokens: this model writes {most} at most")
    room = (2 * lengths + 10).tolist()
    return [min(max(n, g + 10), most) for n, g in zip(room, given, strict=True)]


def _record(
    target: Tokenizer,
    found: Hypothesis,
    source: Sequence[str],
    decoding: Decoding,
    names: Sequence[str] | None,
) -> dict[str, Any]:
    """One translation in plain values."""
    output = target.decode(found.output)
    if decoding.replace_unknown and UNK in found.output:
        output = replaced(target, found, source)
    record: dict[str, Any] = {
        "output": output,
        "score": found.score,
        "log_probability": found.log_probability,
        "finished": found.finished,
    }
    if names is not None:
        record["tokens"] = [names[token] for token in found.tokens]
        record["token_log_probabilities"] = found.token_log_probabilities
    if decoding.weights:
        keys = len(source)
        record["weights"] = {
            name: (look[..., :keys] if name.endswith("source") else look).tolist()
            for name, look in found.weights.items()
        }
    return record


def word_pins(task: Sides, text: str, words: Pins) -> dict[int, list[int]]:
    """Pins by source tokens from pins by source words, as `str.split` counts them from 0."""
    spans = word_spans(text)
    offsets = task.source.encode(text).offsets[: task.max_tokens]
    numbers = token_to_word(offsets, spans)
    found = {}
    for position, chosen in words.items():
        for word in chosen:
            if word not in numbers:
                raise RegardError(
                    f"no word {word} to look at: {text[:40]!r} has {len(spans)} words, from 0 on"
                )
        found[position] = [i for i, number in enumerate(numbers) if number in chosen]
    return found


def replaced(target: Tokenizer, found: Hypothesis, source: Sequence[str]) -> str:
    """The text of a hypothesis with the most attended source token for each unknown one.

    Heads and layers are averaged. Luong et al., 2015, https://arxiv.org/abs/1410.8206
    """
    text, spans = written(target, found.output)
    looks = [look for name, look in found.weights.items() if name.split(".")[-1] == "source"]
    if not looks or not source:
        return text
    weights = torch.stack([look.flatten(0, -3).mean(0) for look in looks]).mean(0)
    weights = weights[:, : len(source)]
    for position in reversed(range(len(spans))):
        if found.output[position] == UNK:
            start, end = spans[position]
            text = text[:start] + source[int(weights[position].argmax())] + text[end:]
    return text
