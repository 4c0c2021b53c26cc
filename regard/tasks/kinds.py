"""The tasks by name: their configs, and how each is prepared and loaded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.models import ClassifierConfig, LanguageConfig, TaggerConfig, TranslatorConfig
from regard.tasks import classification, language, tagging, translation
from regard.tasks.task import Task


@dataclass(frozen=True)
class Kind:
    """One kind of task."""

    data: type
    model: type
    defaults: Mapping[str, Any]
    """Training options that this task sets differently."""
    prepare: Callable[..., tuple[Task, str]]
    load: Callable[[Any, Any, Path], Task]


KINDS: dict[str, Kind] = {
    "translation": Kind(
        translation.TranslationData,
        TranslatorConfig,
        translation.DEFAULTS,
        translation.prepare,
        lambda data, model, folder: translation.load(model, folder),
    ),
    "language": Kind(
        language.LanguageData, LanguageConfig, language.DEFAULTS, language.prepare, language.load
    ),
    "classify": Kind(
        classification.ClassificationData,
        ClassifierConfig,
        classification.DEFAULTS,
        classification.prepare,
        classification.load,
    ),
    "tag": Kind(
        tagging.TaggingData,
        TaggerConfig,
        tagging.DEFAULTS,
        tagging.prepare,
        lambda data, model, folder: tagging.load(model, folder),
    ),
}
