"""Language modelling conditioned on a label or a vector: each text by itself."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from regard.data import DataReport, Labels, Line, Source, Summary, read_lines, resolve
from regard.data.batches import ordered_batches, pad, shuffled_batches
from regard.data.corpus import Corpus, in_chunks
from regard.data.shared_batches import map_batches
from regard.data.tokenizers.tokenizer import EOS, Tokenizer
from regard.data.tokenizers.vectors import SavedVectors
from regard.devices import to_device
from regard.errors import RegardError
from regard.metrics import measure
from regard.models import LanguageConfig, LanguageModel, LanguageState
from regard.tasks.language.generate import MAX_PROMPT_TOKENS, continue_prompt
from regard.tasks.language.perplexities import perplexities
from regard.tasks.language.task_options import Sampling
from regard.tasks.prediction import Prediction
from regard.tasks.shared.by_length import by_input_length
from regard.tasks.shared.losses import balance_loss, next_token_loss
from regard.tasks.shared.splits import Splits, require_corpus
from regard.tasks.shared.vector_inputs import (
    check_input,
    load_size,
    read_sequence,
    save_size,
    size_of,
)
from regard.tasks.shared.word_vectors import fill_embedding
from regard.tasks.task import Evaluation, Loss, Sample

MAX_TOKENS = 400
"""Tokens of a text that are read; longer texts are truncated, and their number is reported."""
Condition = str | np.ndarray
"""What a text is generated from: a label or a vector."""


@runtime_checkable
class ConditionOptions(Protocol):
    """Data options that name texts, and what they are generated from."""

    @property
    def data(self) -> list[str] | None:
        """The texts to train on."""
        ...

    @property
    def text(self) -> str | None:
        """The column of the texts."""
        ...

    @property
    def condition(self) -> str | None:
        """A column of labels, or a file of vectors."""
        ...


class Batch(NamedTuple):
    """Texts and, for each token, the one that follows (0 is padding); their conditions."""

    tokens: Tensor
    targets: Tensor
    conditions: Tensor


@dataclass(frozen=True)
class Conditional:
    """The next token of a text, given a label or a vector."""

    config: LanguageConfig
    tokenizer: Tokenizer
    labels: Labels | None
    """The labels that texts are generated from; None where it is vectors."""
    features: int | None
    """The size of these vectors."""
    kept: SavedVectors | None = None
    freeze: bool = False
    train: Corpus | None = None
    valid: Corpus | None = None

    def build(self) -> LanguageModel:
        """A language model with initial weights, or with pretrained word vectors."""
        model = LanguageModel(
            self.config,
            self.tokenizer.size,
            labels=0 if self.labels is None else len(self.labels),
            features=self.features or 0,
        )
        fill_embedding(model.embedding, self.kept, self.freeze)
        return model

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of similar length, in random order."""
        return shuffled_batches(require_corpus(self.train).lengths("tokens"), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        rows = require_corpus(self.train).rows(examples)
        return self._batch(rows["tokens"], rows["condition"])

    def count(self, batch: Batch) -> int:
        """The number of tokens to predict."""
        return int((batch.targets != 0).sum())

    def loss(
        self, model: LanguageModel, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of each next token, given the condition."""
        output, _ = model(batch.tokens, self.start(model, batch.conditions))
        total = next_token_loss(output.logits, batch.targets, smoothing)
        return Loss(total, balance_loss(output.balance)), carried

    @property
    def shares_validation(self) -> bool:
        """Processes share out the batches of its validation."""
        return True

    def validate(self, model: LanguageModel) -> Evaluation:
        """Perplexity on the validation texts."""
        corpus = require_corpus(self.valid)
        columns = zip(corpus.column("text"), corpus.column("condition"), strict=True)
        return self.evaluate(
            model,
            [
                Line(text, condition if self.labels is None else self.labels.names[condition])
                for text, condition in columns
            ],
        )

    @torch.no_grad()
    def evaluate(
        self, model: LanguageModel, examples: Sequence[Line], *, budget: int = 4096
    ) -> Evaluation:
        """Perplexity per token, word and byte of texts, each given its condition."""
        conditions = [self._value(example.condition, example.where) for example in examples]
        texts = [example.text for example in examples]
        rows = [np.array([*ids[:MAX_TOKENS], EOS]) for ids in self.tokenizer.ids(texts)]
        losses = np.zeros(len(rows))

        def compute(chosen: np.ndarray) -> list[float]:
            batch = self._batch([rows[i] for i in chosen], [conditions[i] for i in chosen])
            batch = to_device(batch, model)
            output, _ = model(batch.tokens, self.start(model, batch.conditions))
            log_probabilities = output.logits.log_softmax(-1)
            own = log_probabilities.gather(-1, batch.targets[..., None])[..., 0]
            sums: list[float] = own.masked_fill(batch.targets == 0, 0.0).sum(-1).tolist()
            return sums

        lengths = np.array([len(row) for row in rows], dtype=np.int32)
        for chosen, sums in map_batches(
            ordered_batches(lengths, budget),
            compute,
            "reading texts",
            unit="texts",
            total=len(rows),
            weight=len,
        ):
            losses[chosen] = -np.array(sums)
        words = [len(text.split()) + 1 for text in texts]
        tokens = [len(row) for row in rows]
        tallies = perplexities(losses, words, tokens, [len(text.encode()) + 1 for text in texts])
        state = self.start(model, self.condition_tensor(conditions[:1]))
        written = continue_prompt(model, [], state, Sampling(tokens=30))
        shown = [_as_text(example.condition) for example in examples]
        return Evaluation(
            metrics={name: measure(tally) for name, tally in tallies.items()},
            main="perplexity_per_word",
            higher=False,
            samples=(Sample(shown[0], texts[0], self.tokenizer.decode(written.output)),),
            by_length=by_input_length(tallies["perplexity_per_word"], words),
            lines=tuple(
                {"condition": condition, "text": text, "log_probability": -float(loss)}
                for condition, text, loss in zip(shown, texts, losses, strict=True)
            ),
            tally=tallies["perplexity_per_word"],
        )

    @torch.no_grad()
    def predict(
        self, model: LanguageModel, texts: Sequence[str | np.ndarray], **options: Any
    ) -> list[Prediction]:
        """A text generated from each label or vector, which a prompt may follow after a tab.

        Vectors are arrays [d], or names of `.npy` files; `options` are those of `Sampling`.
        """
        predictions = []
        for given in texts:
            condition, prompt = self.split_prompt(given)
            ids = self.tokenizer.ids([prompt])[0] if prompt else []
            state = self.start(model, self.condition_tensor([condition]))
            hypothesis = continue_prompt(model, ids, state, Sampling(**options))
            predictions.append(
                Prediction(
                    self.tokenizer.decode(hypothesis.output),
                    len(ids) > MAX_PROMPT_TOKENS,
                    {"log_probability": hypothesis.log_probability},
                )
            )
        return predictions

    def split_prompt(self, given: str | np.ndarray) -> tuple[Any, str]:
        """The number of the label, or the vector; and the text to continue."""
        condition: Condition = given
        prompt = ""
        if isinstance(given, str):
            condition, _, prompt = given.partition("\t")
            condition = condition.strip()
        if self.features is None:
            return self._value(condition, ""), prompt
        vectors = read_sequence(condition, self.features)
        if len(vectors) != 1:
            raise RegardError(
                f"{_as_text(condition)}: {len(vectors)} vectors: expected one per text"
            )
        return vectors[0], prompt

    def _value(self, condition: Condition | None, where: str) -> Any:
        """What the model is given: the number of a label, or a vector."""
        if self.labels is None:
            check_input(condition, self.features, where)
            return condition
        if not isinstance(condition, str):
            raise RegardError(f"{where}: no label, but this run generates from labels")
        return self.labels.number(condition, where)

    def _batch(self, rows: Sequence[np.ndarray], conditions: Sequence[Any]) -> Batch:
        targets, _ = pad(rows)
        begin = torch.full((len(rows), 1), EOS)
        tokens = torch.cat([begin, targets[:, :-1]], 1)
        return Batch(tokens, targets, self.condition_tensor(conditions))

    def condition_tensor(self, conditions: Sequence[Any]) -> Tensor:
        """Labels as numbers [b], or vectors [b, d]."""
        if self.features is None:
            return torch.tensor(conditions, dtype=torch.long)
        return torch.from_numpy(np.stack(list(conditions)).astype(np.float32))

    def start(self, model: LanguageModel, conditions: Tensor) -> LanguageState:
        """The state before the first token."""
        conditions = to_device(conditions, model)
        if self.features is None:
            return model.start(len(conditions), label=conditions)
        return model.start(len(conditions), vector=conditions)


def read(data: ConditionOptions, sources: Sequence[Source], summary: Summary) -> Iterator[Line]:
    """Texts with their conditions.

    The option `condition` names the vectors of the training data; other texts bring their own,
    as in test.txt test.npy.
    """
    condition = data.condition or ""
    arrays = [source for source in sources if source.suffix == ".npy"]
    texts = [source for source in sources if source.suffix != ".npy"]
    if not condition.lower().endswith(".npy"):
        return read_lines(sources, data.text, condition, summary)
    trained = [source.name for source in resolve(data.data or [])]
    if not arrays and [source.name for source in texts] != trained:
        raise RegardError(
            f"{texts[0].name}: no vectors for this file: name them too, as in test.txt test.npy"
        )
    if len(arrays) > 1 or not texts:
        raise RegardError(
            f"{len(arrays)} .npy files and {len(texts)} text files: expected one .npy file and "
            "its text"
        )
    return read_lines(texts, data.text, arrays[0].name if arrays else condition, summary)


def write(
    splits: Splits[Line], tokenizer: Tokenizer, folder: Path, notes: Sequence[str]
) -> DataReport:
    """Write the corpora of texts and their conditions; what was understood of them."""
    first = next(splits.train(), None)
    features = None if first is None else size_of(first.condition)
    labels, counts, note = None, Counter[str](), ""
    if features is None:
        counts.update(str(line.condition) for line in splits.known())
        labels = Labels.of(counts)
        labels.save(folder / "labels.json")
    else:
        save_size(folder, features)
        note = f"texts from vectors of {features} numbers"
    truncated = [0]
    sizes = splits.write(folder, lambda lines: _rows(lines, tokenizer, labels, features, truncated))
    shortened = f"{truncated[0]} texts were truncated to {MAX_TOKENS} tokens"
    return splits.report(
        sizes,
        labels=counts,
        vocabularies={"text": tokenizer.size},
        notes=[*notes, note, shortened if truncated[0] else ""],
    )


def load_conditions(folder: Path) -> tuple[Labels | None, int | None]:
    """The labels, or the size of the vectors, that `write` wrote down."""
    features = load_size(folder)
    return (Labels.load(folder / "labels.json", 1) if features is None else None), features


def _rows(
    lines: Iterable[Line],
    tokenizer: Tokenizer,
    labels: Labels | None,
    features: int | None,
    truncated: list[int],
) -> Iterator[dict[str, Any]]:
    for group in in_chunks(lines):
        rows = tokenizer.ids([line.text for line in group])
        for line, ids in zip(group, rows, strict=True):
            truncated[0] += len(ids) > MAX_TOKENS
            condition: Any = line.condition
            if labels is None:
                check_input(condition, features, line.where)
            else:
                condition = labels.number(str(condition), line.where)
            yield {"tokens": [*ids[:MAX_TOKENS], EOS], "condition": condition, "text": line.text}


def _as_text(condition: object) -> str:
    if isinstance(condition, str):
        return condition
    numbers = np.asarray(condition).ravel()
    return re.sub(r"\s+", " ", np.array2string(numbers, precision=3, threshold=8, edgeitems=2))
