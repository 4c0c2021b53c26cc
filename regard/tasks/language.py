"""Language modelling: running text, truncated back-propagation through time, perplexity."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.data import Line, Source, Summary, read_lines
from regard.data.corpus import Corpus, in_chunks
from regard.data.streams import Chunk, chunk, chunks, streams
from regard.data.tokenizer import EOS, Tokenizer
from regard.metrics import measure, perplexity
from regard.models import LanguageConfig, LanguageModel, LanguageState
from regard.options import at_least
from regard.search import Hypothesis, sample
from regard.tasks.parts import Parts, noted, parts, there
from regard.tasks.task import Evaluation, Loss, Prediction, Sample, next_token_loss

DEFAULTS: dict[str, Any] = {"epochs": 20, "patience": 4, "batch_tokens": 1600}
PROMPT = 8
"""Tokens of the validation text that samples go on from."""
LONGEST_PROMPT = 500
"""Tokens of a prompt that are read: the last ones of a longer one."""


@dataclass(frozen=True)
class LanguageData:
    """Where the text comes from, and how it is cut into tokens."""

    data: list[str] | None = None
    """Text files; the built-in text unless said."""
    valid: list[str] | None = None
    """The same for validation; a part of the data is set aside unless said."""
    text: str | None = None
    """The column with the text, in tables."""
    tokenizer: str = "bpe"
    """word, bpe, unigram, character or bytes."""
    vocabulary: int = 8000
    """Tokens at most."""
    lowercase: bool = False
    """Read and write lower case only."""
    window_tokens: int = 40
    """How far back-propagation through time goes; a transformer reads so many at once."""

    def __post_init__(self) -> None:
        at_least(self, window_tokens=1)


@dataclass(frozen=True)
class Language:
    """The next token of running text."""

    config: LanguageConfig
    tokenizer: Tokenizer
    steps: int
    train: Corpus | None = None
    valid: Corpus | None = None

    def build(self) -> LanguageModel:
        """A language model with fresh weights."""
        return LanguageModel(self.config, self.tokenizer.size)

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
        output, state = model(batch.tokens, state)
        total = next_token_loss(output.logits, batch.targets, smoothing)
        return Loss(total, output.balance), carry(model, state)

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
            losses.append(float(next_token_loss(output.logits, piece.targets, 0.0)))
            counts.append(self.count(piece))
        words = sum(len(line.split()) + 1 for line in lines)
        size = sum(len(line.encode()) + 1 for line in lines)
        tokens = np.array(counts, dtype=np.float64)
        tallies = {
            "perplexity_per_word": perplexity(losses, tokens * words / tokens.sum(), "word"),
            "perplexity_per_token": perplexity(losses, tokens, "token"),
            "perplexity_per_byte": perplexity(losses, tokens * size / tokens.sum(), "byte"),
        }
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
        self,
        model: nn.Module,
        prompts: Sequence[str],
        *,
        limit: int = 100,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        seed: int = 0,
    ) -> list[Hypothesis]:
        """One continuation of each prompt; the prompt is a part of what is returned."""
        assert isinstance(model, LanguageModel)
        found = []
        for prompt in prompts:
            ids = self.tokenizer.ids([prompt])[0][-LONGEST_PROMPT:]
            generator = torch.Generator().manual_seed(seed)
            found += sample(
                step_of(model),
                model.start(1),
                bos=torch.tensor([EOS]),
                eos=EOS,
                limit=len(ids) + limit,
                prefix=[ids],
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                repetition_penalty=repetition_penalty,
                generator=generator,
            )[0]
        return found


def step_of(model: LanguageModel) -> Any:
    """The model as a search wants it: one token further, with log-probabilities."""

    def step(tokens: Tensor, state: LanguageState) -> tuple[Tensor, LanguageState, None]:
        output, state = model(tokens[:, None], state)
        return output.logits[:, 0].log_softmax(-1), state, None

    return step


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
    """The lines of some files."""
    return read_lines(sources, data.text, None, summary)


def prepare(data: LanguageData, folder: Path, seed: int) -> str:
    """Read the text, learn the tokenizer, write the corpora; what was read, in words."""
    found: Parts[Line] = parts("language", data, read, seed)
    tokenizer = Tokenizer.train(
        data.tokenizer, (line.text for line in found.train()), data.vocabulary, data.lowercase
    )
    found.write(folder, lambda lines: _rows(lines, tokenizer))
    tokenizer.save(folder / "tokenizer.json")
    return noted(found.told(), tokenizer.note)


def load(data: LanguageData, config: LanguageConfig, folder: Path) -> Language:
    """The task of a run whose data was prepared."""
    return Language(config, Tokenizer.load(folder / "tokenizer.json"), data.window_tokens)


def _rows(lines: Iterable[Line], tokenizer: Tokenizer) -> Iterator[dict[str, Any]]:
    for group in in_chunks(lines):
        texts = [line.text for line in group]
        for text, ids in zip(texts, tokenizer.ids(texts), strict=True):
            yield {"tokens": [*ids, EOS], "text": text}
