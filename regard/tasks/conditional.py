"""Language modelling from a label or a vector: each text for itself, written about something."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from regard.data import Labels, Line, Source, Summary, read_lines, resolve
from regard.data.batches import in_order, pad, shuffled
from regard.data.corpus import Corpus, in_chunks
from regard.data.tokenizer import EOS, Tokenizer
from regard.data.vectors import KeptVectors
from regard.errors import RegardError
from regard.metrics import measure
from regard.models import LanguageConfig, LanguageModel, LanguageState
from regard.tasks import features as frames
from regard.tasks.generation import LONGEST_PROMPT, continued, perplexities
from regard.tasks.losses import next_token_loss
from regard.tasks.parts import Parts, noted, there
from regard.tasks.pretrained import fill
from regard.tasks.task import Evaluation, Loss, Prediction, Sample, by_input_length, weighed

LONGEST = 400
"""Tokens of a text that are learnt; what goes beyond is cut off, and counted."""
About = str | np.ndarray
"""What a text is written from."""


@runtime_checkable
class Conditioned(Protocol):
    """Data options that name texts, and what they are written from."""

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
    """Texts and, for each token, the one that follows (0 is padding); what they are about."""

    tokens: Tensor
    targets: Tensor
    about: Tensor


@dataclass(frozen=True)
class Conditional:
    """The next token of a text that is about a label or a vector."""

    config: LanguageConfig
    tokenizer: Tokenizer
    labels: Labels | None
    """The labels that texts are written from; None where it is vectors."""
    features: int | None
    """The size of these vectors."""
    kept: KeptVectors | None = None
    freeze: bool = False
    train: Corpus | None = None
    valid: Corpus | None = None

    def build(self) -> LanguageModel:
        """A language model with fresh weights, or with the word vectors of a file."""
        model = LanguageModel(
            self.config,
            self.tokenizer.size,
            labels=0 if self.labels is None else len(self.labels),
            features=self.features or 0,
        )
        fill(model.embedding, self.kept, self.freeze)
        return model

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        """Batches of similar length, in random order."""
        return shuffled(there(self.train).lengths("tokens"), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> Batch:
        """The tensors of one batch."""
        rows = there(self.train).rows(examples)
        return self._batch(rows["tokens"], rows["about"])

    def count(self, batch: Batch) -> int:
        """Tokens to predict."""
        return int((batch.targets != 0).sum())

    def loss(
        self, model: nn.Module, batch: Batch, smoothing: float, carried: list[Tensor]
    ) -> tuple[Loss, list[Tensor]]:
        """Cross-entropy of each next token, given what the text is about."""
        assert isinstance(model, LanguageModel)
        output, _ = model(batch.tokens, self._start(model, batch.about))
        total = next_token_loss(output.logits, batch.targets, smoothing)
        return Loss(total, weighed(output.balance)), carried

    def evaluate(self, model: nn.Module) -> Evaluation:
        """Perplexity on the validation texts."""
        corpus = there(self.valid)
        columns = zip(corpus.column("text"), corpus.column("about"), strict=True)
        return self.score(
            model,
            [
                Line(text, about if self.labels is None else self.labels.names[about])
                for text, about in columns
            ],
        )

    @torch.no_grad()
    def score(
        self, model: nn.Module, examples: Sequence[Line], *, budget: int = 4096
    ) -> Evaluation:
        """Perplexity per token, word and byte of texts, each given what it is about."""
        assert isinstance(model, LanguageModel)
        about = [self._number(example.condition, example.where) for example in examples]
        texts = [example.text for example in examples]
        rows = [np.array([*ids[:LONGEST], EOS]) for ids in self.tokenizer.ids(texts)]
        losses = np.zeros(len(rows))
        for chosen in in_order(np.array([len(row) for row in rows], dtype=np.int32), budget):
            batch = self._batch([rows[i] for i in chosen], [about[i] for i in chosen])
            output, _ = model(batch.tokens, self._start(model, batch.about))
            chances = output.logits.log_softmax(-1).gather(-1, batch.targets[..., None])[..., 0]
            losses[chosen] = -chances.masked_fill(batch.targets == 0, 0.0).sum(-1).double().numpy()
        words = [len(text.split()) + 1 for text in texts]
        tokens = [len(row) for row in rows]
        tallies = perplexities(losses, words, tokens, [len(text.encode()) + 1 for text in texts])
        written = continued(model, [], self._start(model, self._tensor(about[:1])), limit=30)
        shown = [_shown(example.condition) for example in examples]
        return Evaluation(
            metrics={name: measure(tally) for name, tally in tallies.items()},
            main="perplexity_per_word",
            higher=False,
            samples=(Sample(shown[0], texts[0], self.tokenizer.decode(written.output)),),
            by_length=by_input_length(tallies["perplexity_per_word"], words),
            lines=tuple(
                {"condition": given, "text": text, "log_probability": -float(loss)}
                for given, text, loss in zip(shown, texts, losses, strict=True)
            ),
        )

    @torch.no_grad()
    def predict(
        self, model: nn.Module, texts: Sequence[str | np.ndarray], **options: Any
    ) -> list[Prediction]:
        """A text written from each label or vector, perhaps with a beginning given after a tab.

        Where texts are written from vectors, these are arrays [d], or names of `.npy` files.
        """
        assert isinstance(model, LanguageModel)
        made = []
        for given in texts:
            about, prompt = self._asked(given)
            ids = self.tokenizer.ids([prompt])[0] if prompt else []
            state = self._start(model, self._tensor([about]))
            found = continued(model, ids, state, **options)
            made.append(
                Prediction(
                    self.tokenizer.decode(found.output),
                    len(ids) > LONGEST_PROMPT,
                    {"log_probability": found.log_probability},
                )
            )
        return made

    def _asked(self, given: str | np.ndarray) -> tuple[Any, str]:
        """The label's number or the vector, and the beginning."""
        about: About = given
        prompt = ""
        if isinstance(given, str):
            about, _, prompt = given.partition("\t")
            about = about.strip()
        if self.features is None:
            return self._number(about, ""), prompt
        vector = frames.sequence(about, self.features)
        if len(vector) != 1:
            raise RegardError(f"{_shown(about)}: {len(vector)} vectors: a text is written from one")
        return vector[0], prompt

    def _number(self, about: About | None, where: str) -> Any:
        """What the model is given: the number of a label, or a vector."""
        if self.labels is None:
            frames.fit(about, self.features, where)
            return about
        if not isinstance(about, str):
            raise RegardError(f"{where}: no label, but this run writes from labels")
        return self.labels.number(about, where)

    def _batch(self, rows: Sequence[np.ndarray], about: Sequence[Any]) -> Batch:
        targets, _ = pad(rows)
        begin = torch.full((len(rows), 1), EOS)
        return Batch(torch.cat([begin, targets[:, :-1]], 1), targets, self._tensor(about))

    def _tensor(self, about: Sequence[Any]) -> Tensor:
        if self.features is None:
            return torch.tensor(about, dtype=torch.long)
        return torch.from_numpy(np.stack(list(about)).astype(np.float32))

    def _start(self, model: LanguageModel, about: Tensor) -> LanguageState:
        if self.features is None:
            return model.start(len(about), label=about)
        return model.start(len(about), vector=about)


