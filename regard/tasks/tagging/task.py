"""Tagging: a tag for each word, a CRF over them, and entity F1."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data import DataReport, Labels, Source, Summary, Tagged, read_tagged
from regard.data.batches import ordered_batches, pad, pad_vectors, shuffled_batches
from regard.data.corpus import CHUNK, Corpus
from regard.data.plausibility import check_tags
from regard.data.shared_batches import map_batches
from regard.data.tags import marks_spans, parse_tag, tag_scheme, to_bio
from regard.data.tokenizers.tokenizer import PAD, UNK, Encoded, Tokenizer
from regard.data.tokenizers.vectors import SavedVectors
from regard.devices import to_device
from regard.errors import OptionError, RegardError
from regard.metrics import (
    entity_metrics,
    entity_report,
    measure,
    tag_report,
    token_accuracy,
)
from regard.models import Tagger, TaggerConfig
from regard.models.pretrained.architecture import EncoderArchitecture
from regard.models.pretrained.encoder_tagger import PretrainedTagger
from regard.tasks.prediction import Prediction
from regard.tasks.shared.by_length import by_input_length
from regard.tasks.shared.extra_metrics import extra_metrics
from regard.tasks.shared.losses import balance_loss, drop_words
from regard.tasks.shared.pretrained.pretrained_encoder import (
    PretrainedPart,
    copy_pretrained,
    load_pretrained,
)
from regard.tasks.shared.pretrained.pretrained_options import check_pretrained
from regard.tasks.shared.splits import Splits, join_notes, make_splits, require_corpus
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
from regard.tasks.tagging.calibration import calibrate
from regard.tasks.tagging.task_options import TaggingData
from regard.tasks.task import Evaluation, Loss, Sample

MAX_LETTERS = 20
"""Characters of a word that are read."""
MAX_WORDS = 400
"""Words of a sentence that are read at once; a longer one is read in pieces."""


MAX_TOKENS_OF_A_WORD = 32
"""Tokens of a word that a pretrained encoder reads; only strings that are no words have more."""
AnyTagger = Tagger | PretrainedTagger


class Batch(NamedTuple):
    """Padded sentences: words (or vectors), their characters (none of vectors), their tags."""

    words: Tensor
    lengths: Tensor
    characters: Tensor
    tags: Tensor


class TaggedSentence(NamedTuple):
    """The best sequence of tags for a sentence, and the probability of each tag by itself."""

    tags: tuple[str, ...]
    probabilities: tuple[float, ...]


@dataclass(frozen=True)
class Tagging:
    """One tag per word, or per vector."""

    config: TaggerConfig
    words: Tokenizer | None
    """The vocabulary; None where the inputs are vectors."""
    characters: Labels
    labels: Labels
    features: int | None = None
    """The size of input vectors; None where the inputs are words."""
    kept: SavedVectors | None = None
    freeze: bool = False
    word_dropout: float = 0.0
    """Probability that a word is replaced by the unknown token in training."""
    pretrained: PretrainedPart | None = None
    """The pretrained encoder, if there is one: its tokens of a word take the place of its
    characters."""
    train: Corpus | None = None
    valid: Corpus | None = None

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary of a run that reads words."""
        return require_tokenizer(self.words)

    @property
    def frame(self) -> dict[str, str]:
        """The names of the tokens that a pretrained encoder puts around a sentence."""
        if self.pretrained is None:
            return {}
        architecture = self.pretrained.architecture
        return {"first": architecture.first, "last": architecture.last}

    def build(self) -> AnyTagger:
        """A tagger with initial weights, which knows what tag may follow what."""
        allowed, start = transitions(self.labels.names)
        if self.pretrained is not None:
            network = PretrainedTagger(
                self.pretrained.architecture,
                len(self.labels),
                self.config.dropout,
                crf=self.config.crf,
                allowed=allowed,
                allowed_start=start,
            )
            if self.train is not None:  # in training; a run in use has weights of its own
                self.pretrained.start(network)
            return network
        model = Tagger(
            self.config,
            None if self.words is None else self.words.size,
            len(self.labels),
            characters=0 if self.words is None else len(self.characters) + 2,
            features=self.features,
            allowed=allowed,
            allowed_start=start,
        )
        fill_embedding(model.inputs, self.kept, self.freeze)
        return model

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of similar length, in random order."""
        return shuffled_batches(require_corpus(self.train).lengths("tags"), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        rows = require_corpus(self.train).rows(examples)
        tags, _ = pad(rows["tags"])
        return Batch(*self.inputs([self.parse_row(words) for words in rows["words"]]), tags)

    def count(self, batch: Batch) -> int:
        """The number of words."""
        return int(batch.lengths.sum())

    def loss(
        self, model: AnyTagger, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Negative log-likelihood of the tags."""
        words = batch.words
        if self.features is None and model.training:
            words = drop_words(words, self.word_dropout)
        output = model(words, batch.lengths, batch.characters)
        mean = model.loss(output.logits, batch.tags, batch.lengths, smoothing)
        return Loss(mean * self.count(batch), balance_loss(output.balance)), carried

    @property
    def shares_validation(self) -> bool:
        """Processes share out the batches of its validation."""
        return True

    def validate(self, model: AnyTagger) -> Evaluation:
        """Entity F1 on the validation data."""
        corpus = require_corpus(self.valid)
        columns = corpus.column("words"), corpus.column("tags")
        return self.evaluate(
            model,
            [
                Tagged(
                    self.parse_row(words), tuple(self.labels.names[n] for n in tags), f"{number}"
                )
                for number, (words, tags) in enumerate(zip(*columns, strict=True), 1)
            ],
        )

    def calibrate(self, model: AnyTagger) -> str:
        """Choose how readily words are O; see `calibration`."""
        return calibrate(self, model)

    def evaluate(
        self, model: AnyTagger, examples: Sequence[Tagged], *, metrics: Sequence[str] = ()
    ) -> Evaluation:
        """Entity F1 (or accuracy, for tags that mark no spans), by length too."""
        gold = [_bio_tags(example) for example in examples]
        for example, tags in zip(examples, gold, strict=True):
            check_input(example.words, self.features, example.where)
            for tag in tags:
                self.labels.number(tag, example.where)
        sentences = [example.words for example in examples]
        shown = [_words_or_place(example) for example in examples]
        predicted = [sentence.tags for sentence in self.tag(model, sentences, probabilities=False)]
        spans = {} if tag_scheme(self.labels.names) == "plain" else entity_metrics(predicted, gold)
        main = "f1" if spans else "accuracy"
        report = entity_report if spans else tag_report
        tallies = {**spans, "accuracy": token_accuracy(predicted, gold)}
        tallies |= extra_metrics("tag sequences", metrics, predicted, gold)
        return Evaluation(
            metrics={name: measure(tally) for name, tally in tallies.items()},
            main=main,
            higher=True,
            samples=tuple(
                Sample(" ".join(words), " ".join(tags), " ".join(output))
                for words, tags, output in zip(shown[:3], gold[:3], predicted[:3], strict=True)
            ),
            by_length=by_input_length(tallies[main], [len(words) for words in sentences]),
            lines=tuple(
                {"words": words, "tags": list(tags), "predicted": list(output)}
                for words, tags, output in zip(shown, gold, predicted, strict=True)
            ),
            tally=tallies[main],
            report=report(predicted, gold),
        )

    def predict(self, model: AnyTagger, texts: Sequence[str | np.ndarray]) -> list[Prediction]:
        """The tags of each text, whose words are separated by spaces.

        A run that reads vectors takes arrays [t, d], or names of `.npy` files.
        """
        if self.features is not None:
            sequences = [read_sequence(text, self.features) for text in texts]
            return [
                Prediction(" ".join(sentence.tags), details=tag_details(sentence))
                for sentence in self.tag(model, sequences)
            ]
        sentences = [str(text).split() for text in texts]
        return [
            Prediction(" ".join(sentence.tags), details={"words": words, **tag_details(sentence)})
            for words, sentence in zip(sentences, self.tag(model, sentences), strict=True)
        ]

    @torch.no_grad()
    def tag(
        self,
        model: AnyTagger,
        sentences: Sequence[Sequence[str] | np.ndarray],
        *,
        probabilities: bool = True,
        budget: int = 2048,
    ) -> list[TaggedSentence]:
        """The tags of each sentence, in order, with their probabilities if these are needed."""
        pieces = [(i, words) for i, whole in enumerate(sentences) for words in self.split(whole)]
        tagged = [TaggedSentence((), ())] * len(pieces)
        sizes = np.array([len(words) for _, words in pieces], dtype=np.int32)

        def compute(chosen: np.ndarray) -> list[TaggedSentence]:
            inputs = self.inputs([pieces[i][1] for i in chosen])
            words, lengths, characters = to_device(inputs, model)
            logits = model(words, lengths, characters).logits
            marginals = model.probabilities(logits, lengths) if probabilities else None
            return self.decode(model, logits, lengths, marginals)

        for chosen, decoded in map_batches(
            ordered_batches(sizes, budget),
            compute,
            "tagging",
            unit="sentences",
            total=len(pieces),
            weight=len,
            encode=lambda sentences: [[one.tags, one.probabilities] for one in sentences],
            decode=lambda plain: [TaggedSentence(tuple(t), tuple(p)) for t, p in plain],
        ):
            for i, piece in zip(chosen, decoded, strict=True):
                tagged[i] = piece
        joined = [TaggedSentence((), ())] * len(sentences)
        for (i, _), piece in zip(pieces, tagged, strict=True):
            joined[i] = TaggedSentence(
                joined[i].tags + piece.tags, joined[i].probabilities + piece.probabilities
            )
        return joined

    def decode(
        self, model: AnyTagger, logits: Tensor, lengths: Tensor, marginals: Tensor | None
    ) -> list[TaggedSentence]:
        """The best tags of each sentence, with their probabilities where these were computed."""
        sentences = []
        for row, numbers in enumerate(model.decode(logits, lengths)):
            own = (
                marginals[row, range(len(numbers)), numbers].tolist()
                if marginals is not None
                else ()
            )
            tags = tuple(self.labels.names[number] for number in numbers)
            sentences.append(TaggedSentence(tags, tuple(own)))
        return sentences

    def inputs(self, sentences: Sequence[Any]) -> tuple[Tensor, Tensor, Tensor]:
        """The words (or vectors), lengths and characters of sentences, as the model reads them."""
        if self.features is None:
            return self._encode_words(sentences)
        vectors, lengths = pad_vectors(sentences)
        return vectors, lengths, torch.zeros(*vectors.shape[:2], 0, dtype=torch.long)

    def parse_row(self, words: Any) -> Any:
        """The words or vectors in a row of the corpus."""
        return tuple(json.loads(words)) if self.features is None else words

    def _encode_words(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor, Tensor]:
        """Word numbers, lengths, and the numbers of the characters of each word."""
        if self.pretrained is not None:
            return self._encode_tokens(sentences)
        # Each distinct word is looked up once; place 0 is padding.
        words = dict.fromkeys(chain.from_iterable(sentences))
        places = {word: place for place, word in enumerate(words, 1)}
        ids = torch.tensor([PAD, *self.tokenizer.encode_words(list(places)).ids])
        letters = np.zeros((len(places) + 1, MAX_LETTERS), dtype=np.int64)
        for word, place in places.items():
            numbers = [self._letter_numbers.get(letter, UNK) for letter in word[:MAX_LETTERS]]
            letters[place, : len(numbers)] = numbers
        by_place, lengths = pad(
            [np.array([places[word] for word in row], dtype=np.int64) for row in sentences]
        )
        return ids[by_place], lengths, torch.from_numpy(letters)[by_place]

    def _encode_tokens(self, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor, Tensor]:
        """The first token of each word, the number of words, and all tokens of each word."""
        rows = [
            tokens_by_word(encoded, len(sentence))
            for encoded, sentence in zip(
                self.tokenizer.encode_words_batch(sentences), sentences, strict=True
            )
        ]
        longest = max((len(row) for row in rows), default=0)
        most = max((len(tokens) for row in rows for tokens in row), default=1)
        numbers = torch.zeros(len(rows), longest, most, dtype=torch.long)
        for i, row in enumerate(rows):
            for j, tokens in enumerate(row):
                numbers[i, j, : len(tokens)] = torch.tensor(tokens)
        return numbers[:, :, 0], torch.tensor([len(row) for row in rows]), numbers

    def split(self, whole: Any) -> list[Any]:
        """A long sentence in parts that the model reads one by one."""
        return split_sentence(whole, self.words, self.pretrained)

    @cached_property
    def _letter_numbers(self) -> dict[str, int]:
        return {letter: number for number, letter in enumerate(self.characters.names, 2)}


