"""A trained run: load it and use it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import torch
from torch import nn

from regard.data import Summary, hold_examples, resolve
from regard.data.readers.lines import clean_line, to_nfc
from regard.devices import device_of
from regard.errors import OptionError, RegardError, refuse_empty
from regard.notebook_cards import card
from regard.options import COLUMN_OPTIONS
from regard.progress import track
from regard.tasks.prediction import LogProbability, Prediction
from regard.tasks.registry import TASKS, TaskSpec
from regard.tasks.task import Evaluation, Task
from regard.trace import Trace
from regard.training import RunFolder
from regard.training.stored_runs.model_card import card_rows
from regard.training.stored_runs.run_summary import summarize_run
from regard.training.stored_runs.training_history import History, read_history
from regard.training.tensor_files import load_network

if TYPE_CHECKING:
    from regard.inference.align.alignments import Alignment
    from regard.inference.explain.faithfulness import Faithfulness


@dataclass(frozen=True, repr=False)
class Run:
    """A trained model with all that is needed to use it.

    Call it with a text, or with a list of texts: it returns one output, or a list of them.
    """

    name: str
    """The name of its task."""
    folder: RunFolder
    task: Task[Any]
    model: nn.Module
    data: Any
    """The data options it was trained with."""
    model_options: Mapping[str, Any] = field(default_factory=dict)
    """The model options it was trained with, as in its config; the architecture of a pretrained
    model."""

    @property
    def spec(self) -> TaskSpec:
        """The row of its task in the registry."""
        return TASKS.row(self.name)

    @property
    def device(self) -> torch.device:
        """The device that its model is on."""
        return device_of(self.model)

    @property
    def config(self) -> dict[str, Any]:
        """Its task and its data, model and training options, as in config.json."""
        return self.folder.config()

    @property
    def history(self) -> History:
        """The course of its training: one record per validation."""
        return read_history(self.folder.metrics)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its labels or tags, in the order of `predict_proba`."""
        return tuple(self.spec.require("labels", self.folder.path, "labels")(self.task))

    def _clean(self, text: Any) -> Any:
        """The text as the task reads it: a text to be continued keeps the blanks at its end."""
        return clean_text(text) if self.spec.generation is None else clean_prompt(text)

    @overload
    def __call__(self, texts: str, **options: Any) -> str: ...
    @overload
    def __call__(self, texts: Sequence[Any], **options: Any) -> list[str]: ...
    def __call__(self, texts: str | Sequence[Any], **options: Any) -> str | list[str]:
        """The output for a text, or for each text of a list: translation, label, tags, text."""
        if isinstance(texts, str):
            output: str = self.predict(texts, **options).output
            return output
        return [prediction.output for prediction in self.predict(texts, **options)]

    @overload
    def predict(
        self, texts: str, *, batch_size: int | None = None, **options: Any
    ) -> Prediction: ...
    @overload
    def predict(
        self, texts: Sequence[Any], *, batch_size: int | None = None, **options: Any
    ) -> list[Prediction]: ...
    def predict(
        self, texts: str | Sequence[Any], *, batch_size: int | None = None, **options: Any
    ) -> Prediction | list[Prediction]:
        """One prediction for a text, a list of them for a list; that of an empty text is empty.

        Args:
            texts: one text or several, or arrays if it was trained on vectors.
            batch_size: maximum number of texts per batch; it does not change the result.
            options: those of the task: the fields of its `predict_options`, and in translation
                `prefixes` (what each translation begins with) and `force`.
        """
        if isinstance(texts, str):
            (prediction,) = self.predict([texts], batch_size=batch_size, **options)
            return prediction
        clean = clean_texts(texts, self._clean)
        filled = [i for i, text in enumerate(clean) if not isinstance(text, str) or text.strip()]
        prefixes = options.pop("prefixes", None)
        if prefixes is not None and len(prefixes) != len(clean):
            raise ValueError(f"{len(prefixes)} prefixes for {len(clean)} texts")
        predictions = [Prediction("")] * len(clean)
        size = max(1, batch_size or len(filled))
        for chosen in (filled[i : i + size] for i in range(0, len(filled), size)):
            if prefixes is not None:
                options["prefixes"] = [clean_prompt(prefixes[i]) for i in chosen]
            batch = self.task.predict(self.model, [clean[i] for i in chosen], **options)
            for i, prediction in zip(chosen, batch, strict=True):
                predictions[i] = _as_one_line(prediction)
        return predictions

    def predict_proba(self, texts: str | Sequence[Any]) -> Any:
        """The probability of each label, in the order of `labels`: [n, labels] for n texts.

        For one text one row; of a tagger one array [words, labels] per text. Rows of an empty text
        are NaN.
        """
        compute = self.spec.require("probabilities", self.folder.path, "predict_proba")
        if isinstance(texts, str):
            return self.predict_proba([texts])[0]
        clean = clean_texts(texts)
        filled = [i for i, text in enumerate(clean) if not isinstance(text, str) or text.strip()]
        found = compute(self.task, self.model, [clean[i] for i in filled])
        if isinstance(found, list):
            by_text = [np.zeros((0, len(self.labels)))] * len(clean)
            for i, array in zip(filled, found, strict=True):
                by_text[i] = array
            return by_text
        rows = np.full((len(clean), len(self.labels)), np.nan)
        rows[filled] = found
        return rows

    def explain(self, text: str, *, erase: str | None = None) -> Trace:
        """The trace of a text with how much each token mattered, by every explain method.

        Args:
            text: one text.
            erase: how a token is left out: delete or unknown (default: delete; in tagging unknown).
        """
        from regard.inference.explain.explanations import explain

        return explain(self, text, erase=erase)

    def align(self, data: Any, **options: Any) -> "list[Alignment]":
        """The word alignment of each sentence pair, from attention or by a trained aligner.

        Args:
            data: file names, or pairs in any form that `regard.train` takes.
            options: those of `regard.inference.align.alignments.align`; `place` says where the
                attention is read (default: the layer and head that `choose_head` chooses). Of an
                aligner `threshold`, the minimum weight of a link.
        """
        from regard.inference.align.alignments import align
        from regard.inference.align.choose_head import choose_head, validation_pairs
        from regard.inference.align.forced_pairs import attention_sizes
        from regard.inference.align.read_pairs import read_every_pair

        if self.spec.aligner is not None:
            from regard.inference.align.trained_aligner import align_directly

            return list(
                align_directly(self, read_every_pair(self, resolve(hold_examples(data))), **options)
            )
        attention_sizes(self)  # refuses a run that cannot align
        pairs = read_every_pair(self, resolve(hold_examples(data)))
        place = options.pop("place", None) or choose_head(self, validation_pairs(self) or pairs)
        return list(align(self, pairs, place, **{"extract": "cover", **options}))

    def faithfulness(self, data: Any, **options: Any) -> "Faithfulness":
        """How faithful its attention is to what it does: words erased, weights shuffled.

        Args:
            data: file names, examples in any form that `regard.train` takes, or a list of texts.
            options: those of `regard.inference.explain.faithfulness.faithfulness`.
        """
        from regard.inference.explain.faithfulness import faithfulness, read_texts

        held = hold_examples(data)
        texts = list(data) if held is not data and _are_texts(data) else read_texts(self, held)[0]
        return faithfulness(self, texts, **options)

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
        clean = self._clean(text)
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
            self.task, self.model, clean_prompt(prompt), **options
        )
        return pieces

    def samples(self, prompt: str = "", samples: int = 1, **options: Any) -> list[Prediction]:
        """Several continuations of one prompt, which they begin with."""
        generation = self.spec.require("generation", self.folder.path, "generating text")
        predictions: list[Prediction] = generation.samples(
            self.task, self.model, clean_prompt(prompt), samples, **options
        )
        return predictions

    def log_probabilities(
        self, texts: Sequence[str], targets: Sequence[str] | None = None, **options: Any
    ) -> list[LogProbability]:
        """The log-probability of each text (language), or of each target (translation).

        `running=True` reads the texts of a language model as one text, as `evaluate` does.
        """
        compute = self.spec.log_probabilities
        if compute is None:
            raise ValueError(f"log-probabilities of texts do not apply to {self.name} runs")
        if targets is not None and len(targets) != len(texts):
            raise ValueError(f"{len(targets)} targets for {len(texts)} texts")
        clean = None if targets is None else [clean_text(target) for target in targets]
        return compute(
            self.task, self.model, [clean_text(text) for text in texts], clean, **options
        )

    def with_weights(self, path: Path) -> "Run":
        """The run with the weights of another file of its folder, such as a checkpoint."""
        return replace(self, model=load_weights(self.task, path, self.device))

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
            options: those of the task, the fields of its `evaluate_options`; and those of its data
                that choose columns, such as `text` and `label`, where these files have others than
                the training data.
        """
        columns = {name: options.pop(name) for name in COLUMN_OPTIONS if name in options}
        for name in columns:
            if data is None:
                raise OptionError(name, "requires data, which was not given")
        if data is None:
            examples, summary = self._own_test_examples()
            log(summary)
            return self.task.evaluate(self.model, examples, **options)
        refuse_empty(data, "data")
        counts = Summary()
        read = self.spec.read(self.data_with_columns(columns), resolve(hold_examples(data)), counts)
        examples = list(track(read, "reading data", unit="examples"))
        counts.require(1, "to evaluate")
        evaluation = self.task.evaluate(self.model, examples, **options)
        log(str(counts))
        return evaluation

    def data_with_columns(self, columns: Mapping[str, Any]) -> Any:
        """The data options of the run with other columns, if any are given."""
        for name in columns:
            if not hasattr(self.data, name):
                raise OptionError(name, f"does not apply to {self.name} runs")
            if name == "condition" and self.data.condition is None:
                raise OptionError(name, "this model was trained without conditions")
        return replace(self.data, **columns) if columns else self.data

    def _own_test_examples(self) -> tuple[Sequence[Any], str]:
        if self.spec.generated is not None:
            return self.spec.generated(self.task)
        if self.spec.corpus is None or self.data.data is not None:
            raise OptionError(
                "data", f"{self.folder.path} has no test data of its own: name files with examples"
            )
        from regard.corpora import make_corpus

        examples = make_corpus(self.spec.corpus).test
        return examples, f"{len(examples)} built-in test examples"

    def __repr__(self) -> str:
        size = sum(parameter.numel() for parameter in self.model.parameters())
        metric = summarize_run(self.folder.path).metric()
        parts = [self.name, f"{size:,} parameters", *([metric] if metric else [])]
        return f"Run({str(self.folder.path)!r}: {', '.join(parts)})"

    def _repr_html_(self) -> str:
        return card(f"Run {self.folder.path}", card_rows(summarize_run(self.folder.path)))


def load_weights(task: Task[Any], path: Path, device: torch.device) -> nn.Module:
    """The network of a task with the weights in a file, on a device."""
    try:
        return load_network(task.build, path, device)
    except ValueError as error:
        raise RegardError(f"{path.parent}: {error}") from error


def clean_texts(texts: Any, clean: Callable[[Any], Any] | None = None) -> list[Any]:
    """The texts of a list, or of anything else that can be iterated over, without blanks around."""
    if not isinstance(texts, Iterable) or isinstance(texts, bytes):
        raise ValueError(f"expected a text or a list of texts, got {texts!r}")
    return [(clean or clean_text)(text) for text in texts]


def clean_text(text: Any) -> Any:
    """The text as training reads it, without blanks at its ends; an array as it is."""
    if type(text) is str and text.isascii():
        return text.strip()
    return clean_line(without_surrogates(text)) if isinstance(text, str) else _check_array(text)


def clean_prompt(text: Any) -> Any:
    """A text to be continued: blanks at its end are part of what is continued."""
    if not isinstance(text, str):
        return _check_array(text)
    return to_nfc(without_surrogates(text)).lstrip()


def without_surrogates(text: str) -> str:
    """The text without lone surrogates, which no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _check_array(text: Any) -> Any:
    if text is None or isinstance(text, int | float):
        raise ValueError(f"expected a text, got {text!r}")
    return text


def _are_texts(data: Any) -> bool:
    return isinstance(data, list | tuple) and all(isinstance(text, str) for text in data)


def _as_one_line(prediction: Prediction) -> Prediction:
    lines = prediction.output.splitlines()
    return (
        prediction if lines == [prediction.output] else replace(prediction, output=" ".join(lines))
    )
