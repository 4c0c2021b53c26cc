"""Small models of every kind and what goes into them, for the tests of all of them at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.attention import scores
from regard.data.ngram_counts import NGramCounts
from regard.layers import NGramEvidence
from regard.models import (
    Classifier,
    ClassifierConfig,
    LanguageConfig,
    LanguageModel,
    Output,
    Tagger,
    TaggerConfig,
    Translator,
    TranslatorConfig,
)

BATCH, SOURCE, TARGET, LETTERS = 3, 7, 5, 4
SOURCE_WORDS, TARGET_WORDS, LABELS, CHARACTERS, FEATURES = 23, 19, 11, 13, 17
WIDTH, HEADS = 10, 2
SCORES = list(scores.SCORES)


def own_score(query: Tensor, key: Tensor) -> Tensor:
    """A score as a user may write it."""
    return (query @ key.mT).tanh()


def translator(score: Any = None, **config: Any) -> Translator:
    sizes = {"width": WIDTH, "heads": HEADS, "dropout": 0.0, "max_length": 29}
    return Translator(TranslatorConfig(**(sizes | config)), SOURCE_WORDS, TARGET_WORDS, score=score)


def language(score: Any = None, labels: int = 3, **config: Any) -> LanguageModel:
    sizes = {"width": WIDTH, "heads": HEADS, "dropout": 0.0, "max_length": 29, "window": 3}
    config = LanguageConfig(**(sizes | config))
    return LanguageModel(config, TARGET_WORDS, labels=labels, features=FEATURES, score=score)


def classifier(score: Any = None, word_ngrams: int = 0, **config: Any) -> Classifier:
    sizes = {"width": WIDTH, "heads": HEADS, "dropout": 0.0, "max_length": 29}
    config = ClassifierConfig(**(sizes | config))
    voters = evidence(word_ngrams) if word_ngrams else None
    return Classifier(config, SOURCE_WORDS, LABELS, score=score, evidence=voters)


def evidence(longest: int) -> NGramEvidence:
    """N-grams of random texts with random labels."""
    random = np.random.default_rng(1)
    texts = [
        (random.integers(1, SOURCE_WORDS, 9), random.integers(0, LABELS, 1)) for _ in "1234567"
    ]
    counted = NGramCounts.of(texts, SOURCE_WORDS, longest, LABELS)
    return NGramEvidence(
        counted.keys, counted.counts, vocabulary=SOURCE_WORDS, longest=longest, first_word=4
    )


def tagger(score: Any = None, **config: Any) -> Tagger:
    sizes = {"width": WIDTH, "heads": HEADS, "dropout": 0.0, "max_length": 29}
    sizes |= {"characters": 5, "character_features": 6}
    config = TaggerConfig(**(sizes | config))
    return Tagger(config, SOURCE_WORDS, LABELS, characters=CHARACTERS, score=score)


TRANSLATORS: dict[str, dict[str, Any]] = {
    "bahdanau": {},
    "bahdanau, input feeding": {"input_feeding": True},
    "bahdanau, lstm": {"cell": "lstm", "layers": 2},
    "bahdanau, elman, no tie": {"cell": "elman", "tied": False},
    "luong": {"order": "luong", "attention": "dot"},
    "luong, input feeding": {"order": "luong", "input_feeding": True, "attention": "bilinear"},
    "local m": {"order": "luong", "local": "m", "local_width": 2},
    "local p": {"local": "p", "local_width": 3, "cell": "lstm"},
    "blind": {"attention": "none"},
    "blind, lstm": {"attention": "none", "cell": "lstm"},
    "luong, three layers": {"decoder_layers": 3, "cell": "lstm"},
    "bahdanau, two layers": {"decoder_layers": 2, "order": "bahdanau"},
    "blind, two layers": {"attention": "none", "decoder_layers": 2, "cell": "elman"},
    "transformer": {"model": "transformer", "layers": 2},
    "transformer, three over one": {"model": "transformer", "layers": 1, "decoder_layers": 3},
    "transformer, post": {"model": "transformer", "layers": 2, "norm": "post"},
    "transformer, experts": {"model": "transformer", "layers": 1, "experts": 3, "top_k": 2},
    "transformer encoder": {"encoder": "transformer", "cell": "lstm", "layers": 1},
    "transformer encoder, blind": {"encoder": "transformer", "attention": "none", "layers": 1},
    "transformer decoder": {"decoder": "transformer", "layers": 1},
    **{
        f"{decoder} over {encoder}": {"encoder": encoder, "decoder": decoder, "layers": 1}
        for encoder in ("none", "self")
        for decoder in ("recurrent", "transformer")
    },
    "luong, lstm over recurrent_self": {"encoder": "recurrent_self", "cell": "lstm", "layers": 1},
    "luong, lstm over self": {"encoder": "self", "attention": "dot", "cell": "lstm"},
    "blind over self": {"encoder": "self", "attention": "none"},
}
LANGUAGES: dict[str, dict[str, Any]] = {
    "elman": {"cell": "elman", "first": "zero", "attention": "none"},
    "gru": {"cell": "gru", "layers": 2, "tied": False, "attention": "none"},
    "lstm": {"attention": "none"},
    "lstm looking back": {},
    "gru looking back, split": {"cell": "gru", "attention": "scaled_dot", "split": True},
    "elman looking back by location": {"cell": "elman", "attention": "location"},
    "transformer": {"model": "transformer", "layers": 2},
    "transformer, location": {"model": "transformer", "layers": 1, "attention": "location"},
    "transformer, experts": {"model": "transformer", "layers": 1, "experts": 3},
    "words alone": {"model": "none"},
    "one layer of self-attention": {"model": "self"},
    "self-attention by location": {"model": "self", "attention": "location"},
    "self-attention over a recurrent network": {"model": "recurrent_self", "layers": 1},
}
CLASSIFIERS: dict[str, dict[str, Any]] = {
    **{
        f"{pooling} over {kind}": {"pooling": pooling, "encoder": kind, "layers": 1}
        for pooling in ("sum", "mean", "max", "weighted", "fixed", "self")
        for kind in ("none", "self", "recurrent", "transformer")
    },
    "three fixed queries": {"pooling": "fixed", "queries": 3, "attention": "mlp"},
    "experts": {"experts": 3, "cell": "lstm"},
    "experts everywhere": {"experts": 3, "top_k": 2, "encoder": "transformer"},
    "vectors of another size": {"word_size": 6, "cell": "elman"},
    "votes of words": {"word_ngrams": 1, "encoder": "none"},
    "votes of words, pairs and triples": {"word_ngrams": 3},
}
TAGGERS: dict[str, dict[str, Any]] = {
    **{f"{kind}": {"encoder": kind} for kind in ("none", "self", "recurrent", "transformer")},
    "recurrent_self": {},
    "recurrent, no crf": {"encoder": "recurrent", "crf": False, "layers": 2, "cell": "gru"},
    "words alone": {"characters": 0, "cell": "elman"},
    "experts": {"encoder": "transformer", "experts": 3, "crf": False},
}
MAKERS: dict[str, tuple[Callable[..., nn.Module], dict[str, dict[str, Any]]]] = {
    "translator": (translator, TRANSLATORS),
    "language": (language, LANGUAGES),
    "classifier": (classifier, CLASSIFIERS),
    "tagger": (tagger, TAGGERS),
}
ALL = [(task, name) for task, (_, kinds) in MAKERS.items() for name in kinds]


def make(task: str, name: str, **more: Any) -> nn.Module:
    maker, kinds = MAKERS[task]
    return maker(**(kinds[name] | more))


def ids(high: int, *shape: int) -> Tensor:
    return torch.randint(1, high, shape)


def inputs() -> dict[str, Tensor]:
    """A batch for every task, filled to the brim; lengths say what of it is real."""
    return {
        "source": ids(SOURCE_WORDS, BATCH, SOURCE),
        "lengths": torch.tensor([SOURCE, 4, 1]),
        "target": ids(TARGET_WORDS, BATCH, TARGET),
        "characters": ids(CHARACTERS, BATCH, SOURCE, LETTERS),
        "label": torch.tensor([0, 2, 1]),
    }


def run(model: nn.Module, batch: dict[str, Tensor], need_weights: bool = False) -> Output:
    """Call any of the four."""
    source, lengths, target = batch["source"], batch["lengths"], batch["target"]
    if isinstance(model, Translator):
        return model(source, lengths, target, need_weights=need_weights)
    if isinstance(model, LanguageModel):
        state = model.start(len(target), label=batch["label"])
        return model(target, state, need_weights=need_weights)[0]
    if isinstance(model, Tagger):
        return model(source, lengths, batch["characters"], need_weights=need_weights)
    return model(source, lengths, need_weights=need_weights)


def one(batch: dict[str, Tensor], row: int) -> dict[str, Tensor]:
    """A single example without its padding."""
    length = int(batch["lengths"][row])
    alone = {name: tensor[row : row + 1] for name, tensor in batch.items()}
    for name in ("source", "characters"):
        alone[name] = alone[name][:, :length]
    return alone
