"""Language modelling: running text, truncated back-propagation through time, perplexity."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data import Line, Source, Summary, read_lines
from regard.data.corpus import Corpus, in_chunks, write
from regard.data.streams import Chunk, chunk, chunks, streams
from regard.data.tokenizer import EOS, Tokenizer
from regard.errors import RegardError
from regard.metrics import measure, perplexity
from regard.models import LanguageConfig, LanguageModel, LanguageState
from regard.search import Hypothesis, sample
from regard.tasks.parts import TRAIN, VALID, Parts, corpora, parts, there
from regard.tasks.task import Evaluation, Loss, Sample

DEFAULTS: dict[str, Any] = {"epochs": 20, "patience": 4, "batch_tokens": 1600}
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
    tokenizer: str = "bpe"
    """word, bpe, unigram, character or bytes."""
    vocabulary: int = 8000
    """Tokens at most."""
    lowercase: bool = False
    """Read and write lower case only."""
    window_tokens: int = 40
    """How far back-propagation through time goes; a transformer reads so many at once."""


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
        total = F.cross_entropy(
            output.logits.flatten(0, 1),
            batch.targets.flatten(),
            ignore_index=0,
            reduction="sum",
            label_smoothing=smoothing,
        )
        return Loss(total, output.balance), carry(model, state)

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Perplexity on the validation text."""
        corpus = there(self.valid)
        return self.score(model, list(corpus.column("text")))

    @torch.no_grad()
    def score(self, model: nn.Module, lines: Sequence[str], *, rows: int = 16) -> Evaluation:
        """Perplexity per token, word and byte of a text; its parts are stretches of it."""
        assert isinstance(model, LanguageModel)
        ids = np.concatenate(
            [[EOS], *([*row, EOS] for row in self.tokenizer.ids(list(lines)))]
        ).astype(np.int64)
        losses, counts, carried = [], [], list[Tensor]()
        for piece in streams(ids, rows, self.steps):
            state = resumed(model, len(piece.tokens), carried)
            output, state = model(piece.tokens, state)
            carried = carry(model, state)
            loss = F.cross_entropy(
                output.logits.flatten(0, 1),
                piece.targets.flatten(),
                ignore_index=0,
                reduction="none",
            )
            losses.append(float(loss.sum()))
            counts.append(int((piece.targets != 0).sum()))
        words = sum(len(line.split()) + 1 for line in lines)
        size = sum(len(line.encode()) + 1 for line in lines)
        tokens = np.array(counts, dtype=np.float64)
        tallies = {
            "perplexity_per_word": perplexity(losses, tokens * words / tokens.sum(), "word"),
            "perplexity_per_token": perplexity(losses, tokens, "token"),
            "perplexity_per_byte": perplexity(losses, tokens * size / tokens.sum(), "byte"),
        }
        prompt = lines[0] if lines else ""
        begun = self.tokenizer.ids([prompt])[0][:PROMPT]
        written = self.generate(model, [self.tokenizer.decode(begun)], limit=30)[0]
        shown = Sample(self.tokenizer.decode(begun), prompt, self.tokenizer.decode(written.output))
        return Evaluation(
            metrics={name: measure(tally) for name, tally in tallies.items()},
            main="perplexity_per_word",
            higher=False,
            samples=(shown,),
            by_length={},
            lines=(),
        )

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
            ids = self.tokenizer.ids([prompt])[0]
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


def prepare(
    data: LanguageData, config: LanguageConfig, folder: Path, *, seed: int = 1
) -> tuple[Language, str]:
    """Read the text, learn the tokenizer, write the corpora; what was read, in words."""
    if all((folder / name).exists() for name in ("tokenizer.json", TRAIN, VALID)):
        return load(data, config, folder), "the corpus is prepared already"

    def read(sources: Sequence[Source], summary: Summary) -> Iterator[Line]:
        return read_lines(sources, data.text, None, summary)

    found: Parts[Line] = parts("language", data.data, data.valid, read, seed)
    tokenizer = Tokenizer.train(
        data.tokenizer, (line.text for line in found.train()), data.vocabulary, data.lowercase
    )
    written = [
        write(folder / name, _rows(lines(), tokenizer))
        for name, lines in ((TRAIN, found.train), (VALID, found.valid))
    ]
    tokenizer.save(folder / "tokenizer.json")
    if any(len(corpus.stream("tokens")) < 2 for corpus in written):
        raise RegardError(f"there is too little text to learn from: {found.told()}")
    notes = [note for note in (found.told(), tokenizer.note) if note]
    return Language(config, tokenizer, data.window_tokens, *written), "; ".join(notes)


def load(data: LanguageData, config: LanguageConfig, folder: Path) -> Language:
    """The task of a run that was prepared before."""
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    return Language(config, tokenizer, data.window_tokens, *corpora(folder))


def _rows(lines: Iterable[Line], tokenizer: Tokenizer) -> Iterator[dict[str, Any]]:
    for group in in_chunks(lines):
        texts = [line.text for line in group]
        for text, ids in zip(texts, tokenizer.ids(texts), strict=True):
            yield {"tokens": [*ids, EOS], "text": text}
