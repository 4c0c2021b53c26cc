"""Runs with given or random weights, for tests of explanations: no training, a few words."""

from pathlib import Path

import torch

from regard.data import Labels
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.inference.run import Run
from regard.models import ClassifierConfig, LanguageConfig, TaggerConfig, TranslatorConfig
from regard.tasks.classification.task import Classification
from regard.tasks.language.task import Language
from regard.tasks.tagging.task import Tagging
from regard.tasks.translation.task import Translation
from regard.training import RunFolder

TEXT = "the early bird catches a worm"
WORDS = Tokenizer.train("word", [TEXT, "one who sleeps finds none of them ."])

MODELS = {
    "sum": ClassifierConfig(width=5, encoder="none", pooling="sum"),
    "fixed": ClassifierConfig(width=5, encoder="none", pooling="fixed", queries=2),
    "self": ClassifierConfig(width=6, heads=2, encoder="none", pooling="self"),
    "gru": ClassifierConfig(width=5),
    "blocks": ClassifierConfig(width=6, heads=2, encoder="transformer", layers=2),
    "recurrent translator": TranslatorConfig(width=6),
    "luong": TranslatorConfig(width=6, order="luong", attention="bilinear", cell="lstm"),
    "transformer translator": TranslatorConfig(model="transformer", width=6, heads=2, layers=2),
    "lookback": LanguageConfig(width=5, attention="additive"),
    "blind language": LanguageConfig(width=5, attention="none"),
    "transformer language": LanguageConfig(model="transformer", width=6, heads=2, layers=2),
    "lstm tagger": TaggerConfig(encoder="recurrent", width=5, characters=3, character_features=2),
    "transformer tagger": TaggerConfig(
        width=6, heads=2, layers=2, encoder="transformer", crf=False, characters=0
    ),
}


def make_run(config, labels=("bad", "good"), several=False):
    """A run of this model, with random weights in double precision."""
    name, task = "", None
    if isinstance(config, ClassifierConfig):
        separator = "," if several else None
        name = "classify"
        task = Classification(config, WORDS, Labels.of(labels), 50, separator=separator)
    elif isinstance(config, TranslatorConfig):
        name, task = "translation", Translation(config, WORDS, WORDS, 50)
    elif isinstance(config, LanguageConfig):
        name, task = "language", Language(config, WORDS, 20)
    else:
        letters = Labels.of("abcdefghijklmnopqrstuvwxyz")
        name, task = "tag", Tagging(config, WORDS, letters, Labels.of(["O", "B-X", "I-X"]))
    model = task.build().double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    return Run(name, RunFolder(Path("nowhere")), task, model, None)
