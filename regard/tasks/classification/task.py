"""Classification: texts with labels, pooled attention, accuracy and macro F1."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from regard.data import DataReport, Labelled, Labels, Source, Summary, read_labelled
from regard.data.batches import ordered_batches, pad, pad_vectors, shuffled_batches
from regard.data.corpus import CHUNK, Corpus, in_chunks
from regard.data.ngram_counts import NGramCounts
from regard.data.plausibility import check_text_and_label
from regard.data.shared_batches import map_batches
from regard.data.tokenizers.tokenizer import SPECIAL, Tokenizer
from regard.data.tokenizers.vectors import SavedVectors
from regard.devices import to_device
from regard.errors import OptionError, RegardError
from regard.layers import NaiveBayes, NGramEvidence
from regard.metrics import (
    Tally,
    accuracy,
    label_report,
    label_set_report,
    macro_f1,
    measure,
    multilabel_macro_f1,
    multilabel_micro_f1,
)
from regard.models import Classifier, ClassifierConfig, Output
from regard.models.pretrained.architecture import EncoderArchitecture
from regard.models.pretrained.encoder_classifier import PretrainedClassifier
from regard.progress import track
from regard.tasks.classification.class_weights import (
    balanced_weights,
    count_labels,
    missing_note,
    positive_weights,
    skew_note,
)
from regard.tasks.classification.task_options import ClassificationData
from regard.tasks.prediction import Prediction
from regard.tasks.shared.by_length import by_input_length
from regard.tasks.shared.extra_metrics import extra_metrics
from regard.tasks.shared.length_limits import check_max_length
from regard.tasks.shared.losses import balance_loss, drop_words
from regard.tasks.shared.pretrained.pretrained_encoder import (
    PretrainedPart,
    copy_pretrained,
    load_pretrained,
)
from regard.tasks.shared.pretrained.pretrained_options import check_pretrained
from regard.tasks.shared.splits import TRAIN, Splits, join_notes, make_splits, require_corpus
from regard.tasks.shared.vector_inputs import (
    CHUNK_ROWS,
    check_input,
    load_size,
    read_sequence,
    require_tokenizer,
    save_size,
    size_of,
)
from regard.tasks.shared.word_vectors import (
    copy_vectors,
    fill_embedding,
    load_vectors,
    with_word_size,
)
from regard.tasks.task import Evaluation, Loss, Sample

AnyClassifier = Classifier | PretrainedClassifier
NGRAMS = "ngrams.safetensors"
MOST_WEIGHED = 5000
"""Texts by which votes are weighed when training begins."""


class Batch(NamedTuple):
    """Padded texts and their labels: one number each, or 0 and 1 for each of several labels."""

    words: Tensor
    lengths: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Classification:
    """One of several labels for a text or a sequence of vectors, or any number of them."""

    config: ClassifierConfig
    words: Tokenizer | None
    """The tokenizer; None where the inputs are vectors."""
    labels: Labels
    max_tokens: int
    features: int | None = None
    """The size of input vectors; None where the inputs are words."""
    separator: str | None = None
    """The separator of labels in the output, in multi-label classification."""
    kept: SavedVectors | None = None
    freeze: bool = False
    word_dropout: float = 0.0
    """Probability that a word is replaced by the unknown token in training."""
    class_weights: str = "none"
    """Weights of labels in the loss: none or balanced."""
    pretrained: PretrainedPart | None = None
    """The pretrained encoder, if there is one."""
    ngrams: NGramCounts | None = None
    """The n-grams of the training texts that vote beside the network."""
    train: Corpus | None = None
    valid: Corpus | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of a run that reads words."""
        return require_tokenizer(self.words)

    @property
    def several(self) -> bool:
        """Whether any number of labels may hold at once."""
        return self.separator is not None

    @property
    def frame(self) -> dict[str, str]:
        """The names of the tokens that a pretrained encoder puts around a text."""
        if self.pretrained is None:
            return {}
        architecture = self.pretrained.architecture
        return {"first": architecture.first, "last": architecture.last}

    @cached_property
    def label_weights(self) -> Tensor | None:
        """Weights of the labels in the loss, from the training data; None where all are 1."""
        if self.class_weights == "none":
            return None
        rows = list(require_corpus(self.train).column("labels"))
        counts = count_labels(rows, len(self.labels))
        return positive_weights(counts, len(rows)) if self.several else balanced_weights(counts)

    def build(self) -> AnyClassifier:
        """A classifier with initial weights, or with pretrained word vectors or blocks."""
        if self.pretrained is not None:
            return self._build_pretrained(self.pretrained)
        words = None if self.words is None else self.words.size
        model = Classifier(
            self.config,
            words,
            len(self.labels),
            features=self.features,
            evidence=None if self.ngrams is None else self._evidence(self.ngrams),
        )
        fill_embedding(model.inputs, self.kept, self.freeze)
        if model.naive_bayes is not None and self.train is not None:
            self._start_votes(model.naive_bayes, self.train)
        return model

    @torch.no_grad()
    def _start_votes(self, votes: NaiveBayes, corpus: Corpus) -> None:
        """Weigh votes by how well they predict the labels of texts that are left out of counts."""
        chosen = np.linspace(0, len(corpus) - 1, min(len(corpus), MOST_WEIGHED)).astype(int)
        evidence, labels = [], []
        for part in ordered_batches(corpus.lengths("words")[chosen], 4096):
            batch = self.batch_of(corpus, chosen[part])
            own = self.hot(batch.labels)
            evidence.append(votes.evidence_of_texts(batch.words, batch.lengths, own))
            labels.append(batch.labels)
        joined = torch.cat(labels)
        votes.fit(torch.cat(evidence), lambda logits: self.entropy(logits, joined, 0.0))

    def hot(self, labels: Tensor) -> Float[Tensor, "b c"]:
        """1 for each label of each text, 0 for the others."""
        return labels if self.several else F.one_hot(labels, len(self.labels)).float()

    def _evidence(self, ngrams: NGramCounts) -> NGramEvidence:
        return NGramEvidence(
            ngrams.keys,
            ngrams.counts,
            vocabulary=self.tokenizer.size,
            longest=ngrams.longest,
            first_word=len(SPECIAL),
        )

    def _build_pretrained(self, part: PretrainedPart) -> PretrainedClassifier:
        network = PretrainedClassifier(part.architecture, len(self.labels), self.config.dropout)
        if self.train is not None:  # in training; a run in use has weights of its own
            part.start(network)
        return network

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of similar length, in random order."""
        return shuffled_batches(require_corpus(self.train).lengths("words"), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        return self.batch_of(require_corpus(self.train), examples)

    def batch_of(self, corpus: Corpus, examples: np.ndarray) -> Batch:
        """Some examples of a corpus."""
        rows = corpus.rows(examples)
        if self.several:
            labels = torch.zeros(len(examples), len(self.labels))
            for row, numbers in zip(labels, rows["labels"], strict=True):
                row[torch.tensor(numbers, dtype=torch.long)] = 1.0
        else:
            labels = torch.tensor([int(numbers[0]) for numbers in rows["labels"]])
        return Batch(*self._pad(rows["words"]), labels)

    def count(self, batch: Batch) -> int:
        """The number of texts."""
        return len(batch.labels)

    def loss(
        self, model: AnyClassifier, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of the label, or binary cross-entropy of each of several labels.

        Where n-grams vote, they and the network learn apart, so that the network does not learn
        only what is left to explain: mostly exceptions. The loss is the mean of theirs.
        """
        words = batch.words
        if self.features is None and model.training:
            words = drop_words(words, self.word_dropout)
        if not model.training or not isinstance(model, Classifier) or model.naive_bayes is None:
            output = model(words, batch.lengths)
            total = self.entropy(output.logits, batch.labels, smoothing)
        else:
            output = model(words, batch.lengths, votes=False)
            labels = batch.labels
            votes = model.naive_bayes(batch.words, batch.lengths, self.hot(labels))
            alone = self.entropy(output.logits, labels, smoothing)
            total = (alone + self.entropy(votes, labels, smoothing)) / 2
        return Loss(total, balance_loss(output.balance)), carried

    def entropy(self, logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        """The summed cross-entropy of labels, as in a batch."""
        weights = to_device(self.label_weights, logits.device)
        if self.several:
            targets = labels * (1 - smoothing) + smoothing / 2
            return F.binary_cross_entropy_with_logits(
                logits, targets, pos_weight=weights, reduction="sum"
            )
        return F.cross_entropy(logits, labels, weights, reduction="sum", label_smoothing=smoothing)

    def log_likelihoods(self, logits: Tensor, labels: Tensor) -> Float[Tensor, "b"]:
        """The log-probability of the labels of each text, times the weight of its label."""
        weights = to_device(self.label_weights, logits.device)
        if self.several:
            return -F.binary_cross_entropy_with_logits(
                logits, labels, pos_weight=weights, reduction="none"
            ).sum(1)
        return -F.cross_entropy(logits, labels, weights, reduction="none")

    @property
    def shares_validation(self) -> bool:
        """Processes share out the batches of its validation."""
        return True

    def validate(self, model: AnyClassifier) -> Evaluation:
        """Accuracy on the validation data, by which the network is weighed against votes first.

        Beside votes, the likelihood of the labels decides which weights are the best: the accuracy
        of few texts hardly changes while the network learns to correct the votes.
        """
        merit = None
        if isinstance(model, Classifier) and model.naive_bayes is not None:
            merit = fit_network_weight(self, model, model.naive_bayes)
        corpus = require_corpus(self.valid)
        inputs = corpus.column("text" if self.features is None else "words")
        columns = zip(inputs, corpus.column("labels"), corpus.column("text"), strict=True)
        evaluation = self.evaluate(
            model,
            [
                Labelled(given, tuple(self.labels.names[n] for n in numbers), text)
                for given, numbers, text in columns
            ],
        )
        return replace(evaluation, merit=merit)

    def evaluate(
        self, model: AnyClassifier, examples: Sequence[Labelled], *, metrics: Sequence[str] = ()
    ) -> Evaluation:
        """Accuracy and macro F1, by length too; micro F1 in multi-label classification."""
        for example in examples:
            check_input(example.text, self.features, example.where)
            for label in example.labels if self.several else [_single_label(example)]:
                self.labels.number(label, example.where)
        inputs = [example.text for example in examples]
        predicted = self._choose(self.probabilities(model, inputs))
        gold = [example.labels for example in examples]
        tallies, main = _metrics(predicted, gold, self.several)
        if self.several:
            tallies |= extra_metrics("label sets", metrics, predicted, gold)
            report = label_set_report(predicted, gold)
        else:
            single = [labels[0] for labels in predicted], [labels[0] for labels in gold]
            tallies |= extra_metrics("labels", metrics, *single)
            report = label_report(*single)
        texts = [e.text if isinstance(e.text, str) else e.where for e in examples]
        lengths = [len(text.split() if isinstance(text, str) else text) for text in inputs]
        pairs = [
            (self._join(expected), self._join(output))
            for expected, output in zip(gold, predicted, strict=True)
        ]
        return Evaluation(
            metrics={name: measure(tally) for name, tally in tallies.items()},
            main=main,
            higher=True,
            samples=tuple(Sample(texts[i], *pairs[i]) for i in range(min(3, len(texts)))),
            by_length=by_input_length(tallies[main], lengths),
            lines=tuple(
                {"text": text, "label": expected, "predicted": output}
                for text, (expected, output) in zip(texts, pairs, strict=True)
            ),
            tally=tallies[main],
            report=report,
        )

    def predict(self, model: AnyClassifier, texts: Sequence[str | np.ndarray]) -> list[Prediction]:
        """The most likely label of each text, and the probability of each label.

        A run that reads vectors takes arrays [t, d], or names of `.npy` files.
        """
        rows = self._read(texts)
        most = self.max_tokens
        truncated_rows = [row if len(row) <= most else row[:most] for row in rows]
        predictions: list[Prediction] = [Prediction("")] * len(rows)
        gated = self.config.experts > 0
        batches = self._batches(truncated_rows)
        for chosen in track(batches, "classifying", len(rows), "texts", weight=len):
            probabilities, output = self._output(model, truncated_rows, chosen, need_weights=gated)
            labels = self._choose(probabilities)
            by_row = zip(chosen.tolist(), probabilities.tolist(), labels, strict=True)
            for i, (row, values, best) in enumerate(by_row):
                truncated = rows[row] is not truncated_rows[row]
                predictions[row] = self._prediction(best, values, output, i, truncated)
        return predictions

    def predict_with_output(
        self, model: AnyClassifier, text: str, inputs: tuple[Tensor, Tensor]
    ) -> tuple[Prediction, Output]:
        """The prediction of one text, and all that the model computed for it, weights included."""
        with torch.no_grad():
            output = model(*to_device(inputs, model), need_weights=True)
        truncated = len(self._read([text])[0]) > self.max_tokens
        probabilities = self._normalize(output.logits)
        (best,), (values,) = self._choose(probabilities), probabilities.tolist()
        return self._prediction(best, values, output, 0, truncated), output

    def probabilities(
        self, model: AnyClassifier, texts: Sequence[str | np.ndarray], *, budget: int = 16384
    ) -> np.ndarray:
        """The probability of each label for each text, [n, labels], in order."""
        rows = self._read(texts)
        truncated = [row[: self.max_tokens] for row in rows]
        probabilities = np.zeros((len(rows), len(self.labels)))

        def compute(chosen: np.ndarray) -> list[list[float]]:
            values: list[list[float]] = self._output(model, truncated, chosen)[0].tolist()
            return values

        batches = self._batches(truncated, budget)
        for chosen, values in map_batches(
            batches, compute, "classifying", unit="texts", total=len(rows), weight=len
        ):
            probabilities[chosen] = values
        return probabilities

    def _prediction(
        self,
        best: Sequence[str],
        probabilities: Sequence[float],
        output: Output,
        row: int,
        truncated: bool,
    ) -> Prediction:
        by_label = dict(zip(self.labels.names, probabilities, strict=True))
        details: dict[str, Any] = {"probabilities": by_label}
        if self.config.experts > 0:
            details["experts"] = output.weights["experts"][row, 0, 0].tolist()
        return Prediction(self._join(best), truncated, details)

    def _batches(self, rows: Sequence[np.ndarray], budget: int = 16384) -> list[np.ndarray]:
        return ordered_batches(np.array([len(row) for row in rows], dtype=np.int32), budget)

    @torch.no_grad()
    def _output(
        self,
        model: AnyClassifier,
        rows: Sequence[np.ndarray],
        chosen: np.ndarray,
        *,
        need_weights: bool = False,
    ) -> tuple[np.ndarray, Output]:
        """The probabilities of labels for the chosen rows, and the output of the model."""
        inputs = to_device(self._pad([rows[i] for i in chosen]), model)
        output = model(*inputs, need_weights=need_weights)
        return self._normalize(output.logits), output

    def _normalize(self, logits: Tensor) -> np.ndarray:
        probabilities = logits.sigmoid() if self.several else logits.softmax(-1)
        array: np.ndarray = probabilities.cpu().numpy()
        return array

    def _read(self, texts: Sequence[str | np.ndarray]) -> list[np.ndarray]:
        if self.features is not None:
            return [read_sequence(text, self.features) for text in texts]
        return [np.array(row) for row in self.tokenizer.ids([str(text) for text in texts])]

    def _pad(self, rows: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
        return pad(rows) if self.features is None else pad_vectors(rows)

    def _choose(self, probabilities: np.ndarray) -> list[tuple[str, ...]]:
        """The labels of each row of probabilities: the most likely one, or all above a half."""
        names = self.labels.names
        if not self.several:
            return [(names[n],) for n in probabilities.argmax(1).tolist()]
        return [tuple(names[n] for n in np.flatnonzero(row > 0.5)) for row in probabilities]

    def _join(self, labels: Sequence[str]) -> str:
        return (self.separator or " ").join(labels)


NETWORK_WEIGHTS = np.append(0.0, 2.0 ** np.arange(-4, 1.01, 0.25))
"""Weights of a network beside votes, of which validation chooses one."""


@torch.no_grad()
def fit_network_weight(task: Classification, model: Classifier, votes: NaiveBayes) -> float:
    """Weigh the logits of the network by the likelihood of the validation data.

    A network that has learned its texts by heart is far too sure of others, unlike the votes. It
    gets the weight for which the likelihood gains most beyond the standard error of the gain, and
    none where no gain is larger than that. Returns the likelihood of a text with that gain.
    """
    corpus = require_corpus(task.valid)
    alone, gains = [], []
    for chosen in ordered_batches(corpus.lengths("words"), 16384):
        batch = to_device(task.batch_of(corpus, chosen), model)
        logits = model(batch.words, batch.lengths, votes=False).logits
        voted = votes(batch.words, batch.lengths)
        without = task.log_likelihoods(voted, batch.labels)
        rows = [
            task.log_likelihoods(logits * float(weight) + voted, batch.labels) - without
            for weight in NETWORK_WEIGHTS
        ]
        alone.append(without.cpu().double())
        gains.append(torch.stack(rows, 1).cpu().double())
    gain = torch.cat(gains)
    sure = gain.sum(0) - (gain - gain.mean(0)).square().sum(0).sqrt()
    best = int(sure.argmax())
    votes.network_weight.fill_(float(NETWORK_WEIGHTS[best]))
    return float(torch.cat(alone).sum() + sure[best]) / len(gain)


def _metrics(
    predicted: Sequence[tuple[str, ...]], gold: Sequence[tuple[str, ...]], several: bool
) -> tuple[dict[str, Tally], str]:
    """The metrics by name, and the name of the main one."""
    if not several:
        single, gold_single = [label for (label,) in predicted], [label for (label,) in gold]
        tallies = {
            "accuracy": accuracy(single, gold_single),
            "macro_f1": macro_f1(single, gold_single),
        }
        return tallies, "accuracy"
    sets = [frozenset(labels) for labels in predicted], [frozenset(labels) for labels in gold]
    tallies = {
        "micro_f1": multilabel_micro_f1(predicted, gold),
        "macro_f1": multilabel_macro_f1(predicted, gold),
        "accuracy": accuracy(*sets),
    }
    return tallies, "micro_f1"


def read(
    data: ClassificationData, sources: Sequence[Source], summary: Summary
) -> Iterator[Labelled]:
    """The labelled texts of some files."""
    separator = data.separator if data.several else None
    return read_labelled(sources, data.text, data.label, separator, summary)


def check(data: ClassificationData, config: ClassifierConfig) -> None:
    """Check that the options fit together, and that there are positions for the longest text."""
    check_pretrained(
        data,
        config,
        data_options=("tokenizer", "vocabulary", "lowercase", "vectors", "freeze", "word_ngrams"),
        used=("dropout",),
    )
    check_max_length(config, "max_tokens", data.max_tokens)


def prepare(data: ClassificationData, folder: Path, seed: int) -> DataReport:
    """Read the texts, train the tokenizer, write the corpora; what was understood."""
    splits: Splits[Labelled] = make_splits("sentiment", data, read, seed, folder=folder)
    first = next(splits.train(), None)
    features = None if first is None else size_of(first.text)
    counts = Counter[str]()
    for example in splits.known():
        counts.update(example.labels if data.several else [_single_label(example)])
    if (guessed := splits.guessed()) and features is None:
        examples = ((str(example.text), example.labels) for example in splits.known())
        check_text_and_label(examples, guessed, several=data.several)
    in_valid = Counter(label for example in splits.valid() for label in example.labels)
    labels = Labels.of(counts)
    if len(labels) < (1 if data.several else 2):
        if not labels.names:
            raise RegardError(f"no example has a label: {splits.summary()}")
        raise RegardError(f"all examples have the label {labels.names[0]!r}: two are needed")
    truncated, tokenizer, note = [0], None, ""
    vocabularies: dict[str, int] = {}
    longest = data.max_tokens
    if data.pretrained is not None:
        if features is not None:
            raise OptionError("pretrained", "the inputs are vectors, not texts")
        tokenizer, architecture, note = copy_pretrained(
            data.pretrained, folder, "text_head", build_pretrained
        )
        vocabularies, longest = {"text": tokenizer.size}, min(longest, architecture.max_tokens)
    elif features is None:
        tokenizer = Tokenizer.train(
            data.tokenizer,
            (_text(e.text, e.where) for e in splits.train()),
            data.vocabulary,
            data.lowercase,
        )
        note = join_notes(tokenizer.note, copy_vectors(data, tokenizer, folder))
        tokenizer.save(folder / "tokenizer.json")
        vocabularies = {"text": tokenizer.size}
    elif data.vectors is not None:
        raise OptionError("vectors", "the inputs are vectors already, not words")
    else:
        save_size(folder, features)
        note = f"vectors of {features} numbers"
    sizes = splits.write(
        folder,
        lambda examples: _rows(
            examples,
            tokenizer=tokenizer,
            features=features,
            labels=labels,
            max_tokens=longest,
            truncated=truncated,
        ),
        chunk=CHUNK if features is None else CHUNK_ROWS,
    )
    labels.save(folder / "labels.json")
    if tokenizer is not None and data.word_ngrams:
        train = Corpus(folder / TRAIN)
        texts = zip(train.column("words"), train.column("labels"), strict=True)
        ngrams = NGramCounts.of(texts, tokenizer.size, data.word_ngrams, len(labels))
        ngrams.save(folder / NGRAMS)
    shortened = f"{truncated[0]} texts were truncated to {longest} tokens" if truncated[0] else ""
    return splits.report(
        sizes,
        labels=counts,
        vocabularies=vocabularies,
        notes=[
            note,
            shortened,
            skew_note(counts, data.class_weights),
            missing_note(counts, in_valid),
        ],
    )


def load(data: ClassificationData, config: ClassifierConfig, folder: Path) -> Classification:
    """The task of a run whose data was prepared."""
    features, kept = load_size(folder), load_vectors(data, folder)
    part = load_pretrained(data, folder)
    longest = [data.max_tokens] if part is None else [data.max_tokens, part.architecture.max_tokens]
    labels = Labels.load(folder / "labels.json", 1)
    ngrams = (
        NGramCounts.load(folder / NGRAMS, data.word_ngrams, len(labels))
        if data.word_ngrams and features is None
        else None
    )
    return Classification(
        with_word_size(config, kept),
        Tokenizer.load(folder / "tokenizer.json") if features is None else None,
        labels,
        min(longest),
        features=features,
        separator=data.separator if data.several else None,
        kept=kept,
        freeze=data.freeze,
        word_dropout=data.word_dropout,
        class_weights=data.class_weights,
        pretrained=part,
        ngrams=ngrams,
    )


def build_pretrained(architecture: EncoderArchitecture, labels: int) -> PretrainedClassifier:
    """A network with a pretrained encoder, whose weights are to be loaded."""
    return PretrainedClassifier(architecture, labels, 0.0)


def _rows(
    examples: Iterable[Labelled],
    *,
    tokenizer: Tokenizer | None,
    features: int | None,
    labels: Labels,
    max_tokens: int,
    truncated: list[int],
) -> Iterator[dict[str, Any]]:
    """Rows of the corpus; `truncated` counts the texts that were too long."""
    for chunk in in_chunks(examples, CHUNK if tokenizer is not None else CHUNK_ROWS):
        for example in chunk:
            check_input(example.text, features, example.where)
        rows: Sequence[Any] = [example.text for example in chunk]
        if tokenizer is not None:
            rows = tokenizer.ids(rows)
        for example, row in zip(chunk, rows, strict=True):
            truncated[0] += len(row) > max_tokens
            yield {
                "words": row[:max_tokens],
                "labels": [labels.number(label, example.where) for label in example.labels],
                "text": example.text if isinstance(example.text, str) else example.where,
            }


def _text(text: str | np.ndarray, where: str) -> str:
    check_input(text, None, where)
    return str(text)


def _single_label(example: Labelled) -> str:
    if len(example.labels) != 1:
        raise RegardError(
            f"{example.where}: {len(example.labels)} labels: expected one per text, or --several"
        )
    return example.labels[0]