def read(data: Conditioned, sources: Sequence[Source], summary: Summary) -> Iterator[Line]:
    """Texts with what they are written from; vectors of other texts stand beside them.

    The vectors of the training data are those that `condition` names; other texts bring their own,
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
            f"{texts[0].name}: no vectors to go with it: name them beside it, as in test.txt "
            f"test.npy"
        )
    if len(arrays) > 1 or not texts:
        raise RegardError(f"{len(arrays)} files of vectors and {len(texts)} of text: one array")
    return read_lines(texts, data.text, arrays[0].name if arrays else condition, summary)


def write(found: Parts[Line], tokenizer: Tokenizer, folder: Path) -> str:
    """Write the corpora of texts and what they are about; what was found, in words."""
    first = next(found.train(), None)
    features = None if first is None else frames.size_of(first.condition)
    labels = None
    if features is None:
        labels = Labels.of(str(line.condition) for line in found.known())
        labels.save(folder / "labels.json")
        told = f"texts from {len(labels)} labels"
    else:
        frames.save_size(folder, features)
        told = f"texts from vectors of {features} numbers"
    cut = [0]
    found.write(folder, lambda lines: _rows(lines, tokenizer, labels, features, cut))
    return noted(told, f"{cut[0]} texts were cut at {LONGEST} tokens" if cut[0] else "")


def known(folder: Path) -> tuple[Labels | None, int | None]:
    """What `write` found: the labels, or the size of vectors."""
    features = frames.load_size(folder)
    return (Labels.load(folder / "labels.json") if features is None else None), features


def _rows(
    lines: Iterable[Line],
    tokenizer: Tokenizer,
    labels: Labels | None,
    features: int | None,
    cut: list[int],
) -> Iterator[dict[str, Any]]:
    for group in in_chunks(lines):
        rows = tokenizer.ids([line.text for line in group])
        for line, ids in zip(group, rows, strict=True):
            cut[0] += len(ids) > LONGEST
            about: Any = line.condition
            if labels is None:
                frames.fit(about, features, line.where)
            else:
                about = labels.number(str(about), line.where)
            yield {"tokens": [*ids[:LONGEST], EOS], "about": about, "text": line.text}


def _shown(about: object) -> str:
    if isinstance(about, str):
        return about
    numbers = np.asarray(about).ravel()
    return re.sub(r"\s+", " ", np.array2string(numbers, precision=3, threshold=8, edgeitems=2))
