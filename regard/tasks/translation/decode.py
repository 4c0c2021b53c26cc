"""Translating texts: search, sampling, forced decoding, constrained attention."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import ordered_batches, pad
from regard.data.shared_batches import map_batches
from regard.data.tokenizers.tokenizer import BOS, EOS, NEVER_GENERATED, Tokenizer
from regard.data.tokenizers.words import token_to_word
from regard.devices import to_device
from regard.errors import OptionError, RegardError
from regard.models import Translator, TranslatorConfig
from regard.models.native.native_decoder import NativeDecoder, explain_decoder, native_decoder
from regard.models.native.native_products import Precision
from regard.models.output import Weights
from regard.progress import track
from regard.search import (
    Coverage,
    Hypothesis,
    PerSentence,
    RepeatState,
    Shared,
    Step,
    beam,
    forbid_repeats,
    forbid_tokens,
    force_decode,
    greedy,
    pin_attention,
    power,
    sample,
    text_generator,
)
from regard.tasks.shared.pretrained.pretrained_encoder import PretrainedPart
from regard.tasks.shared.trace_sides import word_spans
from regard.tasks.translation.native_translation import search_natively
from regard.tasks.translation.task_options import Decoding

BATCH_TOKENS = 4096
"""Source tokens that are decoded in one batch, each counted once per hypothesis."""
Pins = Mapping[int, Sequence[int]]
"""For positions of the target, the source tokens that may be attended to there."""


@runtime_checkable
class TranslationSides(Protocol):
    """What decoding needs of a task: tokenizers and limits."""

    @property
    def config(self) -> TranslatorConfig:
        """The options of the model."""
        ...

    @property
    def source(self) -> Tokenizer:
        """The tokenizer of the source language."""
        ...

    @property
    def target(self) -> Tokenizer:
        """The tokenizer of the target language."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens of a source that are read."""
        ...

    @property
    def pretrained(self) -> PretrainedPart | None:
        """The pretrained model, if there is one."""
        ...


def names_around(task: TranslationSides) -> tuple[list[str], list[str]]:
    """What a pretrained model calls the tokens that it puts before and after a source."""
    if task.pretrained is None:
        return [], []
    architecture = task.pretrained.architecture
    return [architecture.begin_name] * architecture.frame[0], [architecture.end_name]


