"""The tasks by name: their configs, and how each is read, prepared and loaded."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from regard.data import Example, Source, Summary
from regard.models import (
    Classifier,
    ClassifierConfig,
    LanguageConfig,
    LanguageModel,
    Machine,
    MachineConfig,
    Tagger,
    TaggerConfig,
    Translator,
    TranslatorConfig,
)
from regard.tasks import algorithm, classification, language, tagging, translation
from regard.tasks.task import Task


@dataclass(frozen=True)
class Kind:
    """One kind of task."""

    data: type
    model: type
    defaults: Mapping[str, Any]
    """Training options that this task sets differently."""
    network: Callable[[Any], nn.Module]
    """A small network of a model config, to see whether its values fit together."""
    read: Callable[[Any, Sequence[Source], Summary], Iterator[Example]]
    """The examples of some files, read as the data options say."""
    prepare: Callable[[Any, Path, int], str]
    """Write into a folder all that training needs; what was read, in words."""
    load: Callable[[Any, Any, Path], Task]
    """The task whose data was prepared in a folder."""
    corpora: bool = True
    """Whether it trains on files; a task without makes its examples as they are needed."""
    check: Callable[[Any, Any], None] = lambda data, model: None
    """Whether data and model options fit together."""


KINDS: dict[str, Kind] = {
    "translation": Kind(
        translation.TranslationData,
        TranslatorConfig,
        translation.DEFAULTS,
        lambda config: Translator(config, 8, 8),
        translation.read,
        translation.prepare,
        translation.load,
    ),
    "language": Kind(
        language.LanguageData,
        LanguageConfig,
        language.DEFAULTS,
        lambda config: LanguageModel(config, 8),
        language.read,
        language.prepare,
        language.load,
    ),
    "classify": Kind(
        classification.ClassificationData,
        ClassifierConfig,
        classification.DEFAULTS,
        lambda config: Classifier(config, 8, 2),
        classification.read,
        classification.prepare,
        classification.load,
    ),
    "tag": Kind(
        tagging.TaggingData,
        TaggerConfig,
        tagging.DEFAULTS,
        lambda config: Tagger(config, 8, 2, characters=8),
        tagging.read,
        tagging.prepare,
        tagging.load,
        check=tagging.check,
    ),
    "algorithm": Kind(
        algorithm.AlgorithmData,
        MachineConfig,
        algorithm.DEFAULTS,
        lambda config: Machine(config, 8),
        algorithm.read,
        algorithm.prepare,
        algorithm.load,
        corpora=False,
        check=algorithm.check,
    ),
}
