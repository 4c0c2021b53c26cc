"""Tagging: a tag for each word, a CRF over them, and entity F1."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.data import Labels, Source, Summary, Tagged, read_tagged
from regard.data.batches import in_order, pad, shuffled
from regard.data.corpus import Corpus, write
from regard.data.tags import parse_tag, scheme, to_bio
from regard.data.tokenizer import UNK, Tokenizer
from regard.errors import RegardError
from regard.metrics import by_length, entity_scores, measure, token_accuracy
from regard.models import Tagger, TaggerConfig
from regard.tasks.parts import TRAIN, VALID, Parts, corpora, parts, there
from regard.tasks.task import Evaluation, Loss, Sample

DEFAULTS: dict[str, Any] = {"epochs": 25, "patience": 5, "batch_tokens": 1024, "average": 3}
FORGOTTEN = 0.05
"""Share of words taken for unknown in training, so that unknown words are known to exist."""
LETTERS = 20
"""Characters of a word that are read."""


@dataclass(frozen=True)
class TaggingData:
    """Where the tagged sentences come from."""

    data: list[str] | None = None
    """CoNLL columns, or tables; the built-in sentences unless said."""
    valid: list[str] | None = None
    """The same for validation; a part of the data is set aside unless said."""
    text: str | None = None
    """The column with the words."""
    label: str | None = None
    """The column with the tags."""
    vocabulary: int = 30000
    """Words at most."""
    lowercase: bool = True
    """Whether words are known without their case; characters keep it."""


class Batch(NamedTuple):
    """Padded sentences: words, their characters, their tags."""

    words: Tensor
    lengths: Tensor
    characters: Tensor
    tags: Tensor


@dataclass(frozen=True)
class Tagging:
    """One tag a word."""

    config: TaggerConfig
    tokenizer: Tokenizer
    characters: Labels
    labels: Labels
    train: Corpus | None = None
    valid: Corpus | None = None

    def build(self) -> Tagger:
        """A tagger with fresh weights, which knows what tag may follow what."""
        allowed, start = transitions(self.labels.names)
        return Tagger(
            self.config,
            self.tokenizer.size,
            len(self.labels),
            characters=len(self.characters) + 2,
            allowed=allowed,
            allowed_start=start,
        )

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of similar length, in random order."""
        return shuffled(there(self.train).lengths("tags"), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        rows = there(self.train).rows(examples)
        sentences = [text.split("\x1f") for text in rows["text"]]
        tags, _ = pad(rows["tags"])
        return Batch(*self._spelt(sentences), tags)

    def count(self, batch: Batch) -> int:
        """Words."""
        return int(batch.lengths.sum())

    def loss(
        self, model: nn.Module, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Negative log-likelihood of the tags."""
        assert isinstance(model, Tagger)
        forgotten = torch.rand(batch.words.shape) < FORGOTTEN
        words = batch.words.masked_fill(forgotten & (batch.words != 0), UNK)
        output = model(words, batch.lengths, batch.characters)
        mean = model.loss(output.logits, batch.tags, batch.lengths)
        return Loss(mean * self.count(batch), output.balance), carried

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Entity F1 on the validation data."""
        corpus = there(self.valid)
        columns = corpus.column("text"), corpus.column("tags")
        return self.score(
            model,
            [
                Tagged(tuple(text.split("\x1f")), tuple(self.labels.names[n] for n in tags))
                for text, tags in zip(*columns, strict=True)
            ],
        )

    def score(self, model: nn.Module, examples: Sequence[Tagged]) -> Evaluation:
        """Entity F1 (or accuracy, for tags that mark no spans), by length too."""
        gold = [_bio(example.tags) for example in examples]
        for example, tags in zip(examples, gold, strict=True):
            for tag in tags:
                self.labels.number(tag, example.where)
        sentences = [tuple(map(str, example.words)) for example in examples]
        predicted = self.tag(model, sentences)
        right = token_accuracy(predicted, gold)
        found = {} if scheme(self.labels.names) == "plain" else entity_scores(predicted, gold)
        main = "f1" if found else "accuracy"
        tallies = {**found, "accuracy": right}
        lengths = np.array([len(words) for words in sentences])
        buckets = by_length(tallies[main], lengths)
        return Evaluation(
            metrics={name: measure(tally) for name, tally in tallies.items()},
            main=main,
            higher=True,
            samples=tuple(
                Sample(" ".join(words), " ".join(tags), " ".join(out))
                for words, tags, out in zip(sentences[:3], gold[:3], predicted[:3], strict=True)
            ),
            by_length={str(bucket): value for bucket, value in buckets.items()},
            lines=tuple(
                {"words": list(words), "tags": list(tags), "predicted": list(out)}
                for words, tags, out in zip(sentences, gold, predicted, strict=True)
            ),
        )

    @torch.no_grad()
    def tag(
        self, model: nn.Module, sentences: Sequence[Sequence[str]], *, budget: int = 8192
    ) -> list[tuple[str, ...]]:
        """The tags of each sentence, in order."""
        assert isinstance(model, Tagger)
        found: list[tuple[str, ...]] = [()] * len(sentences)
        sizes = np.array([len(words) for words in sentences], dtype=np.int32)
        for chosen in in_order(sizes, budget):
            words, lengths, characters = self._spelt([sentences[i] for i in chosen])
            logits = model(words, lengths, characters).logits
            for i, tags in zip(chosen, model.decode(logits, lengths), strict=True):
                found[i] = tuple(self.labels.names[n] for n in tags)
        return found

    def _spelt(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor, Tensor]:
        """Word numbers, lengths, and the numbers of the characters of each word."""
        ids = [np.array(found.ids) for found in self.tokenizer.encode_words_batch(sentences)]
        words, lengths = pad(ids)
        characters = torch.zeros(*words.shape, LETTERS, dtype=torch.long)
        for row, sentence in enumerate(sentences):
            for column, word in enumerate(sentence):
                spelt = [self._letter(letter) for letter in word[:LETTERS]]
                characters[row, column, : len(spelt)] = torch.tensor(spelt)
        return words, lengths, characters

    def _letter(self, letter: str) -> int:
        return self.characters.number(letter) + 2 if letter in self.characters else UNK


def transitions(names: Sequence[str]) -> tuple[Tensor | None, Tensor | None]:
    """Which BIO tag may follow which, and which may begin a sentence; None for other tags."""
    if scheme(names) != "bio":
        return None, None
    parsed = [parse_tag(name) for name in names]

    def continues(before: tuple[str, str], after: tuple[str, str]) -> bool:
        return after[0] != "I" or (before[0] in "BI" and before[1] == after[1])

    allowed = torch.tensor([[continues(before, after) for after in parsed] for before in parsed])
    return allowed, torch.tensor([mark != "I" for mark, _ in parsed])


def prepare(
    data: TaggingData, config: TaggerConfig, folder: Path, *, seed: int = 1
) -> tuple[Tagging, str]:
    """Read the sentences, learn words and characters, write the corpora; what was read."""
    names = ("tokenizer.json", "characters.json", "labels.json", TRAIN, VALID)
    if all((folder / name).exists() for name in names):
        return load(config, folder), "the corpus is prepared already"

    def read(sources: Sequence[Source], summary: Summary) -> Iterator[Tagged]:
        return read_tagged(sources, data.text, data.label, summary)

    found: Parts[Tagged] = parts("tag", data.data, data.valid, read, seed)
    tokenizer = Tokenizer.train(
        "word", (_words(e) for e in found.train()), data.vocabulary, data.lowercase
    )
    letters = {letter for e in found.train() for word in _words(e) for letter in word}
    labels = Labels.of(tag for e in found.train() for tag in _bio(e.tags))
    written = [
        write(folder / name, _rows(examples(), labels))
        for name, examples in ((TRAIN, found.train), (VALID, found.valid))
    ]
    tokenizer.save(folder / "tokenizer.json")
    characters = Labels.of(letters)
    characters.save(folder / "characters.json")
    labels.save(folder / "labels.json")
    notes = [note for note in (found.told(), tokenizer.note) if note]
    return Tagging(config, tokenizer, characters, labels, *written), "; ".join(notes)


def load(config: TaggerConfig, folder: Path) -> Tagging:
    """The task of a run that was prepared before."""
    return Tagging(
        config,
        Tokenizer.load(folder / "tokenizer.json"),
        Labels.load(folder / "characters.json"),
        Labels.load(folder / "labels.json"),
        *corpora(folder),
    )


def _rows(examples: Iterable[Tagged], labels: Labels) -> Iterator[dict[str, Any]]:
    for example in examples:
        tags = [labels.number(tag, example.where) for tag in _bio(example.tags)]
        yield {"tags": tags, "text": "\x1f".join(_words(example))}


def _bio(tags: Sequence[str]) -> tuple[str, ...]:
    return tuple(tags) if scheme(tags) == "plain" and set(tags) != {"O"} else to_bio(tags)


def _words(example: Tagged) -> list[str]:
    if isinstance(example.words, np.ndarray):
        raise RegardError(f"{example.where}: vectors instead of words are not supported here yet")
    return list(example.words)
