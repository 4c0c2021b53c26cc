"""Runs: train one, load one, and use it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.data import Summary, resolve
from regard.data.blueprints import KINDS as TOKENIZERS
from regard.data.builtin import make as built_in
from regard.data.corpus import fingerprint
from regard.errors import RegardError, unknown
from regard.options import at_least, check_names, make, share
from regard.tasks.algorithm import Algorithm
from regard.tasks.generation import LONGEST_PROMPT, continuations, pieces
from regard.tasks.kinds import KINDS, Kind
from regard.tasks.parts import with_corpora
from regard.tasks.prompts import prompted
from regard.tasks.scoring import Scored, scored
from regard.tasks.task import Evaluation, Prediction, Task
from regard.tasks.traces import trace
from regard.tasks.translating import word_pins
from regard.tasks.translation import Translation
from regard.trace import Trace
from regard.training import Position, Progress, RunFolder, TrainingConfig, train
from regard.training.checkpoints import load_weights, read_tensors
from regard.training.folder import write_text
from regard.training.processes import current

SIZES = (
    "width",
    "layers",
    "heads",
    "queries",
    "window",
    "local_width",
    "max_length",
    "word_size",
    "feed_forward",
    "character_features",
)
"""Options of models that count something there must be one of."""
COUNTS = ("characters", "ngrams", "experts")
"""Options of models that may be 0."""


@dataclass(frozen=True)
class Run:
    """A trained model with all that it needs to be used."""

    name: str
    folder: RunFolder
    task: Task
    model: nn.Module
    data: Any
    """The data options it was trained with."""
    built: Mapping[str, Any] = field(default_factory=dict)
    """The model options it was trained with, as they stand in its config."""

    def __call__(self, texts: Sequence[str], **options: Any) -> list[str]:
        """One output for each text: its translation, label, tags or continuation."""
        return [found.output for found in self.predict(texts, **options)]

    def predict(
        self, texts: Sequence[Any], *, batch_size: int | None = None, **options: Any
    ) -> list[Prediction]:
        """One prediction for each text, with all that is known of it; an empty text has none.

        Args:
            texts: what it reads: texts, or arrays where it was trained on vectors.
            batch_size: texts that are taken together at most; the result is the same.
            options: of the task: those of `Decoding` in translation, with `prefixes` (what each
                translation begins with) and `force`; those of `continuations` in language models.
        """
        if isinstance(texts, str):
            raise ValueError(f"expected a list of texts, got one text: write [{texts!r}]")
        clean = [_encodable(text) for text in texts]
        filled = [i for i, text in enumerate(clean) if not isinstance(text, str) or text.strip()]
        prefixes = options.pop("prefixes", None)
        if prefixes is not None and len(prefixes) != len(clean):
            raise ValueError(f"{len(prefixes)} prefixes for {len(clean)} texts")
        made = [Prediction("")] * len(clean)
        size = max(1, batch_size or len(filled))
        for some in (filled[i : i + size] for i in range(0, len(filled), size)):
            if prefixes is not None:
                options["prefixes"] = [_encodable(prefixes[i]) for i in some]
            found = self.task.predict(self.model, [clean[i] for i in some], **options)
            for i, one in zip(some, found, strict=True):
                made[i] = _line(one)
        return made

    def trace(self, text: str, target: str | None = None, **options: Any) -> Trace:
        """What it makes of one text, with every look that it takes on the way.

        Args:
            text: what it reads; an empty text has no looks.
            target: the translation that it is made to write instead of its own.
            options: those of `predict`; in a language model `tokens`, so many that it writes on.
        """
        clean = _encodable(text)
        if isinstance(clean, str) and not clean.strip():
            return Trace(self.name, {}, (), "", card=self.card())
        aim = None if target is None else _encodable(target)
        made = trace(self.task, self.model, clean, aim, **options)
        return replace(made, task=self.name, card=self.card())

    def force(
        self,
        text: str,
        prefix: str | None = None,
        pins: Mapping[int, Sequence[int]] | None = None,
        **options: Any,
    ) -> Trace:
        """A translation that begins as told and looks where it is told, decoded on from there.

        Args:
            text: what to translate.
            prefix: what the translation begins with.
            pins: for positions of the target, in tokens from 0, the words of the source that may
                be looked at there, as `text.split()` counts them from 0.
            options: those of `predict`.
        """
        if not isinstance(self.task, Translation):
            raise ValueError(f"attention can be forced in translation, not in a run of {self.name}")
        clean = _encodable(text)
        tokens = word_pins(self.task, clean, pins) if pins and clean.strip() else None
        return self.trace(clean, prefix=prefix, pins=tokens, **options)

    def generate(self, prompt: str = "", **options: Any) -> Iterator[str]:
        """Pieces of the text that a language model writes after a prompt, as they are written.

        `options` are those of `continuations`; together the pieces are what `predict` adds.
        """
        model, tokenizer, text, state = prompted(self.task, self.model, _encodable(prompt))
        return pieces(model, tokenizer, tokenizer.ids([text])[0], state, **options)

    def samples(self, prompt: str = "", samples: int = 1, **options: Any) -> list[Prediction]:
        """Several texts that a language model writes after one prompt, which they begin with."""
        model, tokenizer, text, state = prompted(self.task, self.model, _encodable(prompt))
        ids, names = tokenizer.ids([text])[0], tokenizer.vocabulary()
        found = continuations(model, [ids], lambda chosen: state, samples=samples, **options)[0]
        return [
            Prediction(
                tokenizer.decode([*ids, *one.output]),
                len(ids) > LONGEST_PROMPT,
                {
                    "log_probability": one.log_probability,
                    "tokens": [names[token] for token in one.tokens],
                    "token_log_probabilities": one.token_log_probabilities,
                    "finished": one.finished,
                },
            )
            for one in found
        ]

    def score(self, texts: Sequence[str], targets: Sequence[str] | None = None) -> list[Scored]:
        """How likely texts are (language), or targets given the texts (translation)."""
        if targets is not None and len(targets) != len(texts):
            raise ValueError(f"{len(targets)} targets for {len(texts)} texts")
        aims = None if targets is None else [_encodable(target) for target in targets]
        return scored(self.task, self.model, [_encodable(text) for text in texts], aims)

    def card(self) -> dict[str, Any]:
        """What the model is, in plain values."""
        sizes = [parameter.numel() for parameter in self.model.parameters()]
        about = {"parameters": sum(sizes), "model": dict(self.built)}
        return {"name": self.folder.path.name, **about}

    def evaluate(
        self,
        data: str | PathLike[str] | Sequence[str | PathLike[str]] | None = None,
        *,
        tell: Callable[[str], None] = lambda line: None,
        **options: Any,
    ) -> Evaluation:
        """How well it does on these files, which are read as those of training were.

        Without files, a task that makes its own examples makes new ones, and a run on built-in data
        is tested on the built-in examples kept for that.
        """
        if data is None:
            if isinstance(self.task, Algorithm):
                made: Sequence[Any] = self.task.problems()
                tell(f"{len(made)} new problems, half of trained lengths, half longer")
            elif self.data.data is None:
                made = built_in(self.name).test
                tell(f"{len(made)} built-in test examples")
            else:
                raise RegardError(f"{self.folder.path}: give the files to evaluate on with --data")
            return self.task.score(self.model, made, **options)
        summary = Summary()
        examples = list(KINDS[self.name].read(self.data, resolve(data), summary))
        summary.require(1, "to evaluate")
        found = self.task.score(self.model, examples, **options)
        tell(str(summary))
        return found


def _encodable(text: Any) -> Any:
    """The text without lone surrogates, which no file can hold; an array as it is."""
    if isinstance(text, str):
        return text.encode("utf-8", "replace").decode("utf-8")
    if text is None or isinstance(text, int | float):
        raise ValueError(f"expected a text, got {text!r}")
    return text


def _line(found: Prediction) -> Prediction:
    """A prediction whose output is one line, whatever the model wrote."""
    return Prediction(" ".join(found.output.splitlines()), found.cut, found.details)


def configs(task: str, given: Mapping[str, Any]) -> tuple[Any, Any, TrainingConfig]:
    """Data, model and training config of a task from options by name."""
    kind = _kind(task)
    check_names(given, (kind.data, kind.model, TrainingConfig), task)
    defaults = dict(kind.defaults)
    if given.get("steps") is not None or given.get("minutes") is not None:
        defaults["epochs"] = None
    options = {**defaults, **given}
    data: Any = make(kind.data, options)
    model: Any = make(kind.model, options)
    _check_values(kind, data, model)
    return data, model, make(TrainingConfig, options)


def _kind(task: str) -> Kind:
    if task not in KINDS:
        raise RegardError(unknown("task", task, KINDS))
    return KINDS[task]


def _check_values(kind: Kind, data: Any, model: Any) -> None:
    """Find wrong values before any data is read: build the network once, for a few words."""
    if getattr(data, "tokenizer", TOKENIZERS[0]) not in TOKENIZERS:
        raise RegardError(unknown("tokenizer", data.tokenizer, TOKENIZERS))
    at_least(model, **{name: 1 for name in SIZES if hasattr(model, name)})
    at_least(model, **{name: 0 for name in COUNTS if hasattr(model, name)})
    share(model, "dropout")
    name = "max_tokens" if hasattr(data, "max_tokens") else "window_tokens"
    longest = getattr(data, name, 0)
    parts = [getattr(model, part, None) for part in ("model", "encoder", "decoder")]
    placed = "transformer" in parts or (model.attention == "location" and name == "max_tokens")
    if placed and longest >= model.max_length:
        raise RegardError(f"option max_length: expected more than {name}, which is {longest}")
    kind.check(data, model)
    try:
        with torch.random.fork_rng(devices=[]):
            kind.network(model)
    except (ValueError, ArithmeticError, RuntimeError) as error:
        raise RegardError(f"these options do not make a model: {error}") from error


def train_run(
    task: str,
    options: Mapping[str, Any],
    out: str | PathLike[str] | None = None,
    *,
    report: Callable[[Progress], None] = lambda progress: None,
    tell: Callable[[str], None] = lambda line: None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[RunFolder, Position]:
    """Train, or go on training, in a run folder; how far it came."""
    data, model, training = configs(task, options)
    folder = RunFolder(Path(out) if out is not None else _next_folder(task))
    parts = {"data": asdict(data), "model": asdict(model), "training": asdict(training)}
    defaults = dict(zip(parts, map(asdict, configs(task, {})), strict=True))
    with folder.begin({"task": task, **parts}, defaults) as known:
        if known:
            tell(f"going on with the run in {folder.path}")
        try:
            _prepare(task, data, folder, training.seed, tell)
            prepared = KINDS[task].load(data, model, folder.data)
            if KINDS[task].corpora:
                prepared = with_corpora(prepared, folder.data)
            return folder, train(prepared, training, folder, report=report, stop=stop)
        except BaseException:
            # what is wrong with it would be wrong with the folder for ever
            if not known and not folder.learnt:
                folder.abandon()
            raise


def _prepare(
    task: str, data: Any, folder: RunFolder, seed: int, tell: Callable[[str], None]
) -> None:
    """Read the data into the folder, unless that was done; say what was read."""
    files = _fingerprint(data)
    if folder.prepared.exists():
        if files is None or folder.fingerprint() in (None, files) or not current().first:
            return
        if folder.learnt:
            tell("the files of the data have changed: the run goes on with what it read then")
            return
    try:
        folder.prepared.unlink(missing_ok=True)
        folder.data.mkdir(exist_ok=True)
        told = KINDS[task].prepare(data, folder.data, seed)
    except OSError as error:
        raise RegardError(f"{folder.data}: {error.strerror or error}") from error
    write_text(folder.prepared, json.dumps({"read": told, "files": files}, ensure_ascii=False))
    tell(told)


def _fingerprint(data: Any) -> str | None:
    """What would change if the files of the data did; None if that cannot be known."""
    named = [getattr(data, name, None) for name in ("data", "valid", "alignments", "vectors")]
    try:
        return fingerprint(source for names in named if names for source in resolve(names))
    except RegardError:  # a file that is gone is none that is needed
        return None


def load(path: str | PathLike[str]) -> Run:
    """A trained run, ready to be used."""
    folder = RunFolder(Path(path))
    config = folder.config()
    name = config["task"]
    try:
        data, model, _ = configs(name, _options(config))
    except RegardError as error:
        raise RegardError(f"{folder.path}: {error}") from error
    if not folder.model.exists():
        raise RegardError(f"{folder.path}: holds no weights yet: train it first")
    task = KINDS[name].load(data, model, folder.data)
    network = task.build()
    load_weights(network, read_tensors(folder.model)[0], folder.model)
    return Run(name, folder, task, network.eval(), data, config["model"])


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run by name, from its config."""
    parts = [config.get(part) for part in ("data", "model", "training")]
    if not all(isinstance(part, dict) for part in parts):
        raise RegardError("its config has no data, model and training options")
    return {name: value for part in parts if part for name, value in part.items()}


def _next_folder(task: str) -> Path:
    for number in count(1):
        path = Path("runs") / f"{task}-{date.today().isoformat()}-{number}"
        if not path.exists():
            return path
    raise AssertionError  # count never ends
