"""Classification: texts with labels, pooled attention, accuracy and macro-F1."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data import Labelled, Labels, Source, Summary, read_labelled
from regard.data.batches import in_order, pad, pad_vectors, shuffled
from regard.data.corpus import CHUNK, Corpus, in_chunks
from regard.data.tokenizer import Tokenizer
from regard.data.vectors import KeptVectors
from regard.errors import RegardError
from regard.metrics import (
    Tally,
    accuracy,
    macro_f1,
    measure,
    multilabel_macro_f1,
    multilabel_micro_f1,
)
from regard.models import Classifier, ClassifierConfig, Output
from regard.options import at_least, share
from regard.tasks import features as frames
from regard.tasks.parts import Parts, noted, parts, there
from regard.tasks.pretrained import check_vectors, copy_vectors, fill, kept_vectors, sized
from regard.tasks.task import Evaluation, Loss, Prediction, Sample, by_input_length, forget, weighed

DEFAULTS: dict[str, Any] = {
    "epochs": 15,
    "patience": 5,
    "batch_tokens": 1024,
    "warmup": 100,
    "label_smoothing": 0.1,
    "average": 5,
}


@dataclass(frozen=True)
class ClassificationData:
    """Where the labelled texts come from, and how they are cut into tokens."""

    data: list[str] | None = None
    """Tables with a text and a label, fastText lines, or vectors (x.npy labels.txt); the built-in
    texts unless said."""
    valid: list[str] | None = None
    """The same for validation; a part of the data is set aside unless said."""
    text: str | None = None
    """The column with the text."""
    label: str | None = None
    """The column with the label."""
    several: bool = False
    """Any number of labels may hold at once, rather than one of them."""
    separator: str = ","
    """What parts labels in one cell, and in the output, where there are several."""
    tokenizer: str = "word"
    """word, bpe, unigram, character or bytes."""
    vocabulary: int = 20000
    """Tokens at most."""
    lowercase: bool = True
    """Whether case is ignored."""
    max_tokens: int = 400
    """What goes beyond is cut off, and counted."""
    vectors: str | None = None
    """A file of word vectors to begin with: GloVe text, .vec, or gzip of either."""
    freeze: bool = False
    """Word vectors stay as they are in the file."""
    forget: float = 0.2
    """Share of words taken for unknown in training, so that no single one decides."""

    def __post_init__(self) -> None:
        at_least(self, max_tokens=1)
        share(self, "forget")
        check_vectors(self, self.tokenizer)
        if not self.separator:
            raise RegardError("option separator: expected a text, got an empty one")


class Batch(NamedTuple):
    """Padded texts and their labels: a number each, or 0 and 1 for each label."""

    words: Tensor
    lengths: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Classification:
    """One of several labels for a text or a sequence of vectors; or any number of them."""

    config: ClassifierConfig
    words: Tokenizer | None
    """What cuts texts into words; None where vectors come in."""
    labels: Labels
    max_tokens: int
    features: int | None = None
    """The size of vectors that come in instead of words."""
    separator: str | None = None
    """What parts labels in the output, where there are several."""
    kept: KeptVectors | None = None
    freeze: bool = False
    forgotten: float = 0.0
    """Share of words taken for unknown in training."""
    train: Corpus | None = None
    valid: Corpus | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts texts into words."""
        return frames.tokens(self.words)

    @property
    def several(self) -> bool:
        """Whether any number of labels may hold at once."""
        return self.separator is not None

    def build(self) -> Classifier:
        """A classifier with fresh weights, or with the word vectors of a file."""
        words = None if self.words is None else self.words.size
        model = Classifier(self.config, words, len(self.labels), features=self.features)
        fill(model.inputs, self.kept, self.freeze)
        return model

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of similar length, in random order."""
        return shuffled(there(self.train).lengths("words"), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        rows = there(self.train).rows(examples)
        if self.several:
            labels = torch.zeros(len(examples), len(self.labels))
            for row, held in zip(labels, rows["labels"], strict=True):
                row[torch.tensor(held, dtype=torch.long)] = 1.0
        else:
            labels = torch.tensor([int(held[0]) for held in rows["labels"]])
        return Batch(*self._padded(rows["words"]), labels)

    def count(self, batch: Batch) -> int:
        """Texts."""
        return len(batch.labels)

    def loss(
        self, model: nn.Module, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of the label, or of each label's being there."""
        words = batch.words
        if self.features is None:
            words = forget(words, self.forgotten)
        output = model(words, batch.lengths)
        if self.several:
            wanted = batch.labels * (1 - smoothing) + smoothing / 2
            total = F.binary_cross_entropy_with_logits(output.logits, wanted, reduction="sum")
        else:
            total = F.cross_entropy(
                output.logits, batch.labels, reduction="sum", label_smoothing=smoothing
            )
        return Loss(total, weighed(output.balance)), carried

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Accuracy on the validation data."""
        corpus = there(self.valid)
        inputs = corpus.column("text" if self.features is None else "words")
        columns = zip(inputs, corpus.column("labels"), corpus.column("text"), strict=True)
        return self.score(
            model,
            [
                Labelled(given, tuple(self.labels.names[n] for n in held), text)
                for given, held, text in columns
            ],
        )

    def score(self, model: nn.Module, examples: Sequence[Labelled]) -> Evaluation:
        """Accuracy and macro-F1 on these examples, by length too; micro-F1 of several labels."""
        for example in examples:
            frames.fit(example.text, self.features, example.where)
            for label in example.labels if self.several else [_only(example)]:
                self.labels.number(label, example.where)
        inputs = [example.text for example in examples]
        predicted = [self._chosen(row) for row in self.classify(model, inputs)]
        gold = [example.labels for example in examples]
        tallies, main = _measured(predicted, gold, self.several)
        texts = [e.text if isinstance(e.text, str) else e.where for e in examples]
        lengths = [len(one.split() if isinstance(one, str) else one) for one in inputs]
        pairs = zip(gold, predicted, strict=True)
        shown = [(self._written(right), self._written(out)) for right, out in pairs]
        return Evaluation(
            metrics={name: measure(tally) for name, tally in tallies.items()},
            main=main,
            higher=True,
            samples=tuple(Sample(texts[i], *shown[i]) for i in range(min(3, len(texts)))),
            by_length=by_input_length(tallies[main], lengths),
            lines=tuple(
                {"text": text, "label": right, "predicted": out}
                for text, (right, out) in zip(texts, shown, strict=True)
            ),
        )

    def predict(self, model: nn.Module, texts: Sequence[str | np.ndarray]) -> list[Prediction]:
        """The likeliest label of each text, and how likely each label is.

        A run of vectors takes arrays [t, d], or names of `.npy` files.
        """
        rows = self._read(texts)
        made: list[Prediction] = [Prediction("")] * len(rows)
        gated = self.config.experts > 0
        for chosen, chances, output in self._outputs(model, rows, need_weights=gated):
            for place, row in enumerate(chosen):
                found = dict(zip(self.labels.names, chances[place].tolist(), strict=True))
                details: dict[str, Any] = {"probabilities": found}
                if gated:
                    details["experts"] = output.weights["experts"][place, 0, 0].tolist()
                made[row] = Prediction(
                    self._written(self._chosen(chances[place])),
                    len(rows[row]) > self.max_tokens,
                    details,
                )
        return made

    def classify(
        self, model: nn.Module, texts: Sequence[str | np.ndarray], *, budget: int = 16384
    ) -> np.ndarray:
        """The probability of each label for each text, [n, labels], in order."""
        rows = self._read(texts)
        chances = np.zeros((len(rows), len(self.labels)))
        for chosen, found, _ in self._outputs(model, rows, budget=budget):
            chances[chosen] = found
        return chances

    def _outputs(
        self,
        model: nn.Module,
        rows: Sequence[np.ndarray],
        *,
        budget: int = 16384,
        need_weights: bool = False,
    ) -> Iterator[tuple[np.ndarray, np.ndarray, Output]]:
        """For batches of rows: which they are, the chances of their labels, and all else."""
        cut = [row[: self.max_tokens] for row in rows]
        for chosen in in_order(np.array([len(row) for row in cut], dtype=np.int32), budget):
            with torch.no_grad():
                output = model(*self._padded([cut[i] for i in chosen]), need_weights=need_weights)
            logits = output.logits
            yield chosen, (logits.sigmoid() if self.several else logits.softmax(-1)).numpy(), output

    def _read(self, given: Sequence[str | np.ndarray]) -> list[np.ndarray]:
        if self.features is not None:
            return [frames.sequence(one, self.features) for one in given]
        return [np.array(row) for row in self.tokenizer.ids([str(one) for one in given])]

    def _padded(self, rows: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
        return pad(rows) if self.features is None else pad_vectors(rows)

    def _chosen(self, chances: np.ndarray) -> tuple[str, ...]:
        if not self.several:
            return (self.labels.names[chances.argmax()],)
        return tuple(self.labels.names[n] for n in np.flatnonzero(chances > 0.5))

    def _written(self, labels: Sequence[str]) -> str:
        return (self.separator or " ").join(labels)


def _measured(
    predicted: Sequence[tuple[str, ...]], gold: Sequence[tuple[str, ...]], several: bool
) -> tuple[dict[str, Tally], str]:
    """What is measured, by name, and the name of what counts most."""
    if not several:
        ours, theirs = [one for (one,) in predicted], [one for (one,) in gold]
        found = {"accuracy": accuracy(ours, theirs), "macro_f1": macro_f1(ours, theirs)}
        return found, "accuracy"
    sets = [frozenset(one) for one in predicted], [frozenset(one) for one in gold]
    found = {
        "micro_f1": multilabel_micro_f1(predicted, gold),
        "macro_f1": multilabel_macro_f1(predicted, gold),
        "accuracy": accuracy(*sets),
    }
    return found, "micro_f1"


def read(
    data: ClassificationData, sources: Sequence[Source], summary: Summary
) -> Iterator[Labelled]:
    """The labelled texts of some files."""
    separator = data.separator if data.several else None
    return read_labelled(sources, data.text, data.label, separator, summary)


def prepare(data: ClassificationData, folder: Path, seed: int) -> str:
    """Read the texts, learn the tokenizer, write the corpora; what was read, in words."""
    found: Parts[Labelled] = parts("classify", data, read, seed)
    first = next(found.train(), None)
    features = None if first is None else frames.size_of(first.text)
    counts, tops = Counter[str](), list[Labelled]()
    for example in found.known():
        counts.update(example.labels if data.several else [_only(example)])
        if example.where.endswith(("sv:1", "sv.gz:1")):  # the first line of a TSV or CSV file
            tops.append(example)
    labels = Labels.of(counts)
    if len(labels) < (1 if data.several else 2):
        only = f"all examples have the label {labels.names[0]!r}: two are needed"
        raise RegardError(only if labels.names else f"no example has a label: {found.told()}")
    cut, tokenizer, told = [0], None, ""
    if features is None:
        tokenizer = Tokenizer.train(
            data.tokenizer,
            (_words(e.text, None, e.where) for e in found.train()),
            data.vocabulary,
            data.lowercase,
        )
        told = noted(tokenizer.note, copy_vectors(data, tokenizer, folder))
        tokenizer.save(folder / "tokenizer.json")
    elif data.vectors is not None:
        raise RegardError("option vectors: these data have vectors already, not words")
    else:
        frames.save_size(folder, features)
        told = f"vectors of {features} numbers"
    found.write(
        folder,
        lambda examples: _rows(examples, tokenizer, features, labels, data.max_tokens, cut),
        chunk=CHUNK if features is None else frames.ROWS,
    )
    labels.save(folder / "labels.json")
    shortened = f"{cut[0]} texts were cut at {data.max_tokens} tokens" if cut[0] else ""
    return noted(found.told(), told, shortened, *_headers(tops, counts))


def load(data: ClassificationData, config: ClassifierConfig, folder: Path) -> Classification:
    """The task of a run whose data was prepared."""
    features, kept = frames.load_size(folder), kept_vectors(data, folder)
    return Classification(
        sized(config, kept),
        Tokenizer.load(folder / "tokenizer.json") if features is None else None,
        Labels.load(folder / "labels.json"),
        data.max_tokens,
        features=features,
        separator=data.separator if data.several else None,
        kept=kept,
        freeze=data.freeze,
        forgotten=data.forget,
    )


def _rows(
    examples: Iterable[Labelled],
    tokenizer: Tokenizer | None,
    features: int | None,
    labels: Labels,
    most: int,
    cut: list[int],
) -> Iterator[dict[str, Any]]:
    for chunk in in_chunks(examples, CHUNK if tokenizer is not None else frames.ROWS):
        for example in chunk:
            frames.fit(example.text, features, example.where)
        rows: Sequence[Any] = [example.text for example in chunk]
        if tokenizer is not None:
            rows = tokenizer.ids(rows)
        for example, row in zip(chunk, rows, strict=True):
            cut[0] += len(row) > most
            yield {
                "words": row[:most],
                "labels": [labels.number(label, example.where) for label in example.labels],
                "text": example.text if isinstance(example.text, str) else example.where,
            }


def _words(text: str | np.ndarray, features: None, where: str) -> str:
    frames.fit(text, features, where)
    return str(text)


def _headers(tops: Sequence[Labelled], counts: Mapping[str, int]) -> Iterator[str]:
    """What to say of first lines that look like names of columns: no example has their label."""
    for example in tops:
        if len(counts) > 2 and [counts[label] for label in example.labels] == [1]:
            yield (
                f"{example.where} counts as an example, though no other has its label: if it names "
                f"the columns, say so with --label {example.labels[0]!r}"
            )


def _only(example: Labelled) -> str:
    if len(example.labels) != 1:
        raise RegardError(
            f"{example.where}: {len(example.labels)} labels; this task expects one a text, or "
            f"--several"
        )
    return example.labels[0]
