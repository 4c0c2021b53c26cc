"""Language modelling: running text, truncated back-propagation through time, perplexity."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data import DataReport, Line, Source, Summary, read_lines
from regard.data.corpus import Corpus, in_chunks
from regard.data.kneser_ney import KneserNey
from regard.data.plausibility import check_not_numbers
from regard.data.streams import Chunk, chunk_at, count_chunks, stream_chunks
from regard.data.tokenizers.tokenizer import EOS, PAD, Tokenizer
from regard.data.tokenizers.vectors import SavedVectors
from regard.devices import to_device, widest_float
from regard.layers.ngram_model import NGramModel
from regard.metrics import measure
from regard.models import LanguageConfig, LanguageModel, LanguageState
from regard.models.language import TargetProbabilities
from regard.models.pretrained.language_model import PretrainedLanguageModel
from regard.progress import track
from regard.search import Hypothesis
from regard.tasks.language import conditional
from regard.tasks.language.generate import continue_prompts, longest_prompt
from regard.tasks.language.perplexities import perplexities
from regard.tasks.language.sampled_softmax import LARGE, WordSampler, count_words
from regard.tasks.language.task_options import LanguageData, ReadingOptions, Sampling
from regard.tasks.prediction import Prediction
from regard.tasks.shared.length_limits import check_max_length
from regard.tasks.shared.losses import balance_loss, next_token_loss
from regard.tasks.shared.pretrained.pretrained_decoder import copy_decoder, load_decoder
from regard.tasks.shared.pretrained.pretrained_encoder import PretrainedPart
from regard.tasks.shared.pretrained.pretrained_options import check_pretrained
from regard.tasks.shared.splits import (
    Splits,
    make_splits,
    require_corpus,
    vocabulary_size,
)
from regard.tasks.shared.word_vectors import (
    copy_vectors,
    fill_embedding,
    load_vectors,
    with_word_size,
)
from regard.tasks.task import Evaluation, Loss, Sample, Task

ROWS = 16
"""Rows in which a text is evaluated, each with a state of its own."""
NGRAMS = "ngrams.safetensors"
"""File of the n-gram model."""
SAMPLE_PROMPT = 8
"""Tokens of the validation text that samples continue."""


@dataclass(frozen=True)
class Language:
    """The next token of running text."""

    config: LanguageConfig
    tokenizer: Tokenizer
    steps: int
    """Tokens through which gradients are propagated back."""
    kept: SavedVectors | None = None
    freeze: bool = False
    sampled: int = 0
    """Words sampled for the softmax in training; 0 for all of them."""
    train: Corpus | None = None
    valid: Corpus | None = None
    pretrained: PretrainedPart | None = None
    ngrams: KneserNey | None = None
    """The n-gram model that predicts beside the network."""

    def build(self) -> LanguageModel:
        """A language model with initial weights, with pretrained word vectors, or pretrained."""
        if self.pretrained is not None:
            network = PretrainedLanguageModel(self.pretrained.architecture, self.config.dropout)
            if self.train is not None:
                self.pretrained.start(network)
            return network
        model = LanguageModel(
            self.config,
            self.tokenizer.size,
            ngrams=None if self.ngrams is None else self._ngram_model(self.ngrams),
        )
        fill_embedding(model.embedding, self.kept, self.freeze)
        return model

    def _ngram_model(self, tables: KneserNey) -> NGramModel:
        return NGramModel(tables.keys, tables.shares, tables.backoffs, tables.words, tables.longest)

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """The chunks of the text in their order, since each continues where the last ended."""
        rows = max(1, budget // self.steps)
        stream = require_corpus(self.train).stream("tokens")
        return [np.array([i, rows]) for i in range(count_chunks(stream, rows, self.steps))]

    def batch(self, examples: np.ndarray) -> Chunk:
        """One chunk of every row of the text."""
        number, rows = (int(value) for value in examples)
        return chunk_at(require_corpus(self.train).stream("tokens"), rows, self.steps, number)

    def count(self, batch: Chunk) -> int:
        """The number of tokens to predict."""
        return int((batch.targets != 0).sum())

    def loss(
        self, model: LanguageModel, batch: Chunk, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of each next token; the state is carried over, its gradient is not."""
        state = restore_state(model, len(batch.tokens), carried)
        if self.sampler is None or not model.training:
            output, state = model(batch.tokens, state, alone=True)
            total = next_token_loss(output.logits, batch.targets, smoothing)
        else:
            words = self.sampler(batch.targets)
            output, state = model(batch.tokens, state, among=words.words)
            total = next_token_loss(output.logits + words.correction, words.targets, smoothing)
        return Loss(total, balance_loss(output.balance)), carry_state(model, state)

    @cached_property
    def sampler(self) -> WordSampler | None:
        """What samples words for the softmax in training, where not all are computed."""
        if not 0 < self.sampled < self.tokenizer.size:
            return None
        counts = count_words(require_corpus(self.train).stream("tokens"), self.tokenizer.size)
        return WordSampler.by_frequency(counts, self.sampled)

    def validate(self, model: LanguageModel) -> Evaluation:
        """Perplexity on the validation text, by which the network is weighed against n-grams."""
        lines = [Line(text) for text in require_corpus(self.valid).column("text")]
        if model.ngrams is not None:
            self._fit_ngrams(model, model.ngrams, lines)
        return self.evaluate(model, lines)

    @torch.no_grad()
    def _fit_ngrams(self, model: LanguageModel, ngrams: NGramModel, lines: Sequence[Line]) -> None:
        """Weigh the network and n-grams so that the validation text is likeliest."""
        network, counted, orders = [], [], []
        ids = self._running_ids(model, [line.text for line in lines])
        for _, parts, real in self.read_running(model, ids, ReadingOptions(), ROWS):
            if parts.ngrams is None or parts.order is None:
                raise ValueError("the state of this model has no words for its n-grams")
            network.append(parts.network[real])
            counted.append(parts.ngrams[real])
            orders.append(parts.order[real])
        ngrams.fit(
            torch.cat(network).cpu().double().numpy(),
            torch.cat(counted).cpu().double().numpy(),
            torch.cat(orders).cpu().numpy(),
        )

    def _running_ids(self, model: LanguageModel, lines: Sequence[str]) -> np.ndarray:
        rows = ([*row, EOS] for row in self.tokenizer.ids(lines))
        return np.concatenate([[model.start_token], *rows]).astype(np.int64)

    def read_running(
        self, model: LanguageModel, ids: np.ndarray, reading: ReadingOptions, rows: int
    ) -> Iterator[tuple[Tensor, TargetProbabilities, Tensor]]:
        """For each piece of a text: log-probabilities of its targets, by part; what is real."""
        carried: list[Tensor] = []
        pieces = stream_chunks(ids, rows, self.steps)
        for piece in track(pieces, "reading text", len(ids) - 1, "tokens", weight=_count_targets):
            given = to_device(piece, model)
            state = restore_state(model, len(given.tokens), carried, reading)
            parts, after = model.target_probabilities(given.tokens, given.targets, state)
            yield log_of(model.mix_targets(parts, state)), parts, given.targets != PAD
            carried = carry_state(model, after)

    @torch.no_grad()
    def evaluate(
        self, model: LanguageModel, examples: Sequence[Line], *, rows: int = ROWS, **options: Any
    ) -> Evaluation:
        """Perplexity per token, word and byte; the units of its interval are stretches of text.

        `options` are those of `ReadingOptions`.
        """
        lines = [example.text for example in examples]
        ids = self._running_ids(model, lines)
        losses, counts = [], []
        reading = ReadingOptions(**options)
        for log_probabilities, _, real in self.read_running(model, ids, reading, rows):
            losses += (-log_probabilities * real).sum(1).tolist()
            counts += real.sum(1).tolist()
        words = sum(len(line.split()) + 1 for line in lines)
        size = sum(len(line.encode()) + 1 for line in lines)
        tokens = np.array(counts, dtype=np.float64)
        tallies = perplexities(
            losses, tokens * words / tokens.sum(), tokens, tokens * size / tokens.sum()
        )
        prompt = self.tokenizer.decode(self.tokenizer.ids(lines[:1])[0][:SAMPLE_PROMPT])
        continuation = self.continue_texts(model, [prompt], Sampling(tokens=30))[0]
        return Evaluation(
            metrics={name: measure(tally) for name, tally in tallies.items()},
            main="perplexity_per_word",
            higher=False,
            samples=(Sample(prompt, lines[0], self.tokenizer.decode(continuation.output)),),
            by_length={},
            lines=(),
            tally=tallies["perplexity_per_word"],
        )

    def predict(
        self, model: LanguageModel, texts: Sequence[str], **options: Any
    ) -> list[Prediction]:
        """Each text with its continuation; `options` are those of `Sampling`."""
        rows = self.tokenizer.ids(texts)
        continuations = self.continue_texts(model, texts, Sampling(**options))
        return [
            Prediction(
                self.tokenizer.decode(hypothesis.output),
                len(ids) > longest_prompt(model),
                {"log_probability": hypothesis.log_probability},
            )
            for hypothesis, ids in zip(continuations, rows, strict=True)
        ]

    @torch.no_grad()
    def continue_texts(
        self, model: LanguageModel, prompts: Sequence[str], sampling: Sampling
    ) -> list[Hypothesis]:
        """One continuation of each prompt; the prompt is part of what is returned."""
        longest = longest_prompt(model)
        rows = [ids[-longest:] for ids in self.tokenizer.ids(prompts)]
        continuations = continue_prompts(
            model, rows, lambda chosen: start_state(model, len(chosen), sampling), sampling
        )
        return [
            replace(hypothesis, tokens=[*ids, *hypothesis.tokens])
            for ids, (hypothesis, *_) in zip(rows, continuations, strict=True)
        ]


