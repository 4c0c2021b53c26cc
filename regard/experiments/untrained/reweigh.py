"""Self-attention without any weights moves "bank" towards the river or towards the money.

Every word becomes the average of all words, weighted by dot products: yᵢ = Σⱼ softmax(xᵢ·xⱼ) xⱼ.
Nothing is learned. In "bank of the river" the vector of "bank" then lies nearer to water than
before, in "bank with the money" nearer to money; the order of the words and their distance play no
role. Word vectors come from co-occurrence counts in a small text made here (positive pointwise
mutual information and a singular value decomposition; Levy and Goldberg, 2014).
"""

import numpy as np
import torch

from regard.attention import attend
from regard.experiments.claims import (
    Experiment,
    Finding,
    Setting,
    clearly_above,
    over_seeds,
)
from regard.show.charts import Bar, interval_chart

TOPICS = {
    "river": ["river", "water", "boat", "fish", "flow", "shore", "mud"],
    "money": ["money", "loan", "cash", "credit", "account", "debt", "coin"],
}
COMMON = ["the", "of", "with", "a", "and"]
SIZE = 12
SENTENCES = {"river": "bank of the river", "money": "bank with the money"}


def corpus(seed: int, sentences: int, *, ambiguous: bool = True) -> list[list[str]]:
    """Sentences on one topic each; "bank" occurs in both, or in none where it is not ambiguous."""
    rng = np.random.default_rng(seed)
    texts = []
    for number in range(sentences):
        topic = list(TOPICS)[number % 2]
        words = [*rng.choice(TOPICS[topic], 4), *rng.choice(COMMON, 3)]
        words.append("bank" if ambiguous or number % 4 == 0 else "tree")
        texts.append([str(word) for word in rng.permutation(words)])
    return texts


def word_vectors(texts: list[list[str]], size: int = SIZE) -> dict[str, np.ndarray]:
    """Vectors from how often words occur in the same sentence, more often than by chance."""
    names = sorted({word for text in texts for word in text})
    number = {word: i for i, word in enumerate(names)}
    counts = np.zeros((len(names), len(names)))
    for text in texts:
        ids = [number[word] for word in text]
        for i in ids:
            for j in ids:
                counts[i, j] += i != j
    expected = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    information = np.log(np.maximum(counts, 1e-9) / np.maximum(expected, 1e-9)).clip(min=0)
    left, values, _ = np.linalg.svd(information)
    size = min(size, len(names))
    vectors = left[:, :size] * np.sqrt(values[:size])
    return dict(zip(names, vectors, strict=True))


def reweigh(words: list[str], vectors: dict[str, np.ndarray]) -> np.ndarray:
    """The words of a sentence after self-attention without weights."""
    x = torch.tensor(np.stack([vectors[word] for word in words]))
    return attend(x, x, x, score="dot").output.numpy()


def preference(vector: np.ndarray, vectors: dict[str, np.ndarray]) -> float:
    """How much nearer a vector is to the words about rivers than to those about money (cosine)."""

    def nearness(topic: str) -> float:
        others = [vectors[word] for word in TOPICS[topic] if word in vectors]
        return float(np.mean([_cosine(vector, other) for other in others]))

    return nearness("river") - nearness("money")


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / max(1e-12, np.linalg.norm(a) * np.linalg.norm(b)))


def judge(before: list[float], river: list[float], money: list[float], order: list[float]) -> bool:
    """Both contexts move "bank" clearly their way, and the order of words changes nothing."""
    towards_river = over_seeds([a - b for a, b in zip(river, before, strict=True)])
    towards_money = over_seeds([b - a for a, b in zip(money, before, strict=True)])
    return clearly_above(towards_river, 0) and clearly_above(towards_money, 0) and max(order) < 1e-9


def run(setting: Setting) -> Finding:
    """Preferences of "bank" before and after, for vectors of several texts."""
    found: dict[str, list[float]] = {"before": [], "river": [], "money": []}
    order = []
    for seed in range(setting.pick(3, 20, 100)):
        vectors = word_vectors(corpus(seed, setting.pick(200, 400, 2000)))
        found["before"].append(preference(vectors["bank"], vectors))
        for topic, sentence in SENTENCES.items():
            words = sentence.split()
            after = reweigh(words, vectors)
            found[topic].append(preference(after[0], vectors))
            turned = reweigh(words[::-1], vectors)
            order.append(float(np.abs(after - turned[::-1]).max()))
    names = {"before": "before", **{t: f"in “{s}”" for t, s in SENTENCES.items()}}
    numbers = {f"preference for river, {names[n]}": over_seeds(v) for n, v in found.items()}
    numbers["largest effect of the order"] = over_seeds(order)
    bars = [Bar(names[name], *over_seeds(values)[:3]) for name, values in found.items()]
    picture = interval_chart("Where “bank” lies", bars, "nearer to river words than to money words")
    held = judge(found["before"], found["river"], found["money"], order)
    means = {name: over_seeds(values).mean for name, values in found.items()}
    summary = (
        f"“bank” leaned by {means['before']:+.2f} towards river words before, by "
        f"{means['river']:+.2f} in “{SENTENCES['river']}” and by {means['money']:+.2f} in "
        f"“{SENTENCES['money']}”; the order of the words changed nothing beyond {max(order):.1g}."
    )
    return Finding(held, summary, numbers, {"bank": picture})


EXPERIMENT = Experiment(
    name="reweigh",
    claim="Self-attention without weights moves a word towards the meaning of its sentence.",
    source="lecture on self-attention, deck 002",
    row="A3",
    minutes=0.1,
    run=run,
)
