"""Tagging: a tag for each word, a CRF over them, and entity F1."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from regard.data import Labels, Source, Summary, Tagged, read_tagged
from regard.data.batches import in_order, pad, pad_vectors, shuffled
from regard.data.corpus import CHUNK, Corpus
from regard.data.tags import marks_spans, parse_tag, scheme, to_bio
from regard.data.tokenizer import UNK, Tokenizer
from regard.data.vectors import KeptVectors
from regard.errors import RegardError
from regard.metrics import entity_scores, measure, token_accuracy
from regard.models import Tagger, TaggerConfig
from regard.options import share
from regard.tasks import features as frames
from regard.tasks.parts import Parts, noted, parts, there
from regard.tasks.pretrained import check_vectors, copy_vectors, fill, kept_vectors, sized
from regard.tasks.task import Evaluation, Loss, Prediction, Sample, by_input_length, forget, weighed

DEFAULTS: dict[str, Any] = {
    "epochs": 20,
    "patience": 20,  # a cosine is worth its end
    "batch_tokens": 1024,
    "learning_rate": 2e-3,
    "schedule": "cosine",
    "label_smoothing": 0.1,
    "average": 3,
}
LETTERS = 20
"""Characters of a word that are read."""
STRETCH = 400
"""Words read at once; longer sentences are read in stretches of so many."""


@dataclass(frozen=True)
class TaggingData:
    """Where the tagged sentences come from."""

    data: list[str] | None = None
    """CoNLL columns, tables, or vectors (x.npy tags.txt); the built-in sentences unless said."""
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
    vectors: str | None = None
    """A file of word vectors to begin with: GloVe text, .vec, or gzip of either."""
    freeze: bool = False
    """Word vectors stay as they are in the file."""
    forget: float = 0.3
    """Share of words taken for unknown in training, so that no single one decides."""

    def __post_init__(self) -> None:
        share(self, "forget")
        check_vectors(self)


class Batch(NamedTuple):
    """Padded sentences: words (or vectors), their characters (none of vectors), their tags."""

    words: Tensor
    lengths: Tensor
    characters: Tensor
    tags: Tensor


class Decided(NamedTuple):
    """The tags of a sentence, which are the best together, and the probability of each."""

    tags: tuple[str, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True)
class Tagging:
    """One tag a word, or a vector."""

    config: TaggerConfig
    words: Tokenizer | None
    """The words that are known; None where vectors come in."""
    characters: Labels
    labels: Labels
    features: int | None = None
    """The size of vectors that come in instead of words."""
    kept: KeptVectors | None = None
    freeze: bool = False
    forgotten: float = 0.0
    """Share of words taken for unknown in training."""
    train: Corpus | None = None
    valid: Corpus | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        """The words that are known."""
        return frames.tokens(self.words)

    def build(self) -> Tagger:
        """A tagger with fresh weights, which knows what tag may follow what."""
        allowed, start = transitions(self.labels.names)
        model = Tagger(
            self.config,
            None if self.words is None else self.words.size,
            len(self.labels),
            characters=0 if self.words is None else len(self.characters) + 2,
            features=self.features,
            allowed=allowed,
            allowed_start=start,
        )
        fill(model.inputs, self.kept, self.freeze)
        return model

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of similar length, in random order."""
        return shuffled(there(self.train).lengths("tags"), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        rows = there(self.train).rows(examples)
        tags, _ = pad(rows["tags"])
        return Batch(*self._inputs([self._stored(words) for words in rows["words"]]), tags)

    def count(self, batch: Batch) -> int:
        """Words."""
        return int(batch.lengths.sum())

    def loss(
        self, model: nn.Module, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Negative log-likelihood of the tags."""
        assert isinstance(model, Tagger)
        words = batch.words
        if self.features is None:
            words = forget(words, self.forgotten)
        output = model(words, batch.lengths, batch.characters)
        mean = model.loss(output.logits, batch.tags, batch.lengths, smoothing)
        return Loss(mean * self.count(batch), weighed(output.balance)), carried

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Entity F1 on the validation data."""
        corpus = there(self.valid)
        columns = corpus.column("words"), corpus.column("tags")
        return self.score(
            model,
            [
                Tagged(self._stored(words), tuple(self.labels.names[n] for n in tags), f"{number}")
                for number, (words, tags) in enumerate(zip(*columns, strict=True), 1)
            ],
        )

    def score(self, model: nn.Module, examples: Sequence[Tagged]) -> Evaluation:
        """Entity F1 (or accuracy, for tags that mark no spans), by length too."""
        gold = [_bio(example) for example in examples]
        for example, tags in zip(examples, gold, strict=True):
            frames.fit(example.words, self.features, example.where)
            for tag in tags:
                self.labels.number(tag, example.where)
        sentences = [example.words for example in examples]
        shown = [_shown(example) for example in examples]
        predicted = self.tag(model, sentences)
        right = token_accuracy(predicted, gold)
        found = {} if scheme(self.labels.names) == "plain" else entity_scores(predicted, gold)
        main = "f1" if found else "accuracy"
        tallies = {**found, "accuracy": right}
        return Evaluation(
            metrics={name: measure(tally) for name, tally in tallies.items()},
            main=main,
            higher=True,
            samples=tuple(
                Sample(" ".join(words), " ".join(tags), " ".join(out))
                for words, tags, out in zip(shown[:3], gold[:3], predicted[:3], strict=True)
            ),
            by_length=by_input_length(tallies[main], [len(words) for words in sentences]),
            lines=tuple(
                {"words": words, "tags": list(tags), "predicted": list(out)}
                for words, tags, out in zip(shown, gold, predicted, strict=True)
            ),
        )

    def predict(self, model: nn.Module, texts: Sequence[str | np.ndarray]) -> list[Prediction]:
        """The tags of each text, whose words are parted by spaces.

        A run of vectors takes arrays [t, d], or names of `.npy` files.
        """
        if self.features is not None:
            given = [frames.sequence(text, self.features) for text in texts]
            return [
                Prediction(" ".join(one.tags), details=_details(one))
                for one in self.decide(model, given)
            ]
        sentences = [str(text).split() for text in texts]
        return [
            Prediction(" ".join(one.tags), details={"words": words, **_details(one)})
            for words, one in zip(sentences, self.decide(model, sentences), strict=True)
        ]

    def tag(
        self, model: nn.Module, sentences: Sequence[Sequence[str] | np.ndarray]
    ) -> list[tuple[str, ...]]:
        """The tags of each sentence, in order."""
        return [one.tags for one in self.decide(model, sentences, how_sure=False)]

    @torch.no_grad()
    def decide(
        self,
        model: nn.Module,
        sentences: Sequence[Sequence[str] | np.ndarray],
        *,
        how_sure: bool = True,
        budget: int = 8192,
    ) -> list[Decided]:
        """The tags of each sentence, in order, and how probable each of them is by itself."""
        assert isinstance(model, Tagger)
        pieces = [(i, words) for i, whole in enumerate(sentences) for words in _stretches(whole)]
        found: list[tuple[list[int], list[float]]] = [([], [])] * len(pieces)
        sizes = np.array([len(words) for _, words in pieces], dtype=np.int32)
        for chosen in in_order(sizes, budget):
            words, lengths, characters = self._inputs([pieces[i][1] for i in chosen])
            logits = model(words, lengths, characters).logits
            chances = model.probabilities(logits, lengths) if how_sure else None
            for row, tags in enumerate(model.decode(logits, lengths)):
                sure = [] if chances is None else chances[row, range(len(tags)), tags].tolist()
                found[chosen[row]] = tags, sure
        joined = [Decided((), ())] * len(sentences)
        for (i, _), (tags, sure) in zip(pieces, found, strict=True):
            before, names = joined[i], tuple(self.labels.names[n] for n in tags)
            joined[i] = Decided(before.tags + names, (*before.probabilities, *sure))
        return joined

    def _stored(self, words: Any) -> Any:
        """A row of the corpus as it was read."""
        return tuple(json.loads(words)) if self.features is None else words

    def _inputs(self, sentences: Sequence[Any]) -> tuple[Tensor, Tensor, Tensor]:
        if self.features is None:
            return self._spelt(sentences)
        vectors, lengths = pad_vectors(sentences)
        return vectors, lengths, torch.zeros(*vectors.shape[:2], 0, dtype=torch.long)

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


def read(data: TaggingData, sources: Sequence[Source], summary: Summary) -> Iterator[Tagged]:
    """The tagged sentences of some files."""
    return read_tagged(sources, data.text, data.label, summary)


def prepare(data: TaggingData, folder: Path, seed: int) -> str:
    """Read the sentences, learn words and characters, write the corpora; what was read."""
    found: Parts[Tagged] = parts("tag", data, read, seed)
    first = next(found.train(), None)
    features = None if first is None else frames.size_of(first.words)
    letters: set[str] = set()
    if features is None:
        tokenizer = Tokenizer.train(
            "word", (_words(e) for e in found.train()), data.vocabulary, data.lowercase
        )
        letters = {letter for e in found.train() for word in _words(e) for letter in word}
        told = noted(tokenizer.note, copy_vectors(data, tokenizer, folder))
        tokenizer.save(folder / "tokenizer.json")
    elif data.vectors is not None:
        raise RegardError("option vectors: these data have vectors already, not words")
    else:
        frames.save_size(folder, features)
        told = f"vectors of {features} numbers"
    labels = Labels.of(_tags(found.known()))
    found.write(
        folder,
        lambda examples: _rows(examples, labels, features),
        chunk=CHUNK if features is None else frames.ROWS,
    )
    Labels.of(letters).save(folder / "characters.json")
    labels.save(folder / "labels.json")
    return noted(found.told(), told)


def check(data: TaggingData, config: TaggerConfig) -> None:
    """Whether attention by location knows as many words as are read at once."""
    if config.attention == "location" and config.max_length < STRETCH:
        raise RegardError(
            f"option max_length: expected {STRETCH} or more where attention goes by location, "
            f"got {config.max_length}"
        )


def load(data: TaggingData, config: TaggerConfig, folder: Path) -> Tagging:
    """The task of a run whose data was prepared."""
    features, kept = frames.load_size(folder), kept_vectors(data, folder)
    return Tagging(
        sized(config, kept),
        Tokenizer.load(folder / "tokenizer.json") if features is None else None,
        Labels.load(folder / "characters.json"),
        Labels.load(folder / "labels.json"),
        features=features,
        kept=kept,
        freeze=data.freeze,
        forgotten=data.forget,
    )


def _rows(
    examples: Iterable[Tagged], labels: Labels, features: int | None
) -> Iterator[dict[str, Any]]:
    for example in examples:
        frames.fit(example.words, features, example.where)
        tags = [labels.number(tag, example.where) for tag in _bio(example)]
        stretches = zip(_stretches(example.words), _stretches(tags), strict=True)
        for some, theirs in stretches:
            yield {"tags": theirs, "words": some if features is not None else json.dumps(some)}


def _details(found: Decided) -> dict[str, Any]:
    return {"tags": list(found.tags), "probabilities": list(found.probabilities)}


def _stretches(whole: Any) -> list[Any]:
    return [whole[i : i + STRETCH] for i in range(0, len(whole), STRETCH)]


def _bio(example: Tagged) -> tuple[str, ...]:
    tags = example.tags
    try:
        return tuple(tags) if scheme(tags) == "plain" and set(tags) != {"O"} else to_bio(tags)
    except RegardError as error:
        raise RegardError(f"{example.where}: {error}") from error


def _tags(examples: Iterable[Tagged]) -> Iterator[str]:
    """The tags of all examples, which are of one kind: marks of spans, or tags of words."""
    first: dict[bool, tuple[str, str]] = {}
    for example in examples:
        tags = _bio(example)
        for tag in dict.fromkeys(tags):
            if tag != "O":
                first.setdefault(marks_spans(tag), (tag, example.where))
        if len(first) == 2:
            (tag, where), (mark, _) = first[False], first[True]
            raise RegardError(
                f"{where}: tag {tag!r} beside tags such as {mark!r}: expected O, B-kind or I-kind "
                "in all files, or in none"
            )
        yield from tags


def _words(example: Tagged) -> list[str]:
    frames.fit(example.words, None, example.where)
    return [str(word) for word in example.words]


def _shown(example: Tagged) -> list[str]:
    """The words of an example, or where its vectors are."""
    vectors = isinstance(example.words, np.ndarray)
    return [example.where] if vectors else [str(word) for word in example.words]