def log_of(probabilities: Tensor) -> Tensor:
    """Their logarithms, in float64 if the device has it; finite for all that float32 can hold."""
    exact = probabilities.to(widest_float(probabilities.device))
    return exact.clamp(min=torch.finfo(torch.float32).tiny).log()


def start_state(
    model: LanguageModel, rows: int, reading: ReadingOptions | None = None
) -> LanguageState:
    """An initial state, with an empty cache where states are attended to."""
    state = model.start(rows)
    cached = None if reading is None else reading.cached()
    return state if cached is None else state._replace(cache=model.empty_cache(rows, **cached))


def restore_state(
    model: LanguageModel,
    rows: int,
    carried: Sequence[Tensor],
    reading: ReadingOptions | None = None,
) -> LanguageState:
    """The state that was carried over; an initial one if there is none, or for other rows."""
    state = start_state(model, rows, reading)
    if not carried or len(carried[0]) != rows:
        return state
    parts = iter(carried)
    cell = tuple(next(parts) for _ in state.cell)
    past = next(parts) if state.past is not None and state.cell else state.past
    recent = next(parts) if state.recent is not None else None
    cache = state.cache and state.cache._replace(states=next(parts), words=next(parts))
    return state._replace(cell=cell, past=past, recent=recent, cache=cache)


