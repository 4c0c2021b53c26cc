"""`regard train classify` beside linear models on the same texts, with paired intervals.

    python benchmarks/classifiers.py --data train.tsv --folds 5 --out runs/classifiers
    python benchmarks/classifiers.py --data train.tsv --test dev.tsv --out runs/classifiers
    python benchmarks/classifiers.py --built-in --seeds 3 --out runs/classifiers

Tables have a text and a label per line, separated by a tab. With `--folds` every text is a test
text once (seed 1); with `--test`, or the built-in opinions, the test file is the same for every
seed. The linear models are scikit-learn's, with words as Regard's tokenizer separates them and
the settings that are usual for them; nothing is tuned. A run that is in `--out` is not repeated.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder
from sklearn.svm import LinearSVC

import regard
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.training.run import train_run


class Texts(NamedTuple):
    """Texts and their labels."""

    texts: list[str]
    labels: list[str]


class LogCountRatio:
    """Binary features times their log-count ratio (Wang and Manning, 2012), for one label."""

    def fit_transform(self, x: csr_matrix, y: np.ndarray) -> csr_matrix:
        """The ratio of the label 1 to all others, and the features times it."""
        one, rest = (np.asarray(x[y == k].sum(0)) + 1.0 for k in (1, 0))
        self.ratio = np.log(one / one.sum()) - np.log(rest / rest.sum())
        return self.transform(x)

    def fit(self, x: csr_matrix, y: np.ndarray) -> "LogCountRatio":
        """The ratio alone."""
        self.fit_transform(x, y)
        return self

    def transform(self, x: csr_matrix) -> csr_matrix:
        """The features times the ratio."""
        return x.multiply(self.ratio).tocsr()


LINEAR: dict[str, Callable[[], Any]] = {
    "naive Bayes, words and bigrams": MultinomialNB,
    "NBSVM": lambda: OneVsRestClassifier(make_pipeline(LogCountRatio(), LinearSVC(C=0.1))),
    "TF-IDF, logistic regression": lambda: make_pipeline(
        TfidfTransformer(sublinear_tf=True), LogisticRegression(C=10, max_iter=1000)
    ),
}
OWN = "`regard train classify`"


def read(path: Path) -> Texts:
    """A table of texts and labels."""
    rows = [line.rstrip("\n").split("\t") for line in path.open(encoding="utf-8")]
    return Texts([row[0] for row in rows], [row[1] for row in rows])


def built_in() -> tuple[Texts, Texts]:
    """The built-in opinions: what runs are trained on, and the test split that they do not see."""
    from regard.corpora import make_corpus

    splits = make_corpus("sentiment")
    parts = ([*splits.train, *splits.valid], list(splits.test))
    train, test = (Texts([e.text for e in part], [e.labels[0] for e in part]) for part in parts)
    return train, test


def parts(options: argparse.Namespace) -> Iterator[tuple[str, int, Texts, Texts, np.ndarray]]:
    """For each training: its name, seed, training and test texts, and which test texts they are."""
    if not options.folds:
        train, test = built_in() if options.built_in else (read(options.data), read(options.test))
        for seed in range(1, options.seeds + 1):
            yield f"seed-{seed}", seed, train, test, np.arange(len(test.texts))
        return
    whole = read(options.data)
    folds = StratifiedKFold(options.folds, shuffle=True, random_state=1)
    for number, (train, test) in enumerate(folds.split(whole.texts, whole.labels), 1):
        yield f"fold-{number}", 1, take(whole, train), take(whole, test), test


def take(texts: Texts, chosen: np.ndarray) -> Texts:
    """Some of the texts."""
    return Texts([texts.texts[i] for i in chosen], [texts.labels[i] for i in chosen])


def linear(train: Texts, test: Texts) -> dict[str, Any]:
    """Correct predictions of each linear model, and its seconds of processor time."""
    words = Tokenizer.train("word", iter(train.texts), 10**6, True)
    rows = [[str(i) for i in row] for row in words.ids([*train.texts, *test.texts])]
    vectorizer = CountVectorizer(
        ngram_range=(1, 2),
        analyzer="word",
        binary=True,
        tokenizer=str.split,
        token_pattern=None,
        lowercase=False,
    )
    joined = [" ".join(row) for row in rows]
    x = vectorizer.fit_transform(joined[: len(train.texts)]).astype(np.float64)
    unseen = vectorizer.transform(joined[len(train.texts) :]).astype(np.float64)
    names = LabelEncoder().fit(train.labels)
    y, gold = names.transform(train.labels), names.transform(test.labels)
    found = {}
    for name, make in LINEAR.items():
        start = time.process_time()
        model = make().fit(x, y)
        correct = (model.predict(unseen) == gold).astype(int).tolist()
        found[name] = {"correct": correct, "seconds": time.process_time() - start}
    return found


def own(train: Texts, test: Texts, seed: int, out: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Correct predictions of a run with default options, and its seconds of processor time."""
    start = time.process_time()
    examples = list(zip(train.texts, train.labels, strict=True))
    folder, _ = train_run("classify", {"data": examples, "seed": seed, **given}, out)
    seconds = time.process_time() - start
    run = regard.load(folder.path)
    predicted = [one.output for one in run.predict(test.texts)]
    correct = [int(a == b) for a, b in zip(predicted, test.labels, strict=True)]
    return {"correct": correct, "seconds": seconds}