def transitions(names: Sequence[str]) -> tuple[Tensor | None, Tensor | None]:
    """Which BIO tag may follow which, and which may begin a sentence; None for other tags."""
    if tag_scheme(names) != "bio":
        return None, None
    parsed = [parse_tag(name) for name in names]

    def continues(before: tuple[str, str], after: tuple[str, str]) -> bool:
        return after[0] != "I" or (before[0] in "BI" and before[1] == after[1])

    allowed = torch.tensor([[continues(before, after) for after in parsed] for before in parsed])
    return allowed, torch.tensor([mark != "I" for mark, _ in parsed])


def read(data: TaggingData, sources: Sequence[Source], summary: Summary) -> Iterator[Tagged]:
    """The tagged sentences of some files."""
    return read_tagged(sources, data.text, data.label, summary)


def prepare(data: TaggingData, folder: Path, seed: int) -> DataReport:
    """Read the sentences, collect words and characters, write the corpora; what was read."""
    splits: Splits[Tagged] = make_splits("entities", data, read, seed, folder=folder)
    first = next(splits.train(), None)
    features = None if first is None else size_of(first.words)
    letters: set[str] = set()
    vocabularies: dict[str, int] = {}
    tokenizer: Tokenizer | None = None
    if data.pretrained is not None:
        if features is not None:
            raise OptionError("pretrained", "the inputs are vectors, not words")
        tokenizer, _, note = copy_pretrained(
            data.pretrained, folder, "token_head", build_pretrained
        )
        vocabularies = {"text": tokenizer.size}
    elif features is None:
        tokenizer = Tokenizer.train(
            "word", (_words(e) for e in splits.train()), data.vocabulary, data.lowercase
        )
        letters = {letter for e in splits.train() for word in _words(e) for letter in word}
        note = join_notes(tokenizer.note, copy_vectors(data, tokenizer, folder))
        tokenizer.save(folder / "tokenizer.json")
        vocabularies = {"text": tokenizer.size}
    elif data.vectors is not None:
        raise OptionError("vectors", "the inputs are vectors already, not words")
    else:
        save_size(folder, features)
        note = f"vectors of {features} numbers"
    counts = Counter(_all_tags(splits.known()))
    if guessed := splits.guessed():
        check_tags(_all_tags(splits.known()), guessed)
    labels, part = Labels.of(counts), load_pretrained(data, folder)
    sizes = splits.write(
        folder,
        lambda examples: _rows(
            examples, labels, features, lambda whole: split_sentence(whole, tokenizer, part)
        ),
        chunk=CHUNK if features is None else CHUNK_ROWS,
    )
    Labels.of(letters).save(folder / "characters.json")
    labels.save(folder / "labels.json")
    return splits.report(sizes, labels=counts, vocabularies=vocabularies, notes=[note])


