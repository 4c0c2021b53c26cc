"""Models: a config and a network each; they return logits and, when asked, weights by name."""

from regard.models.classifier import Classifier, ClassifierConfig
from regard.models.language import LanguageConfig, LanguageModel, LanguageState, detached
from regard.models.machine import Machine, MachineConfig
from regard.models.output import Output
from regard.models.tagger import Tagger, TaggerConfig
from regard.models.translator import Translator, TranslatorConfig

__all__ = [
    "Classifier",
    "ClassifierConfig",
    "LanguageConfig",
    "LanguageModel",
    "LanguageState",
    "Machine",
    "MachineConfig",
    "Output",
    "Tagger",
    "TaggerConfig",
    "Translator",
    "TranslatorConfig",
    "detached",
]