def carry_state(model: LanguageModel, state: LanguageState) -> list[Tensor]:
    """What the next chunk continues from, without gradients; a transformer starts each anew."""
    past = [] if state.past is None or not state.cell else [state.past]
    recent = [] if state.recent is None else [state.recent]
    cached = [] if state.cache is None else [state.cache.states, state.cache.words]
    return [part.detach() for part in (*state.cell, *past, *recent, *cached)]


def read(data: LanguageData, sources: Sequence[Source], summary: Summary) -> Iterator[Line]:
    """The lines of some files, with what each is generated from, if anything is."""
    if data.condition is not None:
        return conditional.read(data, sources, summary)
    return read_lines(sources, data.text, None, summary)


def check(data: LanguageData, config: LanguageConfig) -> None:
    """Check that the model has positions for a window of the text."""
    check_pretrained(
        data,
        config,
        data_options=(
            "condition",
            "tokenizer",
            "vocabulary",
            "lowercase",
            "vectors",
            "sampled",
            "ngrams",
        ),
        used=("dropout",),
    )
    if data.pretrained is None and config.model == "transformer":
        check_max_length(config, "window_tokens", data.window_tokens)


def prepare(data: LanguageData, folder: Path, seed: int) -> DataReport:
    """Read the text, train the tokenizer, write the corpora; what was understood."""
    splits: Splits[Line] = make_splits(
        "stories", data, read, seed, running_text=data.condition is None, folder=folder
    )
    next(splits.train(), None)  # which reads the header
    if (guessed := splits.guessed()) and data.text is None:
        check_not_numbers((line.text for line in splits.train()), guessed, "text", ("text",))
    if data.pretrained is not None:
        tokenizer, note = copy_decoder(data.pretrained, folder, data.window_tokens)
        sizes = splits.write(folder, lambda lines: _rows(lines, tokenizer))
        return splits.report(sizes, vocabularies={"text": tokenizer.size}, notes=[note])
    size = vocabulary_size(data.tokenizer, data.vocabulary, (line.text for line in splits.train()))
    tokenizer = Tokenizer.train(
        data.tokenizer, (line.text for line in splits.train()), size, data.lowercase
    )
    notes = [tokenizer.note, copy_vectors(data, tokenizer, folder)]
    tokenizer.save(folder / "tokenizer.json")
    vocabularies = {"text": tokenizer.size}
    if data.condition is not None:
        return conditional.write(splits, tokenizer, folder, notes)
    sizes = splits.write(folder, lambda lines: _rows(lines, tokenizer))
    if data.ngrams:
        counted = count_ngrams(splits.train(), tokenizer, data.ngrams)
        counted.save(folder / NGRAMS)
        notes.append(f"{len(counted.keys):,} n-grams of 2 to {counted.longest} tokens")
    return splits.report(sizes, vocabularies=vocabularies, notes=notes)


