"""Questions to a model: one text, the outputs to be explained, and a way to read it with gaps.

Whatever the task, an output is one choice among several (a label, a tag, the next word), and what
is explained is its log-odds, ln p / (1 - p): not bounded as a probability is, and for two labels
linear where the model is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.tokenizer import BOS, EOS, SPECIAL, UNK, Tokenizer
from regard.errors import RegardError, unknown
from regard.inference.interventions import twin
from regard.inference.reach import Reach, reach_back, reach_of_tags, reach_over, reach_pooled
from regard.inference.runs import Run
from regard.models import Classifier, LanguageModel, Tagger, Translator
from regard.models.output import Weights
from regard.tasks.classification import Classification
from regard.tasks.language import LONGEST_PROMPT, Language
from regard.tasks.sides import side, word_spans, written
from regard.tasks.tagging import STRETCH, Tagging
from regard.tasks.translating import Decoding, decode
from regard.tasks.translation import Translation
from regard.trace import Side

ERASE = ("delete", "unknown")
TINY = 1e-30
BUDGET = 8192
"""Tokens that are read at once."""


class Answer(NamedTuple):
    """What a model makes of some versions of a text."""

    log_probabilities: Float[Tensor, "b v"]
    weights: Weights


@dataclass(frozen=True)
class Question:
    """One text before a model, and the outputs that are to be explained."""

    network: nn.Module
    """A twin of the model: what is hung on it stays with it."""
    first: tuple[nn.Module, ...]
    """The layers that turn tokens into vectors [b, t, e]."""
    read: Callable[[Tensor, Tensor, bool], Answer]
    """From kept tokens [b, t], the place of each version's output [b] and whether weights are
    needed, to its log-probabilities."""
    name: str
    """The side that is read."""
    side: Side
    places: tuple[int, ...]
    """The outputs, by their places."""
    chosen: tuple[int, ...]
    """What the model chose there."""
    names: tuple[str, ...]
    """The same as text."""
    visible: Bool[np.ndarray, "o t"]
    """The tokens that each output depends on and that can be erased."""
    units: Int[np.ndarray, "t"]
    """The tokens that are erased together have one number: those of a word."""
    reach: Reach
    """From the weights of one version of the text to those of each output over tokens."""
    erase: str
    """How tokens are erased: delete or unknown."""

    @property
    def tokens(self) -> int:
        """How many tokens the side has."""
        return len(self.side.tokens)

    @property
    def at_once(self) -> int:
        """How many versions of the text are read at once."""
        return max(1, BUDGET // (self.tokens + len(self.places)))

    def log_odds(self, kept: Bool[Tensor, "b t"], which: Int[Tensor, "b"]) -> Float[Tensor, "b"]:
        """ln p / (1 - p) of output number `which` for versions of the text."""
        chances = self.read(kept, torch.tensor(self.places)[which], False).log_probabilities
        return log_odds(chances, torch.tensor(self.chosen)[which])


def log_odds(chances: Float[Tensor, "b v"], chosen: Int[Tensor, "b"]) -> Float[Tensor, "b"]:
    """ln p / (1 - p) from log-probabilities, exact where p is near 1 too."""
    own = chances.gather(1, chosen[:, None])
    others = chances.scatter(1, chosen[:, None], float("-inf")).logsumexp(1)
    return own[:, 0] - others


def ask(run: Run, text: str, *, erase: str | None = None, every: bool = False) -> Question | None:
    """The question what a run makes of a text; None where there is nothing to read in it.

    Args:
        run: a trained run.
        text: one text.
        erase: delete a token, or put the unknown one in its place; a tagger needs a word for every
            tag and knows the second way alone. Deleting unless said, where both are there.
        every: of a language model, explain what it expects after each token, not the last alone.
    """
    if erase is not None and erase not in ERASE:
        raise ValueError(unknown("way to erase", erase, ERASE))
    if getattr(run.task, "features", None) is not None:
        raise RegardError(f"{run.folder.path}: reads vectors, which have no words to explain by")
    text = text.encode("utf-8", "replace").decode("utf-8")
    if not text.strip():
        return None
    network = twin(run.model)
    with torch.no_grad():
        if isinstance(run.task, Classification):
            return _classify(run.task, network, text, erase or "delete")
        if isinstance(run.task, Translation):
            return _translate(run.task, network, text, erase or "delete")
        if isinstance(run.task, Language):
            return _continue(run.task, network, text, erase or "delete", every)
        if isinstance(run.task, Tagging):
            return _tag(run.task, network, text, erase or "unknown")
    raise RegardError(f"{run.folder.path}: a run of task {run.name} cannot be explained")


def _classify(task: Classification, network: Any, text: str, erase: str) -> Question | None:
    assert isinstance(network, Classifier)
    encoded = task.tokenizer.encode(text)
    ids = torch.tensor(encoded.ids[: task.max_tokens])
    if not len(ids):
        return None

    def read(kept: Tensor, places: Tensor, need_weights: bool) -> Answer:
        output = network(*erased(ids, kept, erase), need_weights=need_weights)
        if not task.several:
            return Answer(output.logits.log_softmax(-1), output.weights)
        own = output.logits[torch.arange(len(kept)), places]
        return Answer(torch.stack([0 * own, own], 1).log_softmax(-1), output.weights)

    # each of several labels is an output of its own, which says no or yes
    places = torch.arange(len(task.labels) if task.several else 1)
    whole = torch.ones(len(places), len(ids), dtype=torch.bool)
    best = read(whole, places, False).log_probabilities.argmax(-1).tolist()
    names = task.labels.names
    shown = side(text, encoded.offsets[: len(ids)])
    return Question(
        network,
        (network.inputs.words,),  # type: ignore[arg-type]
        read,
        "text",
        shown,
        tuple(places.tolist()),
        tuple(best),
        tuple(f"{'' if yes else 'not '}{name}" for name, yes in zip(names, best, strict=True))
        if task.several
        else (names[best[0]],),
        whole.numpy(),
        _units(task.tokenizer, shown),
        reach_pooled,
        erase,
    )


def _translate(task: Translation, network: Any, text: str, erase: str) -> Question | None:
    assert isinstance(network, Translator)
    encoded = task.source.encode(text)
    ids = torch.tensor(encoded.ids[: task.max_tokens])
    if not len(ids):
        return None
    found = decode(task, network, [text], Decoding())[0][0]
    target = torch.tensor([BOS, *found.tokens])[:-1]

    def read(kept: Tensor, places: Tensor, need_weights: bool) -> Answer:
        forced = target.expand(len(kept), -1)
        output = network(*erased(ids, kept, erase), forced, need_weights=need_weights)
        there = output.logits[torch.arange(len(kept)), places]
        return Answer(there.log_softmax(-1), output.weights)

    shown = side(text, encoded.offsets[: len(ids)])
    output, spans = written(task.target, found.output)
    end = (SPECIAL[EOS],) if found.finished else ()
    return Question(
        network,
        (network.source.words,),
        read,
        "source",
        shown,
        tuple(range(len(target))),
        tuple(found.tokens),
        (*(output[a:b] for a, b in spans), *end),
        np.ones((len(target), len(ids)), dtype=bool),
        _units(task.source, shown),
        reach_over,
        erase,
    )


def _continue(task: Language, network: Any, text: str, erase: str, every: bool) -> Question | None:
    assert isinstance(network, LanguageModel)
    encoded = task.tokenizer.encode(text)
    ids = torch.tensor([EOS, *encoded.ids[-LONGEST_PROMPT:]])
    if len(ids) < 2:
        return None

    def read(kept: Tensor, places: Tensor, need_weights: bool) -> Answer:
        words, _ = erased(ids, kept, erase)
        if erase == "delete":  # what was last before the output is last again
            places = kept.cumsum(1)[torch.arange(len(kept)), places] - 1
        output, _ = network(words, network.start(len(words)), need_weights=need_weights)
        there = output.logits[torch.arange(len(words)), places]
        return Answer(there.log_softmax(-1), output.weights)

    places = torch.arange(1, len(ids)) if every else torch.tensor([len(ids) - 1])
    kept = torch.ones(len(places), len(ids), dtype=torch.bool)
    best = read(kept, places, False).log_probabilities.argmax(-1).tolist()
    shown = side(text, encoded.offsets[-(len(ids) - 1) :], first=SPECIAL[EOS])
    visible = np.arange(len(ids)) <= places.numpy()[:, None]
    visible[:, 0] = False  # the start of a text is no word of it
    names = task.tokenizer.vocabulary()
    return Question(
        network,
        (network.embedding.words,),
        read,
        "text",
        shown,
        tuple(places.tolist()),
        tuple(best),
        tuple(names[token] for token in best),
        visible,
        _units(task.tokenizer, shown),
        reach_back,
        erase,
    )


def _tag(task: Tagging, network: Any, text: str, erase: str) -> Question | None:
    assert isinstance(network, Tagger)
    if erase == "delete":
        raise RegardError("a tagger needs a word for every tag: words become unknown, not deleted")
    spans = word_spans(text)[:STRETCH]
    words = [text[a:b] for a, b in spans]
    if not words:
        return None
    ids, lengths, characters = task._spelt([words])

    def read(kept: Tensor, places: Tensor, need_weights: bool) -> Answer:
        size, rows = len(kept), torch.arange(len(kept))
        blank = torch.zeros_like(characters[0])
        blank[:, 0] = UNK
        spelt = torch.where(kept[:, :, None], characters, blank)
        all_lengths = lengths.expand(size)
        given = erased(ids[0], kept, erase)[0]
        output = network(given, all_lengths, spelt, need_weights=need_weights)
        if network.crf is None:
            return Answer(output.logits[rows, places].log_softmax(-1), output.weights)
        chances = network.crf.marginals(output.logits, all_lengths)[rows, places]
        return Answer(chances.clamp(min=TINY).log(), output.weights)

    whole = torch.ones(1, len(words), dtype=torch.bool)
    logits = network(ids, lengths, characters).logits
    best = network.decode(logits, lengths)[0]
    first = (network.inputs.words, network.characters, network.ngrams)
    return Question(
        network,
        tuple(part for part in first if part is not None),  # type: ignore[misc]
        read,
        "text",
        side(text, spans),
        tuple(range(len(words))),
        tuple(best),
        tuple(task.labels.names[tag] for tag in best),
        whole.numpy().repeat(len(words), 0),
        np.arange(len(words)),
        reach_of_tags,
        erase,
    )


def erased(
    ids: Int[Tensor, "t"], kept: Bool[Tensor, "b t"], erase: str = "delete"
) -> tuple[Int[Tensor, "b u"], Int[Tensor, "b"]]:
    """Versions of a text with these tokens kept, and their lengths.

    >>> erased(torch.tensor([7, 8, 9]), torch.tensor([[True, False, True]]))
    (tensor([[7, 9]]), tensor([2]))
    """
    versions = ids.expand(len(kept), -1)
    if erase == "unknown":
        lengths = torch.full((len(kept),), len(ids))
        return torch.where(kept, versions, UNK), lengths
    order = (~kept).to(torch.uint8).argsort(dim=1, stable=True)
    lengths = kept.sum(1)
    longest = max(1, int(lengths.max()))
    left = versions.gather(1, order)[:, :longest]
    return left * (torch.arange(longest) < lengths[:, None]), lengths


def _units(tokenizer: Tokenizer, shown: Side) -> Int[np.ndarray, "t"]:
    """Pieces of a word are erased together; tokenizers of words part punctuation for good."""
    if tokenizer.kind == "word":
        return np.arange(len(shown.tokens))
    numbers, last = [], -1
    before: int | None = None
    for token in shown.tokens:
        if token.word is None or token.word != before:
            last += 1
        numbers.append(last)
        before = token.word
    return np.array(numbers)
