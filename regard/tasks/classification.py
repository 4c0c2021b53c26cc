"""Classification: texts with labels, pooled attention, accuracy and macro-F1."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data import Labelled, Labels, Source, Summary, read_labelled
from regard.data.batches import in_order, pad, shuffled
from regard.data.corpus import Corpus, in_chunks
from regard.data.tokenizer import Tokenizer
from regard.errors import RegardError
from regard.metrics import accuracy, macro_f1, measure
from regard.models import Classifier, ClassifierConfig
from regard.options import at_least
from regard.tasks.parts import Parts, noted, parts, there
from regard.tasks.task import Evaluation, Loss, Prediction, Sample, by_input_length

DEFAULTS: dict[str, Any] = {"epochs": 20, "patience": 5, "average": 3}


@dataclass(frozen=True)
class ClassificationData:
    """Where the labelled texts come from, and how they are cut into tokens."""

    data: list[str] | None = None
    """Tables with a text and a label, or fastText lines; the built-in ones unless said."""
    valid: list[str] | None = None
    """The same for validation; a part of the data is set aside unless said."""
    text: str | None = None
    """The column with the text."""
    label: str | None = None
    """The column with the label."""
    tokenizer: str = "word"
    """word, bpe, unigram, character or bytes."""
    vocabulary: int = 20000
    """Tokens at most."""
    lowercase: bool = True
    """Whether case is ignored."""
    max_tokens: int = 400
    """What goes beyond is cut off, and counted."""

    def __post_init__(self) -> None:
        at_least(self, max_tokens=1)


class Batch(NamedTuple):
    """Padded texts and their labels."""

    words: Tensor
    lengths: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Classification:
    """One of several labels for a text."""

    config: ClassifierConfig
    tokenizer: Tokenizer
    labels: Labels
    max_tokens: int
    train: Corpus | None = None
    valid: Corpus | None = None

    def build(self) -> Classifier:
        """A classifier with fresh weights."""
        return Classifier(self.config, self.tokenizer.size, len(self.labels))

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of similar length, in random order."""
        return shuffled(there(self.train).lengths("words"), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        rows = there(self.train).rows(examples)
        return Batch(*pad(rows["words"]), torch.tensor(rows["label"]))

    def count(self, batch: Batch) -> int:
        """Texts."""
        return len(batch.labels)

    def loss(
        self, model: nn.Module, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of the label."""
        output = model(batch.words, batch.lengths)
        total = F.cross_entropy(
            output.logits, batch.labels, reduction="sum", label_smoothing=smoothing
        )
        return Loss(total, output.balance), carried

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Accuracy on the validation data."""
        corpus = there(self.valid)
        columns = corpus.column("text"), corpus.column("label")
        return self.score(
            model,
            [Labelled(text, (self.labels.names[n],)) for text, n in zip(*columns, strict=True)],
        )

    def score(self, model: nn.Module, examples: Sequence[Labelled]) -> Evaluation:
        """Accuracy and macro-F1 on these examples, by length too."""
        for example in examples:
            self.labels.number(_only(example), example.where)
        texts = [_text(example) for example in examples]
        chances = self.classify(model, texts)
        predicted = [self.labels.names[row.argmax()] for row in chances]
        gold = [example.labels[0] for example in examples]
        metric = accuracy(predicted, gold)
        return Evaluation(
            metrics={"accuracy": measure(metric), "macro_f1": measure(macro_f1(predicted, gold))},
            main="accuracy",
            higher=True,
            samples=tuple(map(Sample, texts[:3], gold[:3], predicted[:3])),
            by_length=by_input_length(metric, [len(text.split()) for text in texts]),
            lines=tuple(
                {"text": text, "label": right, "predicted": found}
                for text, right, found in zip(texts, gold, predicted, strict=True)
            ),
        )

    def predict(self, model: nn.Module, texts: Sequence[str]) -> list[Prediction]:
        """The likeliest label of each text, and how likely each label is."""
        rows = self.tokenizer.ids(texts)
        return [
            Prediction(
                self.labels.names[row.argmax()],
                len(ids) > self.max_tokens,
                {"probabilities": dict(zip(self.labels.names, row.tolist(), strict=True))},
            )
            for row, ids in zip(self.classify(model, texts), rows, strict=True)
        ]

    @torch.no_grad()
    def classify(
        self, model: nn.Module, texts: Sequence[str], *, budget: int = 16384
    ) -> np.ndarray:
        """The probability of each label for each text, [n, labels], in order."""
        ids = [np.array(row[: self.max_tokens]) for row in self.tokenizer.ids(texts)]
        chances = np.zeros((len(ids), len(self.labels)))
        lengths = np.array([len(row) for row in ids], dtype=np.int32)
        for chosen in in_order(lengths, budget):
            logits = model(*pad([ids[i] for i in chosen])).logits
            chances[chosen] = logits.softmax(-1).numpy()
        return chances


def read(
    data: ClassificationData, sources: Sequence[Source], summary: Summary
) -> Iterator[Labelled]:
    """The labelled texts of some files."""
    return read_labelled(sources, data.text, data.label, summary=summary)


def prepare(data: ClassificationData, folder: Path, seed: int) -> str:
    """Read the texts, learn the tokenizer, write the corpora; what was read, in words."""
    found: Parts[Labelled] = parts("classify", data, read, seed)
    labels = Labels.of(_only(example) for example in found.known())
    if len(labels) < 2:
        raise RegardError(f"all examples have the label {labels.names[0]!r}: two are needed")
    tokenizer = Tokenizer.train(
        data.tokenizer, (_text(e) for e in found.train()), data.vocabulary, data.lowercase
    )
    cut = [0]
    found.write(folder, lambda examples: _rows(examples, tokenizer, labels, data.max_tokens, cut))
    tokenizer.save(folder / "tokenizer.json")
    labels.save(folder / "labels.json")
    shortened = f"{cut[0]} texts were cut at {data.max_tokens} tokens" if cut[0] else ""
    return noted(found.told(), tokenizer.note, shortened)


def load(data: ClassificationData, config: ClassifierConfig, folder: Path) -> Classification:
    """The task of a run whose data was prepared."""
    return Classification(
        config,
        Tokenizer.load(folder / "tokenizer.json"),
        Labels.load(folder / "labels.json"),
        data.max_tokens,
    )


def _rows(
    examples: Iterable[Labelled], tokenizer: Tokenizer, labels: Labels, most: int, cut: list[int]
) -> Iterator[dict[str, Any]]:
    for chunk in in_chunks(examples):
        texts = [_text(example) for example in chunk]
        for example, text, ids in zip(chunk, texts, tokenizer.ids(texts), strict=True):
            cut[0] += len(ids) > most
            label = labels.number(_only(example), example.where)
            yield {"words": ids[:most], "label": label, "text": text}


def _text(example: Labelled) -> str:
    if not isinstance(example.text, str):
        raise RegardError(f"{example.where}: vectors instead of a text are not supported here yet")
    return example.text


def _only(example: Labelled) -> str:
    if len(example.labels) != 1:
        raise RegardError(
            f"{example.where}: {len(example.labels)} labels; this task expects one a text"
        )
    return example.labels[0]