def load(data: LanguageData, config: LanguageConfig, folder: Path) -> Task[LanguageModel]:
    """The task of a run whose data was prepared."""
    tokenizer, kept = Tokenizer.load(folder / "tokenizer.json"), load_vectors(data, folder)
    config = with_word_size(config, kept)
    part = load_decoder(data, folder)
    if part is not None:
        return Language(config, tokenizer, data.window_tokens, pretrained=part)
    if data.condition is not None:
        labels, features = conditional.load_conditions(folder)
        return conditional.Conditional(config, tokenizer, labels, features, kept, data.freeze)
    sampled = data.sampled
    if sampled is None:
        sampled = tokenizer.size // 10 if tokenizer.size >= LARGE else 0
    ngrams = KneserNey.load(folder / NGRAMS, tokenizer.size, data.ngrams) if data.ngrams else None
    steps = data.window_tokens
    return Language(config, tokenizer, steps, kept, data.freeze, sampled, ngrams=ngrams)


def count_ngrams(lines: Iterable[Line], tokenizer: Tokenizer, longest: int) -> KneserNey:
    """The n-gram model of some lines of text."""
    parts = [np.array([EOS])]
    for row in _rows(lines, tokenizer):
        parts.append(np.array(row["tokens"]))
    return KneserNey.of(np.concatenate(parts), tokenizer.size, longest)


def _rows(lines: Iterable[Line], tokenizer: Tokenizer) -> Iterator[dict[str, Any]]:
    for group in in_chunks(lines):
        texts = [line.text for line in group]
        for text, ids in zip(texts, tokenizer.ids(texts), strict=True):
            yield {"tokens": [*ids, EOS], "text": text}


def _count_targets(piece: Any) -> int:
    """Number of tokens that a piece of a text predicts."""
    return int((piece.targets != 0).sum())
