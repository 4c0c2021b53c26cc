"""A trained run: load it and use it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.data import Summary, hold_examples, resolve
from regard.errors import RegardError
from regard.progress import track
from regard.tasks.prediction import LogProbability, Prediction
from regard.tasks.registry import TASKS, TaskSpec
from regard.tasks.task import Evaluation, Task
from regard.trace import Trace
from regard.training import RunFolder
from regard.training.prepared_data import read_prepared, verify_prepared
from regard.training.run import make_configs
from regard.training.run_identity import check_identity, run_identity
from regard.training.tensor_files import load_network, read_header


@dataclass(frozen=True)
class Run:
    """A trained model with all that is needed to use it."""

    name: str
    """The name of its task."""
    folder: RunFolder
    task: Task[Any]
    model: nn.Module
    data: Any
    """The data options it was trained with."""
    model_options: Mapping[str, Any] = field(default_factory=dict)
    """The model options it was trained with, as in its config."""

    @property
    def spec(self) -> TaskSpec:
        """The row of its task in the registry."""
        return TASKS.row(self.name)

    def __call__(self, texts: Sequence[str], **options: Any) -> list[str]:
        """One output per text: its translation, label, tags or continuation."""
        return [prediction.output for prediction in self.predict(texts, **options)]

    def predict(
        self, texts: Sequence[Any], *, batch_size: int | None = None, **options: Any
    ) -> list[Prediction]:
        """One prediction per text; that of an empty text is empty.

        Args:
            texts: texts, or arrays if it was trained on vectors.
            batch_size: maximum number of texts per batch; it does not change the result.
            options: those of the task: the fields of its `predict_options`, and in translation
                `prefixes` (what each translation begins with) and `force`.
        """
        if isinstance(texts, str):
            raise ValueError(f"expected a list of texts, got one text: write [{texts!r}]")
        clean = [clean_text(text) for text in texts]
        filled = [i for i, text in enumerate(clean) if not isinstance(text, str) or text.strip()]
        prefixes = options.pop("prefixes", None)
        if prefixes is not None and len(prefixes) != len(clean):
            raise ValueError(f"{len(prefixes)} prefixes for {len(clean)} texts")
        predictions = [Prediction("")] * len(clean)
        size = max(1, batch_size or len(filled))
        for chosen in (filled[i : i + size] for i in range(0, len(filled), size)):
            if prefixes is not None:
                options["prefixes"] = [clean_text(prefixes[i]) for i in chosen]
            batch = self.task.predict(self.model, [clean[i] for i in chosen], **options)
            for i, prediction in zip(chosen, batch, strict=True):
                predictions[i] = _as_one_line(prediction)
        return predictions

    @torch.no_grad()
    def trace(self, text: str, target: str | None = None, **options: Any) -> Trace:
        """One text through the model, with every attention map.

        Args:
            text: what it reads; an empty text has no looks.
            target: a translation to force instead of the model's own.
            options: those of `predict`; for a language model `tokens`, the number of tokens that
                it generates.
        """
        make_trace = self.spec.trace
        if make_trace is None:
            raise ValueError(f"a trace does not apply to {self.name} runs")
        clean = clean_text(text)
        if isinstance(clean, str) and not clean.strip():
            return Trace(self.name, {}, (), "", card=self.card())
        if target is not None:
            if not self.spec.pairs_of_texts:
                raise ValueError(f"a target does not apply to {self.name} runs")
            options["target"] = clean_text(target)
        trace = make_trace(self.task, self.model, clean, **options)
        card = self.card()
        if not trace.looks and self.spec.attend_with:
            card["attend_with"] = self.spec.attend_with
        return replace(trace, task=self.name, card=card)

    def force(
        self,
        text: str,
        prefix: str | None = None,
        pins: Mapping[int, Sequence[int]] | None = None,
        **options: Any,
    ) -> Trace:
        """The trace of a translation under constraints.

        Args:
            text: what to translate.
            prefix: what the translation begins with.
            pins: for positions of the target, in tokens from 0, the words of the source that may
                be attended to there, as `text.split()` counts them from 0.
            options: those of `predict`.
        """
        pin_words = self.spec.pin_words
        if pin_words is None:
            raise ValueError(f"constraints on attention do not apply to {self.name} runs")
        clean = clean_text(text)
        tokens = pin_words(self.task, clean, pins) if pins and clean.strip() else None
        return self.trace(clean, prefix=prefix, pins=tokens, **options)

    def generate(self, prompt: str = "", **options: Any) -> Iterator[str]:
        """Pieces of the text that a language model writes after a prompt, as they are written.

        `options` are those of `Sampling`; together the pieces are what `predict` adds.
        """
        generation = self.spec.require("generation", self.folder.path, "generating text")
        pieces: Iterator[str] = generation.generate(
            self.task, self.model, clean_text(prompt), **options
        )
        return pieces

    def samples(self, prompt: str = "", samples: int = 1, **options: Any) -> list[Prediction]:
        """Several continuations of one prompt, which they begin with."""
        generation = self.spec.require("generation", self.folder.path, "generating text")
        predictions: list[Prediction] = generation.samples(
            self.task, self.model, clean_text(prompt), samples, **options
        )
        return predictions

    def log_probabilities(
        self, texts: Sequence[str], targets: Sequence[str] | None = None
    ) -> list[LogProbability]:
        """The log-probability of each text (language), or of each target (translation)."""
        compute = self.spec.log_probabilities
        if compute is None:
            raise ValueError(f"log-probabilities of texts do not apply to {self.name} runs")
        if targets is not None and len(targets) != len(texts):
            raise ValueError(f"{len(targets)} targets for {len(texts)} texts")
        clean = None if targets is None else [clean_text(target) for target in targets]
        return compute(self.task, self.model, [clean_text(text) for text in texts], clean)

    def with_weights(self, path: Path) -> "Run":
        """The run with the weights of another file of its folder, such as a checkpoint."""
        return replace(self, model=_load_network(self.task, path))

    def card(self) -> dict[str, Any]:
        """What the model is, in plain values."""
        sizes = [parameter.numel() for parameter in self.model.parameters()]
        about = {"parameters": sum(sizes), "model": dict(self.model_options)}
        return {"name": self.folder.path.name, **about}

    def evaluate(
        self,
        data: Any = None,
        *,
        log: Callable[[str], None] = lambda line: None,
        **options: Any,
    ) -> Evaluation:
        """The metrics on these examples, which are read as the training data was.

        Args:
            data: file names, or examples in any form that `regard.train` takes. Without it, a task
                that generates its examples generates new ones, and a run on built-in data is
                evaluated on the test split of the built-in corpus.
            log: called with lines for the user.
            options: those of the task, the fields of its `evaluate_options`.
        """
        if data is None:
            examples, summary = self._own_test_examples()
            log(summary)
            return self.task.evaluate(self.model, examples, **options)
        counts = Summary()
        read = self.spec.read(self.data, resolve(hold_examples(data)), counts)
        examples = list(track(read, "reading data", unit="examples"))
        counts.require(1, "to evaluate")
        evaluation = self.task.evaluate(self.model, examples, **options)
        log(str(counts))
        return evaluation

    def _own_test_examples(self) -> tuple[Sequence[Any], str]:
        if self.spec.generated is not None:
            return self.spec.generated(self.task)
        if self.spec.corpus is None or self.data.data is not None:
            raise RegardError(f"{self.folder.path}: name the files to evaluate on with --data")
        from regard.corpora import make_corpus

        examples = make_corpus(self.spec.corpus).test
        return examples, f"{len(examples)} built-in test examples"


def load(path: str | PathLike[str]) -> Run:
    """A trained run, ready for use."""
    folder = RunFolder(Path(path))
    config = folder.config()
    name = config["task"]
    try:
        spec = TASKS.row(name)
        data, model, _ = make_configs(spec, _options(config))
        default_data, default_model, _ = make_configs(spec, {})
    except RegardError as error:
        raise RegardError(f"{folder.path}: {error}") from error
    if not folder.model.exists():
        raise RegardError(f"{folder.path}: has no weights yet: train it first")
    prepared = read_prepared(folder)
    used = {"task": name, "data": asdict(data), "model": asdict(model)}
    defaults = {"data": asdict(default_data), "model": asdict(default_model)}
    identity = run_identity(used, prepared.digest)
    check_identity(read_header(folder.model).about, identity, folder.model, defaults)
    verify_prepared(folder, prepared, corpora=False)
    task = spec.load(data, model, folder.data)
    network = _load_network(task, folder.model)
    return Run(name, folder, task, network, data, config["model"])


def _load_network(task: Task[Any], path: Path) -> nn.Module:
    try:
        return load_network(task.build, path)
    except ValueError as error:
        raise RegardError(f"{path.parent}: {error}") from error


def clean_text(text: Any) -> Any:
    """The text without lone surrogates, which no file can hold; an array as it is."""
    if isinstance(text, str):
        return text.encode("utf-8", "replace").decode("utf-8")
    if text is None or isinstance(text, int | float):
        raise ValueError(f"expected a text, got {text!r}")
    return text


def _as_one_line(prediction: Prediction) -> Prediction:
    return replace(prediction, output=" ".join(prediction.output.splitlines()))


def _options(config: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run by name, from its config."""
    parts = [config.get(part) for part in ("data", "model", "training")]
    if not all(isinstance(part, dict) for part in parts):
        raise RegardError("its config has no data, model and training options")
    return {name: value for part in parts if part for name, value in part.items()}
