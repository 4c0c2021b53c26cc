"""Estimators for scikit-learn: `fit`, `predict`, `score`, pipelines, grid search.

The parameters of an estimator are the options of its task, so that they have the same names and
defaults as in `regard.train` and on the command line. Imports are absolute: in this module too,
`sklearn` is scikit-learn.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, TypeVar
from unicodedata import normalize
from zipfile import ZipFile

import numpy as np

from regard.data.tags import tag_scheme, to_bio
from regard.errors import RegardError, python_wording, unknown
from regard.inference import Run, load
from regard.metrics import entity_metrics, metric_value, token_accuracy
from regard.tasks.registry import TASKS, TaskSpec
from regard.training import TrainingConfig
from regard.training.run import train_run
from regard.training.stored_runs.run_packing import pack_run, prune_run

try:
    from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
    from sklearn.utils.multiclass import (  # type: ignore[import-untyped]
        check_classification_targets,
    )
    from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError("regard.sklearn needs scikit-learn: pip install 'regard[sklearn]'") from error

__all__ = ["Tagger", "TextClassifier"]

NOT_PARAMETERS = ("data", "valid", "text", "label", "several", "separator")
"""Options that `fit` takes the place of, or that need several labels per text."""
E = TypeVar("E", bound=type)


def _with_options(task: TaskSpec) -> Callable[[E], E]:
    """Give an estimator the options of a task as parameters, with their defaults."""
    defaults = {
        field.name: task.training_defaults.get(field.name, field.default)
        for config in (task.data, task.model, TrainingConfig)
        for field in fields(config)
        if field.name not in NOT_PARAMETERS
    }

    def __init__(self: Any, **options: Any) -> None:  # noqa: N807
        for name in options:
            if name not in defaults:
                raise TypeError(unknown("parameter", name, defaults, listed=False))
        for name, default in defaults.items():
            setattr(self, name, options.get(name, default))

    parameters = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default)
        for name, default in defaults.items()
    ]
    own = Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__dict__["__signature__"] = Signature([own, *parameters])

    def decorate(cls: E) -> E:
        cls.__init__ = __init__  # type: ignore[misc]
        cls._task, cls._defaults = task.name, defaults  # type: ignore[attr-defined]
        return cls

    return decorate


def _task_of(estimator: str) -> TaskSpec:
    return next(task for task in TASKS.values() if task.estimator == estimator)


class _RunEstimator(BaseEstimator):  # type: ignore[misc]
    """What the estimators share: training in a folder of their own, and pickling."""

    _task: str
    _defaults: dict[str, Any]
    run_: Run

    def save_run(self, path: str | Path) -> None:
        """Write the trained run to a new folder, or to a file that ends in .zip.

        `regard.load` and every command take the folder; it holds no training text.
        """
        check_is_fitted(self)
        pack_run(self.run_.folder.path, Path(path))

    def _train(self, data: tuple[Sequence[Any], Sequence[Any]]) -> Run:
        """Train a run in a temporary folder, which is removed together with the run."""
        given = {
            name: getattr(self, name)
            for name, default in self._defaults.items()
            if getattr(self, name) is not default and getattr(self, name) != default
        }
        folder = _temporary_folder()
        try:
            with python_wording():
                train_run(self._task, {**given, "data": data}, folder)
            prune_run(folder)
            return _owned(folder)
        except RegardError as error:
            shutil.rmtree(folder.parent, ignore_errors=True)
            raise ValueError(str(error)) from error
        except BaseException:
            shutil.rmtree(folder.parent, ignore_errors=True)
            raise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """The parameters, and the packed run as bytes: config, weights, tokenizers and labels."""
        state: dict[str, Any] = {**super().__getstate__()}
        if "run_" in state:
            with tempfile.TemporaryDirectory(prefix="regard-") as folder:
                archive = Path(folder) / "run.zip"
                pack_run(self.run_.folder.path, archive)
                state["run_"] = archive.read_bytes()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        packed = state.get("run_")
        if packed is not None:
            folder = _temporary_folder()
            archive = folder.parent / "run.zip"
            archive.write_bytes(packed)
            with ZipFile(archive) as files:
                files.extractall(folder.parent)
            archive.unlink()
            state = {**state, "run_": _owned(folder)}
        super().__setstate__(state)


@_with_options(_task_of("TextClassifier"))
class TextClassifier(ClassifierMixin, _RunEstimator):  # type: ignore[misc]
    """A classifier of texts, or of sequences of vectors.

    X is a list of texts, or an array [n, t, d] or [n, d]; y has one label per text, of any type. An
    empty text gets the proportions of the classes in the training data.

    Attributes:
        classes_: the labels, sorted.
        class_prior_: the proportion of each in the training data.
        run_: the trained `Run`, which also explains and shows.
    """

    def fit(self, X: Any, y: Any) -> "TextClassifier":  # noqa: N803
        """Train on texts and their labels; a part of them is held out to choose the weights."""
        texts = _check_texts(X)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        labels = np.asarray(y)
        if labels.ndim != 1 or len(labels) != len(texts):
            shape = list(labels.shape)
            raise ValueError(f"y of shape {shape} for {len(texts)} texts: expected one label each")
        check_classification_targets(labels)
        classes, numbers = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            only = classes.tolist()[0]
            raise ValueError(f"all texts have the class {only!r}: at least two are needed")
        names = _label_names(classes)
        self.run_ = self._train((texts, [names[number] for number in numbers]))
        self.classes_ = classes
        self.class_prior_ = np.bincount(numbers, minlength=len(classes)) / len(numbers)
        self._columns = [self.run_.labels.index(name) for name in names]
        return self

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """The most likely label of each text."""
        best: np.ndarray = self.predict_proba(X).argmax(1)
        labels: np.ndarray = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """The probability of each label, [n, labels], in the order of `classes_`."""
        check_is_fitted(self)
        rows = self.run_.predict_proba(_check_texts(X))[:, self._columns]
        probabilities: np.ndarray = np.where(np.isnan(rows), self.class_prior_, rows)
        return probabilities


@_with_options(_task_of("Tagger"))
class Tagger(_RunEstimator):
    """A tagger of words, such as one of named entities.

    X is a list of sentences, each a list of words or a text that is split at white space; y has a
    list of tags for each. Tags that mark spans (BIO, BIOES) come out as BIO.

    Attributes:
        classes_: the tags.
        run_: the trained `Run`, which also explains and shows.
    """

    def fit(self, X: Any, y: Any) -> "Tagger":  # noqa: N803
        """Train on sentences and their tags; a part is held out to choose the weights."""
        sentences = _check_sentences(X)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        tags = [list(row.split() if isinstance(row, str) else row) for row in y]
        if [len(row) for row in tags] != [len(words) for words in sentences]:
            raise ValueError("expected one tag for each word of each sentence")
        self.run_ = self._train((sentences, tags))
        self.classes_ = np.array(self.run_.labels)
        return self

    def predict(self, X: Any) -> list[list[str]]:  # noqa: N803
        """The tags of each sentence."""
        check_is_fitted(self)
        tagged = self.run_.task.tag(self.run_.model, _check_sentences(X), probabilities=False)  # type: ignore[attr-defined]
        return [list(sentence.tags) for sentence in tagged]

    def predict_proba(self, X: Any) -> list[np.ndarray]:  # noqa: N803
        """The probability of each tag, [words, tags] per sentence, in the order of `classes_`."""
        check_is_fitted(self)
        probabilities: list[np.ndarray] = self.run_.predict_proba(_check_sentences(X))
        return probabilities

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """F1 of entities; for tags that mark no spans, the proportion of words tagged right."""
        gold = [list(row.split() if isinstance(row, str) else row) for row in y]
        predicted = self.predict(X)
        if tag_scheme(tag for row in gold for tag in row) == "plain":
            return metric_value(token_accuracy(predicted, gold))
        return metric_value(entity_metrics(predicted, [to_bio(row) for row in gold])["f1"])


def _check_texts(X: Any) -> list[Any]:  # noqa: N803
    if isinstance(X, str) or hasattr(X, "columns") or not isinstance(X, Iterable):
        hint = ", such as X['text'] of a data frame" if hasattr(X, "columns") else ""
        raise ValueError(f"X is a {type(X).__name__}: expected a list of texts{hint}")
    texts = list(X)
    for i, text in enumerate(texts):
        if not isinstance(text, (str, np.ndarray)):
            raise ValueError(f"X[{i}] is a {type(text).__name__}: expected a text")
    if not texts:
        raise ValueError("X has no texts: expected at least one")
    return texts


def _check_sentences(X: Any) -> list[list[str]]:  # noqa: N803
    if isinstance(X, str) or not isinstance(X, Iterable):
        raise ValueError(f"X is a {type(X).__name__}: expected a list of sentences")
    sentences = [words.split() if isinstance(words, str) else words for words in X]
    for i, words in enumerate(sentences):
        if not isinstance(words, Iterable) or not all(isinstance(word, str) for word in words):
            raise ValueError(f"X[{i}]: expected a list of words, or a text")
    return [list(map(str, words)) for words in sentences]


def _label_names(classes: np.ndarray) -> list[str]:
    """Names by which a run knows the classes: their own, or numbers where these are no names."""
    names = [str(label) for label in classes.tolist()]
    plain = all(name and name == normalize("NFC", name).strip() for name in names)
    usable = plain and len(set(names)) == len(names)
    return names if usable else [str(number) for number in range(len(names))]


def _temporary_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="regard-")) / "run"


def _owned(folder: Path) -> Run:
    """The run in a temporary folder, which is removed when nothing uses the run any more."""
    run = load(folder)
    weakref.finalize(run.folder, shutil.rmtree, folder.parent, ignore_errors=True)
    return run
