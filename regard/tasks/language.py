"""Language modelling: running text, truncated back-propagation through time, perplexity."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.data import Line, Source, Summary, read_lines
from regard.data.corpus import Corpus, in_chunks
from regard.data.streams import Chunk, chunk, chunks, streams
from regard.data.tokenizer import EOS, Tokenizer
from regard.data.vectors import KeptVectors
from regard.errors import RegardError
from regard.metrics import measure
from regard.models import LanguageConfig, LanguageModel, LanguageState
from regard.options import at_least
from regard.search import Hypothesis
from regard.tasks import conditional
from regard.tasks.generation import LONGEST_PROMPT, continuations, perplexities, step_of
from regard.tasks.losses import next_token_loss
from regard.tasks.parts import Parts, noted, parts, there, vocabulary_size
from regard.tasks.pretrained import check_vectors, copy_vectors, fill, kept_vectors, sized
from regard.tasks.sampled import LARGE, Draw, frequencies
from regard.tasks.task import Evaluation, Loss, Prediction, Sample, Task, weighed

__all__ = [
    "DEFAULTS",
    "LONGEST_PROMPT",
    "Language",
    "LanguageData",
    "carry",
    "load",
    "prepare",
    "read",
    "resumed",
    "step_of",
]
DEFAULTS: dict[str, Any] = {
    "epochs": 10,
    "patience": 10,  # a cosine is worth its end
    "batch_tokens": 800,
    "learning_rate": 2e-3,
    "schedule": "cosine",
}
PROMPT = 8
"""Tokens of the validation text that samples go on from."""


@dataclass(frozen=True)
class LanguageData:
    """Where the text comes from, and how it is cut into tokens."""

    data: list[str] | None = None
    """Text files; the built-in text unless said."""
    valid: list[str] | None = None
    """The same for validation; a part of the data is set aside unless said."""
    text: str | None = None
    """The column with the text, in tables."""
    condition: str | None = None
    """What each text is written from: a column of labels, or a .npy file of a vector a line."""
    tokenizer: str = "bpe"
    """word, bpe, unigram, character or bytes."""
    vocabulary: int | None = None
    """Tokens at most; 6 · √words of the text unless said, from 1,000 to 16,000 (30,000 words)."""
    lowercase: bool = False
    """Read and write lower case only."""
    window_tokens: int = 40
    """How far back-propagation through time goes; a transformer reads so many at once."""
    vectors: str | None = None
    """A file of word vectors to begin with: GloVe text, .vec, or gzip of either; with the word
    tokenizer."""
    freeze: bool = False
    """Word vectors stay as they are in the file."""
    sampled: int | None = None
    """So many words, drawn anew for each update, stand for all in the softmax while training; a
    tenth of 16,000 words or more and all of fewer unless said, 0 for all."""

    def __post_init__(self) -> None:
        at_least(self, window_tokens=1, sampled=0)
        check_vectors(self, self.tokenizer)
        if self.condition is not None and self.data is None:
            raise RegardError("option condition: expected with data, which was not given")


@dataclass(frozen=True)
class Language:
    """The next token of running text."""

    config: LanguageConfig
    tokenizer: Tokenizer
    steps: int
    kept: KeptVectors | None = None
    freeze: bool = False
    sampled: int = 0
    """Words drawn to stand for all of them in training; 0: none are."""
    train: Corpus | None = None
    valid: Corpus | None = None

    def build(self) -> LanguageModel:
        """A language model with fresh weights, or with the word vectors of a file."""
        model = LanguageModel(self.config, self.tokenizer.size)
        fill(model.embedding, self.kept, self.freeze)
        return model

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """The chunks of the text in their own order, since each goes on where the last ended."""
        rows = max(1, budget // self.steps)
        stream = there(self.train).stream("tokens")
        return [np.array([i, rows]) for i in range(chunks(stream, rows, self.steps))]

    def batch(self, examples: np.ndarray) -> Chunk:
        """One chunk of every row of the text."""
        number, rows = (int(value) for value in examples)
        return chunk(there(self.train).stream("tokens"), rows, self.steps, number)

    def count(self, batch: Chunk) -> int:
        """Tokens to predict."""
        return int((batch.targets != 0).sum())

    def loss(
        self, model: nn.Module, batch: Chunk, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of each next token; the state goes on, its gradient does not."""
        assert isinstance(model, LanguageModel)
        state = resumed(model, len(batch.tokens), carried)
        if self.draw is None:
            output, state = model(batch.tokens, state)
            total = next_token_loss(output.logits, batch.targets, smoothing)
        else:
            drawn = self.draw(batch.targets)
            output, state = model(batch.tokens, state, among=drawn.words)
            total = next_token_loss(output.logits + drawn.correction, drawn.targets, smoothing)
        return Loss(total, weighed(output.balance)), carry(model, state)

    @cached_property
    def draw(self) -> Draw | None:
        """How words are drawn for the softmax in training, where not all are taken."""
        if not 0 < self.sampled < self.tokenizer.size:
            return None
        counts = frequencies(there(self.train).stream("tokens"), self.tokenizer.size)
        return Draw.by_frequency(counts, self.sampled)

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Perplexity on the validation text."""
        return self.score(model, [Line(text) for text in there(self.valid).column("text")])

    @torch.no_grad()
    def score(self, model: nn.Module, examples: Sequence[Line], *, rows: int = 16) -> Evaluation:
        """Perplexity per token, word and byte of a text; its parts are stretches of it."""
        assert isinstance(model, LanguageModel)
        lines = [example.text for example in examples]
        ids = np.concatenate([[EOS], *([*row, EOS] for row in self.tokenizer.ids(lines))])
        ids = ids.astype(np.int64)
        losses, counts, carried = [], [], list[Tensor]()
        for piece in streams(ids, rows, self.steps):
            state = resumed(model, len(piece.tokens), carried)
            output, state = model(piece.tokens, state)
            carried = carry(model, state)
            for logits, targets in zip(output.logits, piece.targets, strict=True):
                losses.append(float(next_token_loss(logits[None], targets[None], 0.0)))
                counts.append(int((targets != 0).sum()))
        words = sum(len(line.split()) + 1 for line in lines)
        size = sum(len(line.encode()) + 1 for line in lines)
        tokens = np.array(counts, dtype=np.float64)
        tallies = perplexities(
            losses, tokens * words / tokens.sum(), tokens, tokens * size / tokens.sum()
        )
        prompt = self.tokenizer.decode(self.tokenizer.ids(lines[:1])[0][:PROMPT])
        written = self.generate(model, [prompt], limit=30)[0]
        shown = Sample(prompt, lines[0], self.tokenizer.decode(written.output))
        return Evaluation(
            metrics={name: measure(tally) for name, tally in tallies.items()},
            main="perplexity_per_word",
            higher=False,
            samples=(shown,),
            by_length={},
            lines=(),
        )

    def predict(self, model: nn.Module, texts: Sequence[str], **options: Any) -> list[Prediction]:
        """A continuation of each text, which it begins with."""
        rows = self.tokenizer.ids(texts)
        return [
            Prediction(
                self.tokenizer.decode(made.output),
                len(ids) > LONGEST_PROMPT,
                {"log_probability": made.log_probability},
            )
            for made, ids in zip(self.generate(model, texts, **options), rows, strict=True)
        ]

    @torch.no_grad()
    def generate(
        self, model: nn.Module, prompts: Sequence[str], **options: Any
    ) -> list[Hypothesis]:
        """One continuation of each prompt; the prompt is a part of what is returned."""
        assert isinstance(model, LanguageModel)
        rows = [ids[-LONGEST_PROMPT:] for ids in self.tokenizer.ids(prompts)]
        found = continuations(model, rows, lambda chosen: model.start(len(chosen)), **options)
        return [
            replace(one, tokens=[*ids, *one.tokens])
            for ids, (one, *_) in zip(rows, found, strict=True)
        ]


def resumed(model: LanguageModel, rows: int, carried: Sequence[Tensor]) -> LanguageState:
    """The state that was carried over, or a first one where rows have changed or begun."""
    state = model.start(rows)
    if not carried or len(carried[0]) != rows:
        return state
    cell = tuple(carried[: len(state.cell)])
    past = carried[len(state.cell)] if state.past is not None else None
    return state._replace(cell=cell, past=past)


def carry(model: LanguageModel, state: LanguageState) -> list[Tensor]:
    """What goes on to the next chunk, without its history; a transformer begins each chunk anew."""
    past = [] if state.past is None or not state.cell else [state.past]
    return [part.detach() for part in (*state.cell, *past)]


def read(data: LanguageData, sources: Sequence[Source], summary: Summary) -> Iterator[Line]:
    """The lines of some files, with what each is written from, if anything is."""
    if data.condition is not None:
        return conditional.read(data, sources, summary)
    return read_lines(sources, data.text, None, summary)


def prepare(data: LanguageData, folder: Path, seed: int) -> str:
    """Read the text, learn the tokenizer, write the corpora; what was read, in words."""
    found: Parts[Line] = parts("language", data, read, seed, running=data.condition is None)
    size = vocabulary_size(data.tokenizer, data.vocabulary, (line.text for line in found.train()))
    tokenizer = Tokenizer.train(
        data.tokenizer, (line.text for line in found.train()), size, data.lowercase
    )
    told = noted(tokenizer.note, copy_vectors(data, tokenizer, folder))
    tokenizer.save(folder / "tokenizer.json")
    if data.condition is not None:
        told = noted(told, conditional.write(found, tokenizer, folder))
    else:
        found.write(folder, lambda lines: _rows(lines, tokenizer))
    return noted(found.told(), told)


def load(data: LanguageData, config: LanguageConfig, folder: Path) -> Task:
    """The task of a run whose data was prepared."""
    tokenizer, kept = Tokenizer.load(folder / "tokenizer.json"), kept_vectors(data, folder)
    config = sized(config, kept)
    if data.condition is not None:
        labels, features = conditional.known(folder)
        return conditional.Conditional(config, tokenizer, labels, features, kept, data.freeze)
    sampled = data.sampled
    if sampled is None:
        sampled = tokenizer.size // 10 if tokenizer.size >= LARGE else 0
    return Language(config, tokenizer, data.window_tokens, kept, data.freeze, sampled)


def _rows(lines: Iterable[Line], tokenizer: Tokenizer) -> Iterator[dict[str, Any]]:
    for group in in_chunks(lines):
        texts = [line.text for line in group]
        for text, ids in zip(texts, tokenizer.ids(texts), strict=True):
            yield {"tokens": [*ids, EOS], "text": text}