def check(data: TaggingData, config: TaggerConfig) -> None:
    """Check that the options fit together.

    Attention by location needs weights for as many words as are read at once.
    """
    check_pretrained(
        data,
        config,
        data_options=("vocabulary", "lowercase", "vectors", "freeze"),
        used=("dropout", "crf"),
    )
    if config.attention == "location" and config.max_length < MAX_WORDS:
        raise OptionError(
            "max_length",
            f"expected {MAX_WORDS} or more with attention location, got {config.max_length}",
        )


def load(data: TaggingData, config: TaggerConfig, folder: Path) -> Tagging:
    """The task of a run whose data was prepared."""
    features, kept = load_size(folder), load_vectors(data, folder)
    return Tagging(
        with_word_size(config, kept),
        Tokenizer.load(folder / "tokenizer.json") if features is None else None,
        Labels.load(folder / "characters.json"),
        Labels.load(folder / "labels.json", 1),
        features=features,
        kept=kept,
        freeze=data.freeze,
        word_dropout=data.word_dropout,
        pretrained=load_pretrained(data, folder),
    )


def build_pretrained(architecture: EncoderArchitecture, labels: int) -> PretrainedTagger:
    """A network with a pretrained encoder, whose weights are to be loaded."""
    return PretrainedTagger(architecture, labels, 0.0)