def interval(values: np.ndarray) -> str:
    """The mean of percentages with its 95 % interval over texts."""
    half = 1.96 * values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():.1f} [{values.mean() - half:.1f}, {values.mean() + half:.1f}]"


def table(results: dict[str, list[tuple[np.ndarray, dict[str, Any]]]]) -> str:
    """Accuracies, and how much better the default is, paired by text; seeds are averaged."""
    size = 1 + max(int(places.max()) for rows in results.values() for places, _ in rows)
    correct, seconds = {}, {}
    for name, rows in results.items():
        sums, counts = np.zeros(size), np.zeros(size)
        for places, row in rows:
            sums[places] += row["correct"]
            counts[places] += 1
        correct[name] = 100 * sums[counts > 0] / counts[counts > 0]
        seconds[name] = np.mean([row["seconds"] for _, row in rows])
    lines = [
        "| model | accuracy | Regard's minus this one's | processor seconds |",
        "| --- | --- | --- | --- |",
    ]
    for name, values in correct.items():
        difference = "" if name == OWN else interval(correct[OWN] - values)
        lines.append(f"| {name} | {interval(values)} | {difference} | {seconds[name]:.1f} |")
    return "\n".join(lines)


def main() -> None:
    """Train, predict, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="training texts")
    parser.add_argument("--test", type=Path, help="test texts")
    parser.add_argument("--built-in", action="store_true", help="the built-in opinions")
    parser.add_argument("--folds", type=int, default=0, help="cross-validation in --data")
    parser.add_argument("--only", type=int, default=10**6, help="number of folds that are run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--set", nargs="*", default=[], help="options of the run: name=value")
    options = parser.parse_args()
    given = {name: json.loads(value) for name, value in (one.split("=") for one in options.set)}
    results: dict[str, list[tuple[np.ndarray, dict[str, Any]]]] = {}
    for number, (name, seed, train, test, places) in enumerate(parts(options)):
        if number >= options.only:
            break
        done = options.out / f"{name}.json"
        if not done.exists():
            row = {OWN: own(train, test, seed, options.out / name, given), **linear(train, test)}
            done.write_text(json.dumps(row), encoding="utf-8")
        for model, values in json.loads(done.read_text(encoding="utf-8")).items():
            results.setdefault(model, []).append((places, values))
        print(table(results), flush=True)


if __name__ == "__main__":
    main()
