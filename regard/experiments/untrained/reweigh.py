"""Self-attention without any weights moves "bank" towards the river or towards the money.

Every word becomes the average of all words, weighted by dot products: yᵢ = Σⱼ softmax(xᵢ·xⱼ) xⱼ.
Nothing is learned. In "bank of the river" the vector of "bank" then lies nearer to water than
before, in "bank with the money" nearer to money; the order of the words and their distance play no
role. Word vectors come from counts in small texts made here, or, with `--vectors`, from a file such
as GloVe's or from a run of our own; there is no variation over seeds then.
"""

import numpy as np
import torch

from regard.attention import attend
from regard.errors import RegardError
from regard.experiments.claims import (
    Experiment,
    Finding,
    Setting,
    clearly_above,
    over_seeds,
)
from regard.experiments.word_vector_sources import vectors_of, word_vectors
from regard.show.charts import Bar, interval_chart
from regard.show.report_page import Table

TOPICS = {
    "river": ["river", "water", "boat", "fish", "flow", "shore", "mud"],
    "money": ["money", "loan", "cash", "credit", "account", "debt", "coin"],
}
COMMON = ["the", "of", "with", "a", "and"]
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


def nearest(vector: np.ndarray, vectors: dict[str, np.ndarray], count: int = 4) -> str:
    """The words nearest to a vector, by cosine; "bank" itself is left out."""
    others = [word for word in vectors if word != "bank"]
    return ", ".join(sorted(others, key=lambda word: -_cosine(vector, vectors[word]))[:count])


def order_and_length(words: list[str], vectors: dict[str, np.ndarray]) -> list[float]:
    """How much a word's result changes with the order, with proximity and with repetition."""
    after = reweigh(words, vectors)
    turned = reweigh(words[::-1], vectors)[::-1]
    near = reweigh([words[0], words[-1], *words[1:-1]], vectors)  # first and last side by side
    twice = reweigh(words * 2, vectors)[: len(words)]
    changed = (turned - after, near[0] - after[0], twice - after)
    return [float(np.abs(one).max()) for one in changed]


def judge(
    before: list[float], river: list[float], money: list[float], changes: list[float]
) -> bool:
    """Both contexts move "bank" clearly their way; order, proximity and repetition do nothing."""
    towards_river = over_seeds([a - b for a, b in zip(river, before, strict=True)])
    towards_money = over_seeds([b - a for a, b in zip(money, before, strict=True)])
    moved = clearly_above(towards_river, 0) and clearly_above(towards_money, 0)
    return moved and max(changes) < 1e-9


def _given(source: str) -> dict[str, np.ndarray]:
    """The user's vectors, if they have the words of the sentences and of both topics."""
    needed = list(dict.fromkeys(word for text in SENTENCES.values() for word in text.split()))
    words = [*needed, *(word for topic in TOPICS.values() for word in topic if word not in needed)]
    found = vectors_of(source, words)
    if missing := [word for word in needed if word not in found]:
        raise RegardError(f"{source}: has no vectors of {', '.join(missing)}")
    return found


def run(setting: Setting) -> Finding:
    """Preferences of "bank" before and after, for vectors of several texts or of the user."""
    if setting.vectors is not None:
        sources = [_given(setting.vectors)]
    else:
        sentences = setting.pick(200, 400, 2000)
        sources = [word_vectors(corpus(n, sentences)) for n in range(setting.pick(3, 20, 100))]
    found: dict[str, list[float]] = {"before": [], "river": [], "money": []}
    changes = []
    for vectors in sources:
        found["before"].append(preference(vectors["bank"], vectors))
        for topic, sentence in SENTENCES.items():
            found[topic].append(preference(reweigh(sentence.split(), vectors)[0], vectors))
            changes += order_and_length(sentence.split(), vectors)
    names = {"before": "before", **{t: f"in “{s}”" for t, s in SENTENCES.items()}}
    numbers = {f"preference for river, {names[n]}": over_seeds(v) for n, v in found.items()}
    numbers["largest effect of order, proximity and repetition"] = over_seeds([max(changes)])
    bars = [Bar(names[name], *over_seeds(values)[:3]) for name, values in found.items()]
    picture = interval_chart("Where “bank” lies", bars, "nearer to river words than to money words")
    rows = [["before", nearest(vectors["bank"], vectors)]] + [
        [names[topic], nearest(reweigh(text.split(), vectors)[0], vectors)]
        for topic, text in SENTENCES.items()
    ]
    means = {name: over_seeds(values).mean for name, values in found.items()}
    summary = (
        f"“bank” leaned by {means['before']:+.2f} towards river words before, by "
        f"{means['river']:+.2f} in “{SENTENCES['river']}” and by {means['money']:+.2f} in "
        f"“{SENTENCES['money']}”; order, proximity and repetition changed nothing beyond "
        f"{max(changes):.1g}."
    )
    held = judge(found["before"], found["river"], found["money"], changes)
    tables = {"Neighbours of “bank”": Table(["bank", "nearest words"], rows)}
    return Finding(held, summary, numbers, {"bank": picture}, tables)


EXPERIMENT = Experiment(
    name="reweigh",
    claim="Self-attention without weights moves a word towards the meaning of its sentence.",
    source="lecture on self-attention",
    row="A3",
    minutes=0.1,
    run=run,
    reads_vectors=True,
)