def _rows(
    examples: Iterable[Tagged],
    labels: Labels,
    features: int | None,
    split: Callable[[Any], list[Any]],
) -> Iterator[dict[str, Any]]:
    for example in examples:
        check_input(example.words, features, example.where)
        tags = [labels.number(tag, example.where) for tag in _bio_tags(example)]
        for words in split(example.words):
            stored = words if features is not None else json.dumps(words)
            yield {"tags": tags[: len(words)], "words": stored}
            tags = tags[len(words) :]


def tag_details(sentence: TaggedSentence) -> dict[str, Any]:
    """A tagged sentence in plain values."""
    return {"tags": list(sentence.tags), "probabilities": list(sentence.probabilities)}


def split_sentence(
    whole: Any, tokenizer: Tokenizer | None, part: PretrainedPart | None
) -> list[Any]:
    """A long sentence in parts that the model reads one by one.

    A part has at most `MAX_WORDS` words, and at most as many tokens as a pretrained encoder has
    positions. Of a word, at most `MAX_TOKENS_OF_A_WORD` tokens are read.
    """
    if part is None or tokenizer is None:
        return [whole[i : i + MAX_WORDS] for i in range(0, len(whole), MAX_WORDS)]
    most = part.architecture.max_tokens
    encoded = tokenizer.encode_words(list(whole))
    sizes = [len(tokens) for tokens in tokens_by_word(encoded, len(whole))]
    parts, start, filled = [], 0, 0
    for i, size in enumerate(sizes):
        size = min(size, MAX_TOKENS_OF_A_WORD)
        if i > start and (filled + size > most or i - start >= MAX_WORDS):
            parts.append(whole[start:i])
            start, filled = i, 0
        filled += size
    return [*parts, whole[start:]] if start < len(whole) else parts


