"""Translators that have really learnt something, in seconds: words are spelt backwards.

dog sees kumo -> GOD SEES kumo: known words are reversed and in capitals, rare ones are unknown to
the tokenizers and stay as they are.
"""

import atexit
import random
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from jaxtyping import config

import regard
from regard.inference import Run

WORDS = ["dog", "cat", "bird", "house", "tree", "sees", "big", "and"]
VARIANTS = {
    "bahdanau": {
        "order": "bahdanau",
        "attention": "additive",
        "input_feeding": True,
        "width": 48,
        "steps": 700,
    },
    "luong": {"order": "luong", "attention": "bilinear", "input_feeding": True},
    "transformer": {
        "model": "transformer",
        "layers": 2,
        "heads": 2,
        "feed_forward": 64,
        "learning_rate": 0.005,
    },
}
OPTIONS = {
    "tokenizer": "word",
    "vocabulary": 4 + len(WORDS),
    "width": 32,
    "dropout": 0.0,
    "label_smoothing": 0.0,
    "batch_tokens": 300,
    "steps": 500,
    "evaluate_every": 1000,
    "save_every": 1000,
    "average": 1,
    "warmup": 20,
    "patience": 1000,
    "schedule": "constant",
    "learning_rate": 0.003,
}


def backwards(text: str) -> str:
    """What a perfect translator makes of a text."""
    return " ".join(word[::-1].upper() if word in WORDS else word for word in text.split())


def sources(count: int, seed: int, longest: int = 6) -> list[str]:
    """Texts of a few words, every seventh of which is rare."""
    draw = random.Random(seed)

    def word() -> str:
        rare = "".join(draw.choice("aeioukmt") for _ in range(7))
        return draw.choice(WORDS) if draw.random() > 0.14 else rare

    return [" ".join(word() for _ in range(draw.randint(1, longest))) for _ in range(count)]


@cache
def translator(variant: str) -> Run:
    """A trained translator; one a process."""
    folder = Path(mkdtemp(prefix="regard-test-"))
    atexit.register(rmtree, folder, ignore_errors=True)
    texts = sources(1500, seed=0)
    (folder / "train.aa").write_text("\n".join(texts) + "\n", "utf-8")
    (folder / "train.bb").write_text("\n".join(map(backwards, texts)) + "\n", "utf-8")
    data = [str(folder / "train.aa"), str(folder / "train.bb")]
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)  # shapes are checked in use; training is for speed
    try:
        options = OPTIONS | VARIANTS[variant]
        return regard.train("translation", data, out=folder / "run", **options)
    finally:
        config.update("jaxtyping_disable", before)
