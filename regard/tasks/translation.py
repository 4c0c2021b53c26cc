"""Translation: pairs of sentences, an encoder–decoder, beam search and BLEU."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn

from regard.data import Pair, Source, Summary, read_pairs, resolve
from regard.data.batches import pad, shuffled
from regard.data.corpus import Corpus, in_chunks
from regard.data.tokenizer import BOS, EOS, Tokenizer
from regard.errors import RegardError
from regard.metrics import bleu, chrf, measure
from regard.models import Translator, TranslatorConfig
from regard.models.output import total
from regard.options import at_least
from regard.search import Hypothesis
from regard.tasks.guidance import Place, goals, guided_loss, guided_place, token_links, with_links
from regard.tasks.losses import next_token_loss
from regard.tasks.parts import Parts, Read, noted, parts, there, vocabulary_size
from regard.tasks.task import (
    Evaluation,
    Loss,
    Prediction,
    Sample,
    by_input_length,
    weighed,
)
from regard.tasks.translating import BUDGET, Decoding, Pins, decode, predict

DEFAULTS: dict[str, Any] = {
    "epochs": 20,
    "patience": 4,
    "batch_tokens": 1024,
    "label_smoothing": 0.1,
    "average": 5,
}


@dataclass(frozen=True)
class TranslationData:
    """Where the pairs come from, and how they are cut into tokens."""

    data: list[str] | None = None
    """Two text files, or tables with both sides; the built-in pairs unless said."""
    valid: list[str] | None = None
    """The same for validation; a part of the data is set aside unless said."""
    source: str | None = None
    """The column, or file ending, to translate from."""
    target: str | None = None
    """The column, or file ending, to translate to."""
    tokenizer: str = "bpe"
    """word, bpe, unigram, character or bytes."""
    vocabulary: int | None = None
    """Tokens on each side at most; 6 · √words of the side unless said, from 1,000 to 16,000
    (30,000 words)."""
    lowercase: bool = False
    """Read and write lower case only."""
    max_tokens: int = 200
    """Longer sentences are left out of training, and counted; in use they are cut."""

    alignments: str | None = None
    """Word links of the data, in Pharaoh format, a line a pair: they guide the attention."""
    align_loss: float = 0.1
    """How much the links count beside the words."""
    align_layer: int | None = None
    """The layer of a transformer whose head is guided, from 0; the last but one unless said."""
    align_head: int = 0
    """The head that is guided, from 0."""

    def __post_init__(self) -> None:
        at_least(self, max_tokens=1, align_loss=0)
        if self.alignments is not None and self.data is None:
            raise RegardError("option alignments: expected with data, which was not given")


class Batch(NamedTuple):
    """Padded sources and targets; targets begin with the start and end with the end token."""

    source: Tensor
    source_lengths: Tensor
    target: Tensor
    target_lengths: Tensor
    goal: Tensor | None = None
    """Where the guided attention ought to look, [b, t, k]."""


@dataclass(frozen=True)
class Translation:
    """Translation between two languages that its tokenizers know."""

    config: TranslatorConfig
    source: Tokenizer
    target: Tokenizer
    max_tokens: int
    train: Corpus | None = None
    valid: Corpus | None = None
    guided: Place | None = None
    """The attention that learns from given links."""
    align_loss: float = 0.0

    def build(self) -> Translator:
        """A translator with fresh weights."""
        return Translator(self.config, self.source.size, self.target.size)

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of similar length, in random order."""
        corpus = there(self.train)
        sides = [corpus.lengths("source"), corpus.lengths("target") + 2]
        return shuffled(np.stack(sides, 1), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        rows = there(self.train).rows(examples)
        sides = *pad(rows["source"]), *pad([_framed(row) for row in rows["target"]])
        if self.guided is None:
            return Batch(*sides)
        steps, keys = sides[2].shape[1] - 1, sides[0].shape[1]
        return Batch(*sides, goals(rows["links"], steps, keys, self.guided.shift))

    def count(self, batch: Batch) -> int:
        """Target words, the end among them."""
        return int((batch.target_lengths - 1).sum())

    def loss(
        self, model: nn.Module, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of each next word, and of the guided attention to its links."""
        output = model(
            batch.source,
            batch.source_lengths,
            batch.target[:, :-1],
            batch.target_lengths - 1,
            need_weights=self.guided is not None,
        )
        words = next_token_loss(output.logits, batch.target[:, 1:], smoothing)
        links = None
        if self.guided is not None and batch.goal is not None:
            links = self.align_loss * guided_loss(self.guided.of(output.weights), batch.goal)
        return Loss(words, total([weighed(output.balance), links])), carried

    def evaluate(self, model: nn.Module) -> Evaluation:
        """BLEU of greedy translations of the validation data."""
        corpus = there(self.valid)
        pairs = [
            Pair(source, target)
            for source, target in zip(
                corpus.column("source_text"), corpus.column("target_text"), strict=True
            )
        ]
        return self.score(model, pairs, beam=1)

    def score(
        self,
        model: nn.Module,
        pairs: Sequence[Pair],
        *,
        beam: int = 5,
        lowercase: bool = False,
    ) -> Evaluation:
        """BLEU and chrF of translations of these pairs, by length too."""
        sources = [pair.source for pair in pairs]
        found = self.translate(model, sources, width=beam)
        texts = self.target.decode_batch([best.output for best in found])
        references = [pair.target for pair in pairs]
        metric = bleu(texts, references, lowercase=lowercase)
        return Evaluation(
            metrics={
                "bleu": measure(metric),
                "chrf": measure(chrf(texts, references, lowercase=lowercase)),
            },
            main="bleu",
            higher=True,
            samples=tuple(map(Sample, sources[:3], references[:3], texts[:3])),
            by_length=by_input_length(metric, [len(source.split()) for source in sources]),
            lines=tuple(
                {"source": pair.source, "reference": pair.target, "translation": text}
                for pair, text in zip(pairs, texts, strict=True)
            ),
        )

    def predict(
        self,
        model: nn.Module,
        texts: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        force: Pins | None = None,
        **options: Any,
    ) -> list[Prediction]:
        """The best translation of each text, and its score; `options` are those of `Decoding`."""
        return predict(self, model, texts, Decoding(**options), prefixes, force)

    def translate(
        self,
        model: nn.Module,
        texts: Sequence[str],
        *,
        width: int = 5,
        budget: int = BUDGET,
        need_weights: bool = False,
    ) -> list[Hypothesis]:
        """The best translation of each text, in order."""
        options = Decoding(beam=width)
        found = decode(self, model, texts, options, budget=budget, need_weights=need_weights)
        return [best for best, *_ in found]


def read(data: TranslationData, sources: Sequence[Source], summary: Summary) -> Iterator[Pair]:
    """The pairs of some files."""
    return read_pairs(sources, data.source, data.target, summary)


def prepare(data: TranslationData, folder: Path, seed: int) -> str:
    """Read the pairs, learn the tokenizers, write the corpora; what was read, in words."""
    if data.alignments is not None and data.data is not None:
        found: Parts[Pair] = parts("translation", data, _guided_reader(data), seed)
    else:
        found = parts("translation", data, read, seed)
    source = _learn(lambda: (pair.source for pair in found.train()), data)
    target = _learn(lambda: (pair.target for pair in found.train()), data)
    long = [0]
    most, guided = data.max_tokens, data.alignments is not None

    def left_out() -> str:
        return f"{long[0]:,} of these pairs, over {most} tokens, were left out" if long[0] else ""

    found.write(
        folder,
        lambda pairs: _rows(pairs, source, target, most, long, guided),
        left_out=left_out,
    )
    source.save(folder / "source.json")
    target.save(folder / "target.json")
    return noted(found.told(), source.note, target.note, left_out())


def load(data: TranslationData, config: TranslatorConfig, folder: Path) -> Translation:
    """The task of a run whose data was prepared."""
    source, target = (Tokenizer.load(folder / f"{side}.json") for side in ("source", "target"))
    guided = None
    if data.alignments is not None:
        guided = guided_place(config, data.align_layer, data.align_head)
    return Translation(
        config, source, target, data.max_tokens, guided=guided, align_loss=data.align_loss
    )


def _guided_reader(data: TranslationData) -> Read[Pair]:
    """A reader that gives the links to the pairs to train on; other files have none."""
    guided = [source.name for source in resolve(data.data or [])]

    def read_guided(
        data: TranslationData, sources: Sequence[Source], summary: Summary
    ) -> Iterator[Pair]:
        pairs = read(data, sources, summary)
        if data.alignments is None or [source.name for source in sources] != guided:
            return pairs
        return with_links(pairs, summary, data.alignments)

    return read_guided


def _learn(texts: Callable[[], Iterable[str]], data: TranslationData) -> Tokenizer:
    size = vocabulary_size(data.tokenizer, data.vocabulary, texts())
    return Tokenizer.train(data.tokenizer, texts(), size, data.lowercase)


def _rows(
    pairs: Iterable[Pair],
    source: Tokenizer,
    target: Tokenizer,
    most: int,
    long: list[int],
    guided: bool,
) -> Iterator[dict[str, Any]]:
    for chunk in in_chunks(pairs):
        sides = [p.source for p in chunk], [p.target for p in chunk]
        ids = source.ids(sides[0]), target.ids(sides[1])
        links: Iterable[np.ndarray | None] = repeat(None, len(chunk))
        if guided:
            encoded = source.encode_batch(sides[0]), target.encode_batch(sides[1])
            links = map(token_links, chunk, *encoded)
        for pair, left, right, linked in zip(chunk, *ids, links, strict=True):
            if max(len(left), len(right)) > most:
                long[0] += 1
                continue
            yield {
                "source": left,
                "target": right,
                "source_text": pair.source,
                "target_text": pair.target,
            } | ({} if linked is None else {"links": linked})


def _framed(ids: np.ndarray) -> np.ndarray:
    return np.concatenate([[BOS], ids, [EOS]])
