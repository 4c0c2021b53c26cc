"""Configs: every one that can be made can be built, and a wrong one says which option is wrong."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
import torch

from regard.errors import RegardError
from regard.models import (
    AlgorithmConfig,
    AlgorithmModel,
    Classifier,
    ClassifierConfig,
    LanguageConfig,
    LanguageModel,
    Tagger,
    TaggerConfig,
    Translator,
    TranslatorConfig,
)

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

SOURCE, LENGTHS, TARGET = torch.tensor([[1, 2, 3]]), torch.tensor([2]), torch.tensor([[1, 2]])
CHARACTERS = torch.ones(1, 3, 2, dtype=torch.int64)
EXPERTS: dict[str, list[Any]] = {"experts": [0, 2], "top_k": [None, 1, 3]}
SIZES: dict[str, list[Any]] = {"width": [1, 3, 4], "heads": [1, 2]}
NAMES = ["additive", "dot", "cosine", "bilinear", "mlp", "location"]


def translate(config: TranslatorConfig) -> None:
    Translator(config, 7, 5)(SOURCE, LENGTHS, TARGET)


def read_on(config: LanguageConfig) -> None:
    model = LanguageModel(config, 7)
    model(SOURCE, model.start(1))


def classify(config: ClassifierConfig) -> None:
    Classifier(config, 7, 2)(SOURCE, LENGTHS)


def tag(config: TaggerConfig) -> None:
    Tagger(config, 7, 2, characters=3)(SOURCE, LENGTHS, CHARACTERS)


def answer(config: AlgorithmConfig) -> None:
    AlgorithmModel(config, 7)(SOURCE)


GRIDS: dict[str, tuple[type, Callable[[Any], None], list[dict[str, list[Any]]]]] = {
    "translator": (
        TranslatorConfig,
        translate,
        [
            SIZES
            | {
                "encoder": ["none", "self", "recurrent", "transformer"],
                "decoder": ["recurrent", "transformer"],
                "attention": [None, "none", *NAMES],
            },
            SIZES
            | {
                "cell": ["elman", "lstm"],
                "order": ["bahdanau", "luong"],
                "input_feeding": [None, True],
                "local": ["none", "m", "p"],
                "local_width": [0, 1],
                "attention": ["none", "dot"],
            },
            EXPERTS
            | {
                "width": [4],
                "model": ["recurrent", "transformer"],
                "encoder": ["none", "self", "recurrent", "transformer"],
                "layers": [None, 0, 2],
                "norm": ["pre", "post"],
                "feed_forward": [0, 1],
            },
        ],
    ),
    "language": (
        LanguageConfig,
        read_on,
        [
            SIZES
            | {
                "model": ["recurrent", "transformer"],
                "attention": ["none", *NAMES],
                "split": [True, False],
                "window": [0, 1],
            },
            EXPERTS
            | {
                "width": [4],
                "model": ["recurrent", "transformer"],
                "cell": ["elman", "lstm"],
                "word_size": [None, 0, 3],
                "layers": [None, 2],
                "first": ["zero", "learned"],
                "tied": [True, False],
            },
        ],
    ),
    "classifier": (
        ClassifierConfig,
        classify,
        [
            SIZES
            | {
                "pooling": ["sum", "mean", "max", "weighted", "fixed", "self"],
                "queries": [0, 1, 2],
                "encoder": ["none", "self", "recurrent", "transformer"],
                "attention": [None, "dot", "location"],
            },
            SIZES
            | EXPERTS
            | {
                "encoder": ["none", "self", "recurrent", "transformer"],
                "pooling": ["self", "fixed"],
                "word_size": [3],
                "normalize": ["top_k(0)", "top_k(2)"],
            },
        ],
    ),
    "tagger": (
        TaggerConfig,
        tag,
        [
            SIZES
            | EXPERTS
            | {
                "encoder": ["none", "self", "recurrent", "transformer"],
                "characters": [0, 2],
                "character_features": [0, 2],
                "crf": [True, False],
            },
            {
                "width": [4],
                "heads": [2],
                "attention": NAMES,
                "encoder": ["self", "transformer"],
                "layers": [0, 1, 2],
            },
        ],
    ),
    "algorithm": (
        AlgorithmConfig,
        answer,
        [
            {
                "addressing": ["ntm", "dnc"],
                "controller": ["feed_forward", "elman", "gru", "lstm"],
                "attention": [None, *NAMES],
                "slots": [3],
                "width": [3],
            },
            {
                "addressing": ["ntm", "dnc"],
                "slots": [1, 3],
                "slot_width": [0, 1, 2],
                "read_heads": [0, 1, 2],
                "write_heads": [1, 2],
                "width": [3],
            },
            SIZES
            | {
                "model": ["recurrent", "transformer"],
                "cell": ["elman", "gru", "lstm"],
                "layers": [None, 2],
                "attention": [None, *NAMES],
            },
        ],
    ),
}


def rows(grid: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


@pytest.mark.parametrize("task", GRIDS)
def test_a_config_that_can_be_made_can_be_built(task: str) -> None:
    config, use, grids = GRIDS[task]
    small = {"max_length": 9} | ({"ngrams": 1} if task == "tagger" else {})
    built = refused = 0
    for options in (row for grid in grids for row in rows(grid)):
        try:
            chosen = config(**(small | options))
        except RegardError:
            refused += 1
            continue
        try:
            use(chosen)
        except Exception as error:
            raise AssertionError(f"{options} do not make a model: {error}") from error
        built += 1
    assert built > 50
    assert refused > 5


@pytest.mark.parametrize(
    ("config", "options", "words"),
    [
        (TranslatorConfig, {"width": 0}, "width: expected 1 or more and at most 65536, got 0"),
        (TranslatorConfig, {"width": 1}, "expected 2 or more for both directions"),
        (TranslatorConfig, {"width": 5, "attention": "dot"}, "expected an even number, since dot"),
        (TranslatorConfig, {"encoder": "transformer", "heads": 3}, "3 heads do not divide"),
        (TranslatorConfig, {"local": "n"}, "option local: expected none, m or p, got 'n'"),
        (TranslatorConfig, {"normalize": "top_k(0)"}, "option normalize: expected softmax, "),
        (LanguageConfig, {"model": "transformer", "width": 5, "heads": 5}, "pairs of sine and"),
        (LanguageConfig, {"dropout": 1.0}, "option dropout: expected 0 or more and less than 1"),
        (LanguageConfig, {"experts": -1}, "experts: expected 0 or more and at most 65536, got -1"),
        (LanguageConfig, {"top_k": 2}, "option top_k: expected with experts only, got 2"),
        (ClassifierConfig, {"experts": 2, "top_k": 3}, "at most 2, the number of experts, got 3"),
        (ClassifierConfig, {"queries": 2}, "weighted pooling has one query, got 2"),
        (ClassifierConfig, {"pooling": "self", "width": 5, "heads": 4}, "4 heads do not divide"),
        (ClassifierConfig, {"attention": "none"}, "location, got 'none'"),
        (TaggerConfig, {"character_features": 0}, "option character_features: expected 1 or more"),
        (AlgorithmConfig, {"addressing": "dnc", "write_heads": 2}, "has one write head, got 2"),
        (AlgorithmConfig, {"controller": "gruu"}, "got 'gruu': did you mean 'gru'?"),
    ],
)
def test_a_wrong_option_is_named(config: type, options: dict[str, Any], words: str) -> None:
    with pytest.raises(RegardError) as error:
        config(**options)
    assert words in str(error.value)