def tokens_by_word(encoded: Encoded, words: int) -> list[list[int]]:
    """The tokens of each word, at most `MAX_TOKENS_OF_A_WORD` of them."""
    rows: list[list[int]] = [[] for _ in range(words)]
    for token, word in zip(encoded.ids, encoded.words, strict=True):
        if len(rows[word]) < MAX_TOKENS_OF_A_WORD:
            rows[word].append(token)
    return rows


def _bio_tags(example: Tagged) -> tuple[str, ...]:
    tags = example.tags
    try:
        return tuple(tags) if tag_scheme(tags) == "plain" and set(tags) != {"O"} else to_bio(tags)
    except RegardError as error:
        raise RegardError(f"{example.where}: {error}") from error


def _all_tags(examples: Iterable[Tagged]) -> Iterator[str]:
    """The tags of all examples, which are of one kind: marks of spans, or tags of words."""
    first: dict[bool, tuple[str, str]] = {}
    for example in examples:
        tags = _bio_tags(example)
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
    check_input(example.words, None, example.where)
    return [str(word) for word in example.words]


def _words_or_place(example: Tagged) -> list[str]:
    """The words of an example, or where its vectors are."""
    vectors = isinstance(example.words, np.ndarray)
    return [example.where] if vectors else [str(word) for word in example.words]