@torch.no_grad()
def decode(
    task: TranslationSides,
    model: Translator,
    texts: Sequence[str],
    decoding: Decoding,
    *,
    prefixes: Sequence[Sequence[int]] | None = None,
    pins: Sequence[Pins | None] | None = None,
    need_weights: bool = False,
    budget: int = BATCH_TOKENS,
) -> list[list[Hypothesis]]:
    """The translations of each text, in order, best first; samples in the order of sampling.

    Args:
        task: tokenizers and limits.
        model: a translator.
        texts: what to translate.
        decoding: how.
        prefixes: the tokens that each translation begins with.
        pins: what positions of each translation may attend to.
        need_weights: whether hypotheses keep their attention.
        budget: source tokens per batch.
    """
    ids = source_ids(task, texts)
    translations: list[list[Hypothesis]] = [[] for _ in ids]
    rows = decoding.nbest if decoding.sampled else decoding.beam
    batches = _batches(ids, max(1, budget // rows))

    def compute(chosen: np.ndarray) -> list[list[Hypothesis]]:
        batch = SourceBatch.encode(model, [ids[i] for i in chosen], quantize=decoding.quantize)
        return search(
            task,
            batch,
            decoding,
            [texts[i] for i in chosen],
            prefixes=None if prefixes is None else [list(prefixes[i]) for i in chosen],
            pins=None if pins is None else [pins[i] for i in chosen],
            need_weights=need_weights,
        )

    for chosen, results in map_batches(
        batches,
        compute,
        "translating",
        unit="sentences",
        total=len(ids),
        weight=len,
        encode=_without_weights,
        decode=lambda plain: [[Hypothesis(**one) for one in nbest] for nbest in plain],
    ):
        for i, result in zip(chosen, results, strict=True):
            translations[i] = result
    return translations


def _without_weights(translations: list[list[Hypothesis]]) -> list[list[dict[str, Any]]]:
    """Hypotheses in plain values; no validation reads their weights."""
    return [[vars(one) | {"weights": {}} for one in nbest] for nbest in translations]


@torch.no_grad()
def force_targets(
    task: TranslationSides,
    model: Translator,
    texts: Sequence[str],
    targets: Sequence[Sequence[int]],
    *,
    finished: bool = True,
    pins: Sequence[Pins | None] | None = None,
    need_weights: bool = False,
    budget: int = BATCH_TOKENS,
) -> list[Hypothesis]:
    """log p(y | x) of given targets, with the end token unless `finished` is False."""
    ids = source_ids(task, texts)
    rows = [np.array([*row, EOS] if finished else row, dtype=np.int64) for row in targets]
    hypotheses: list[Hypothesis | None] = [None] * len(ids)
    batches = _batches(ids, budget, [len(row) for row in rows])
    for chosen in track(batches, "scoring translations", len(ids), "sentences", weight=len):
        batch = SourceBatch.encode(model, [ids[i] for i in chosen])
        results = force_decode(
            batch.step(need_weights),
            batch.state,
            *to_device(pad([rows[i] for i in chosen]), model),
            bos=BOS,
            eos=EOS,
            allowed=None if pins is None else pin_attention([pins[i] for i in chosen], batch.keys),
        )
        for i, result in zip(chosen, results, strict=True):
            hypotheses[i] = result
    return [hypothesis for hypothesis in hypotheses if hypothesis is not None]


@dataclass(frozen=True)
class SourceBatch:
    """Sources that were encoded once, from which a decoder may start any number of times."""

    decoder: Translator | NativeDecoder
    """What takes the steps: the model, or its decoder compiled for this machine."""
    lengths: Tensor
    keys: int
    """Source tokens of the longest sentence, with those that the model puts around it."""
    state: Any
    """The decoder's state before the first token; hypotheses of a sentence share its source."""
    encoder_weights: Weights

    @classmethod
    def encode(
        cls,
        model: Translator,
        ids: Sequence[np.ndarray],
        *,
        need_weights: bool = False,
        quantize: Precision = "none",
    ) -> "SourceBatch":
        """Read the sources; `need_weights` keeps the attention of the encoder."""
        source, lengths = to_device(pad(ids), model)
        decoder = native_decoder(model, quantize)
        if decoder is None and quantize != "none":
            reason = explain_decoder(model).reason
            raise OptionError("quantize", f"{quantize} needs the native decoder: {reason}")
        context = (decoder or model).encode(source, lengths, need_weights=need_weights)
        state: Any = (decoder or model).start(context)
        shared = PerSentence(state.source) if decoder is None else Shared(state.source)
        shared_state = state._replace(source=shared)
        keys = source.shape[1] + sum(model.frame)
        return cls(decoder or model, lengths, keys, shared_state, context.weights)

    def step(self, need_weights: bool, record: list[Tensor] | None = None) -> Step:
        """The step function of the search; `record` collects the log-probabilities of each step."""

        def step(
            tokens: Tensor, state: Any, allowed: Tensor | None = None
        ) -> tuple[Tensor, Any, Any]:
            # the search repeats the state for each hypothesis, but not what they share
            plain = state._replace(source=state.source.value)
            after: Any
            log_probabilities, after, weights = self.decoder.step(
                tokens, plain, allowed=allowed, need_weights=need_weights
            )
            if record is not None:
                record.append(log_probabilities)
            shared = type(state.source)(after.source)
            return log_probabilities, after._replace(source=shared), weights

        return step


def search(
    task: TranslationSides,
    batch: SourceBatch,
    decoding: Decoding,
    texts: Sequence[str],
    *,
    prefixes: list[list[int]] | None = None,
    pins: Sequence[Pins | None] | None = None,
    need_weights: bool = False,
) -> list[list[Hypothesis]]:
    """The translations of the sources of a batch, by beam, greedy search or sampling."""
    penalty = decoding.repetition_penalty
    leads = task.pretrained is not None and task.pretrained.architecture.leads
    length_penalty = power(decoding.length_penalty, int(leads))
    limits = _length_limits(task, batch.lengths, prefixes)
    if prefixes is None and pins is None:
        found = search_natively(
            batch.decoder,
            batch.state,
            decoding,
            limits,
            length_penalty,
            full=task.pretrained is not None,
            need_weights=need_weights,
        )
        if found is not None:
            return found
    common: dict[str, Any] = {
        "bos": BOS,
        "eos": EOS,
        "limit": limits,
        "prefix": prefixes,
        "allowed": None if pins is None else pin_attention(list(pins), batch.keys),
        "length_penalty": length_penalty,
    }
    step = forbid_tokens(batch.step(need_weights or bool(decoding.coverage)), NEVER_GENERATED)
    state = batch.state
    if decoding.no_repeat:
        step = forbid_repeats(step, decoding.no_repeat, max(map(len, prefixes or [[]])))
        state = RepeatState(state, batch.lengths.new_empty(len(batch.lengths), 0))
    if decoding.sampled:
        return sample(
            step,
            state,
            samples=decoding.nbest,
            temperature=1.0 if decoding.temperature is None else decoding.temperature,
            top_k=decoding.top_k,
            top_p=1.0 if decoding.top_p is None else decoding.top_p,
            repetition_penalty=1.0 if penalty is None else penalty,
            generator=[text_generator(decoding.seed, text) for text in texts],
            **common,
        )
    if decoding.beam == 1 and not decoding.coverage:
        return [[best] for best in greedy(step, state, **common)]
    return beam(
        step,
        state,
        width=decoding.beam,
        nbest=decoding.nbest,
        coverage=_coverage(batch, decoding.coverage, len([*chain(*names_around(task))])),
        patience=None if decoding.exact else 1.0,
        full=task.pretrained is not None,
        **common,
    )


def source_ids(task: TranslationSides, texts: Sequence[str]) -> list[np.ndarray]:
    """The tokens of each source, truncated to what the model reads."""
    return [np.array(row[: task.max_tokens], dtype=np.int64) for row in task.source.ids(texts)]


def _coverage(batch: SourceBatch, beta: float, around: int) -> Coverage | None:
    if not beta:
        return None
    start = torch.full_like(batch.lengths, BOS)
    name = _last_source_attention(batch.step(True)(start, batch.state)[2] or {})
    if name is None:
        raise OptionError("coverage", "this model has no attention to the source")
    real = torch.arange(batch.keys, device=batch.lengths.device) < batch.lengths[:, None] + around
    return Coverage(name, beta, real)


def _last_source_attention(weights: Mapping[str, Tensor]) -> str | None:
    """The name of the last attention from target to source; None where there is none."""
    names = [name for name in weights if name.split(".")[-1] == "source"]
    return names[-1] if names else None


def _batches(
    ids: Sequence[np.ndarray], budget: int, targets: Sequence[int] | None = None
) -> list[np.ndarray]:
    lengths = np.array([len(row) for row in ids], dtype=np.int32)
    if targets is not None:
        lengths = np.stack([lengths, np.array(targets, dtype=np.int32)], 1)
    return ordered_batches(lengths, budget) if len(ids) else []


def _length_limits(
    task: TranslationSides, lengths: Tensor, prefixes: list[list[int]] | None
) -> list[int]:
    """Twice the source and a little more; prefixes extend the limit."""
    longest = task.config.max_length - 1
    given = [len(row) for row in prefixes] if prefixes is not None else [0] * len(lengths)
    if max(given, default=0) >= longest:
        raise RegardError(
            f"a prefix of {max(given)} tokens: this model writes at most {longest} tokens"
        )
    room = (2 * lengths + 10).tolist()
    return [min(max(n, g + 10), longest) for n, g in zip(room, given, strict=True)]


def pin_tokens(task: TranslationSides, text: str, words: Pins) -> dict[int, list[int]]:
    """Pins to source tokens from pins to source words, as `str.split` counts them from 0."""
    spans = word_spans(text)
    offsets = task.source.encode(text).offsets[: task.max_tokens]
    numbers = token_to_word(offsets, spans)
    before = len(names_around(task)[0])
    pins = {}
    for position, chosen in words.items():
        for word in chosen:
            if word not in numbers:
                raise RegardError(
                    f"no source word {word}: {text[:40]!r} has {len(spans)} words, counted from 0"
                )
        pins[position] = [i + before for i, number in enumerate(numbers) if number in chosen]
    return pins
