"""The table of tasks: one row says all that the rest of Regard knows of a task.

Commands, traces, explanations, the server and the app read these rows; none of them knows a task
by name. Another package adds a task by an entry point in the group `regard.tasks` that names a
`TaskSpec`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import RegardError
from regard.plugins import Table
from regard.tasks.prediction import LogProbability
from regard.tasks.shared.http_shapes import HttpShapes

if TYPE_CHECKING:
    from regard.data import DataReport, Example, Source, Summary
    from regard.tasks.shared.explain_target import ExplainTarget
    from regard.tasks.shared.pretrained.pretrained_encoder import AdoptedModel
    from regard.tasks.shared.pretrained.transformers_format import TransformersModel
    from regard.tasks.task import Task
    from regard.trace import Trace

SCREENS = ("self-attention", "gradient", "steps", "compare", "trust", "training", "length")
"""Screens of the app that suit every task with attention."""


@dataclass(frozen=True)
class TextGeneration:
    """How a task continues prompts."""

    generate: Callable[..., Iterator[str]]
    """(task, model, prompt, **options): pieces of the continuation as they are written."""
    samples: Callable[..., list[Any]]
    """(task, model, prompt, number, **options): several continuations as predictions."""
    stream: Callable[..., Any]
    """(task, model, prompt, …): a continuation with stop sequences, for the server."""
    unavailable: Callable[[Mapping[str, Any]], str] = lambda data: ""
    """Why runs with these data options cannot continue a prompt; empty where they can."""


@dataclass(frozen=True)
class TranslationService:
    """What clients of a translation service need to know of a run."""

    languages: Callable[[Mapping[str, Any]], tuple[str, str]]
    """From the data options: the source and the target language."""
    detection_cost: Callable[..., int]
    """(task, text): the number of tokens of the text, unknown characters counted each."""


@dataclass(frozen=True)
class WordAligner:
    """How the models of a task align the words of sentence pairs."""

    posteriors: Callable[..., list[Any]]
    """(task, model, pairs): per pair a record with `source`, `target`, `weights` [t, s], `joint`
    [t, s] (what each target word attends to, as both directions see it) and `links(threshold)`."""
    threshold: Callable[[Any], float]
    """(model): the minimum weight of a link that was chosen in training."""
    choose_threshold: Callable[..., float]
    """(posteriors, gold links): another one, for these pairs."""
    lexicon: Callable[..., Iterator[Any]]
    """(task, model, least probability): pairs of words that translate each other, as tuples of
    source, target and the probability of each given the other."""


@dataclass(frozen=True)
class TaskSpec:
    """One task: its options, how its data is read and prepared, and what its runs can do.

    Everything from `trace` on is an optional capability. A command whose capability is None says
    that it does not apply to runs of this task.
    """

    name: str
    """As on the command line: `regard train NAME`."""
    summary: str
    """One line for `regard train --help`."""
    data: type
    """The dataclass of data options."""
    model: type
    """The dataclass of model options."""
    read: "Callable[[Any, Sequence[Source], Summary], Iterator[Example]]"
    """(data options, files, summary): the examples of some files."""
    prepare: "Callable[[Any, Path, int], DataReport]"
    """(data options, folder, seed): write all that training needs; what was read."""
    load: "Callable[[Any, Any, Path], Task[Any]]"
    """(data options, model options, folder): the task whose data was prepared in the folder."""
    train_example: str = ""
    """Arguments of `regard train NAME` for an example in its help."""
    training_defaults: Mapping[str, Any] = field(default_factory=dict)
    """Options with other defaults in new runs than in their dataclasses. An option that is added
    later has, in its dataclass, the value that earlier runs had without knowing it."""
    defaults_with: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options with other defaults where an option is given, by the name of that option, such as
    `pretrained`."""
    attend_with: str = ""
    """Training options with which its models attend, named where a run without attention is to be
    shown."""
    check: Callable[[Any, Any], None] = lambda data, model: None
    """(data options, model options): raise RegardError where they do not fit together."""
    corpus: str | None = None
    """The built-in corpus, by its name in `regard.corpora.CORPORA`."""
    generated: Callable[..., tuple[Sequence[Any], str]] | None = None
    """For a task that makes its examples itself: new test examples, and what they are."""
    running_text: Callable[[Any], bool] = lambda data: False
    """(data options): whether the order of the examples matters, so that a split must cut once."""

    predict_options: type | None = None
    """The dataclass of options of `regard predict`."""
    evaluate_options: type | None = None
    """The dataclass of options of `regard evaluate`."""
    score_options: type | None = None
    """The dataclass of options of `regard score`."""
    compares: str | None = None
    """What its predictions are, for metrics by name: texts, labels, tag sequences …; None where
    `regard evaluate --metrics` does not apply."""
    accepts: frozenset[str] = frozenset()
    """Further arguments of `predict`, one value per text: `prefixes`, `force`."""

    trace: "Callable[..., Trace] | None" = None
    """(task, model, text, target, **options): the trace of one text."""
    explain: "Callable[..., ExplainTarget | None] | None" = None
    """(task, network, text, erase, every): the outputs to explain; None for an empty text."""
    example_text: Callable[[Any], str] | None = None
    """(example): the text of an example that is explained."""
    estimator: str = ""
    """The name of its estimator in `regard.sklearn`; empty without one."""
    labels: Callable[[Any], Sequence[str]] | None = None
    """(task): the names of its labels or tags, in the order of `probabilities`."""
    probabilities: Callable[..., Any] | None = None
    """(task, model, texts, none of them empty): an array [n, labels], or [words, labels] for each
    text."""
    words: Callable[..., Any] | None = None
    """(task, model, count): what the model has learned about single words."""
    log_probabilities: Callable[..., list[LogProbability]] | None = None
    """(task, model, texts, targets): the log-probability of each text, or of each target."""
    pairs_of_texts: bool = False
    """Whether log-probabilities are of a target given a text."""
    generation: TextGeneration | None = None
    pin_words: Callable[..., Any] | None = None
    """(task, text, pins): pins of target positions to source tokens, from pins to source words."""
    source_attention: Callable[..., tuple[int, int]] | None = None
    """(task, model): how many layers and heads attend from the target to the source; RegardError
    where none does. Needed for alignments."""
    aligner: WordAligner | None = None
    """For a task whose models align words themselves, rather than by attention to a source."""
    translation: TranslationService | None = None

    adopt: "Callable[..., AdoptedModel] | None" = None
    """(checkpoint): a pretrained model with a head for this task, as a run."""

    pretrained_head: str = ""
    """The head of pretrained encoders that its runs have: text_head or token_head."""
    to_transformers: "Callable[..., TransformersModel] | None" = None
    """(task, model): a model that was trained from random weights, as `transformers` stores it;
    RegardError names the option that fits none of its architectures."""

    http: HttpShapes = field(default_factory=HttpShapes)
    screens: tuple[str, ...] = SCREENS
    """Screens of the app that suit its runs; the first is the one they open with."""
    example_texts: tuple[str, ...] = ()
    """Texts to try on runs that were trained on the built-in corpus."""
    export_notes: tuple[str, ...] = ()
    """How to use its exported graphs."""
    export_vocabulary: Callable[..., Mapping[str, Any]] | None = None
    """(task): special symbols of the exported graphs, where they are not those of tokenizers."""

    def require(self, capability: str, run: object, purpose: str) -> Any:
        """A capability, or an error that says what does not apply to runs of this task."""
        found = getattr(self, capability)
        if found is None:
            raise RegardError(f"{run}: {purpose} does not apply to {self.name} runs")
        return found


TASKS: Table[TaskSpec] = Table(
    "task",
    "regard.tasks",
    {
        "translation": "regard.tasks.translation:SPEC",
        "language": "regard.tasks.language:SPEC",
        "classify": "regard.tasks.classification:SPEC",
        "tag": "regard.tasks.tagging:SPEC",
        "algorithm": "regard.tasks.algorithm:SPEC",
        "align": "regard.tasks.alignment:SPEC",
    },
)
"""Tasks by name; a task is imported when it is first used."""
