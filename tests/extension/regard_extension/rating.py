"""A task that Regard does not have: the rating of a text, from 1 to 5, as a mean over ratings."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from regard.data import DataReport, Labelled, Source, Summary, read_labelled
from regard.data.batches import ordered_batches, pad, shuffled_batches
from regard.data.corpus import Corpus
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.errors import RegardError
from regard.metrics import Tally, measure
from regard.models import Classifier, ClassifierConfig
from regard.options import check_fields
from regard.tasks.prediction import Prediction
from regard.tasks.registry import SCREENS, TaskSpec
from regard.tasks.shared.attention_flow import flow_to_pooling
from regard.tasks.shared.explain_target import ExplainTarget, Reading, erase_tokens, word_units
from regard.tasks.shared.splits import make_splits, require_corpus
from regard.tasks.shared.trace_looks import make_looks, most_likely
from regard.tasks.shared.trace_sides import named_side, text_side
from regard.tasks.task import Evaluation, Loss, Sample
from regard.trace import Trace

RATINGS = ("1", "2", "3", "4", "5")


@dataclass(frozen=True)
class RatingData:
    """Rated texts."""

    data: list[str] | None = None
    """Tables with a text and a rating from 1 to 5."""
    valid: list[str] | None = None
    """Validation data in the same format (default: a part of the data is held out)."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class RatingTask:
    config: ClassifierConfig
    tokenizer: Tokenizer
    train: Corpus | None = None
    valid: Corpus | None = None

    def build(self) -> Classifier:
        return Classifier(self.config, self.tokenizer.size, len(RATINGS))

    def plan(self, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
        return shuffled_batches(require_corpus(self.train).lengths("words"), budget, seed, epoch)

    def batch(self, examples: np.ndarray) -> tuple[torch.Tensor, ...]:
        rows = require_corpus(self.train).rows(examples)
        return (*pad(rows["words"]), torch.tensor(rows["rating"]))

    def count(self, batch: tuple[torch.Tensor, ...]) -> int:
        return len(batch[2])

    def loss(self, model, batch, smoothing, carried):
        logits = model(batch[0], batch[1]).logits
        total = F.cross_entropy(logits, batch[2], reduction="sum", label_smoothing=smoothing)
        return Loss(total), carried

    def validate(self, model: Classifier) -> Evaluation:
        corpus = require_corpus(self.valid)
        columns = zip(corpus.column("text"), corpus.column("rating"), strict=True)
        return self.evaluate(model, [Labelled(text, (RATINGS[n],), "") for text, n in columns])

    def evaluate(self, model: Classifier, examples: Sequence[Labelled]) -> Evaluation:
        texts = [str(example.text) for example in examples]
        gold = np.array([float(example.labels[0]) for example in examples])
        predictions = self.predict(model, texts)
        errors = np.abs(np.array([float(p.output) for p in predictions]) - gold)
        statistics = np.stack([errors, np.ones(len(errors))], 1)
        error = Tally("mean absolute error", statistics, lambda sums: sums[:, 0] / sums[:, 1])
        lines = [
            {"text": text, "rating": example.labels[0], "predicted": p.output}
            for text, example, p in zip(texts, examples, predictions, strict=True)
        ]
        samples = tuple(Sample(*line.values()) for line in lines[:3])
        return Evaluation(
            {"mean_absolute_error": measure(error)},
            "mean_absolute_error",
            higher=False,
            samples=samples,
            by_length={},
            lines=tuple(lines),
        )

    @torch.no_grad()
    def predict(self, model: Classifier, texts: Sequence[str]) -> list[Prediction]:
        rows = [np.array(row) for row in self.tokenizer.ids(texts)]
        predictions = [Prediction("3")] * len(rows)
        for chosen in ordered_batches(np.array([len(row) for row in rows], dtype=np.int32), 4096):
            probabilities = model(*pad([rows[i] for i in chosen])).logits.softmax(-1)
            for i, row in zip(chosen, probabilities.tolist(), strict=True):
                predictions[i] = _prediction(row)
        return predictions


def _prediction(probabilities: Sequence[float]) -> Prediction:
    mean = sum(float(r) * p for r, p in zip(RATINGS, probabilities, strict=True))
    details = {"probabilities": dict(zip(RATINGS, probabilities, strict=True))}
    return Prediction(f"{mean:.2f}", details=details)


def read(data: RatingData, sources: Sequence[Source], summary: Summary) -> Iterator[Labelled]:
    for example in read_labelled(sources, None, None, None, summary):
        if example.labels[0] not in RATINGS:
            raise RegardError(f"{example.where}: rating {example.labels[0]!r}: expected 1 to 5")
        yield example


def prepare(data: RatingData, folder: Path, seed: int) -> DataReport:
    if data.data is None:
        raise RegardError("option data: needed, there are no built-in ratings")
    splits = make_splits("", data, read, seed)
    tokenizer = Tokenizer.train("word", (str(e.text) for e in splits.train()), 5000, True)
    sizes = splits.write(
        folder,
        lambda examples: (
            {
                "words": tokenizer.ids([str(e.text)])[0],
                "rating": RATINGS.index(e.labels[0]),
                "text": str(e.text),
            }
            for e in examples
        ),
    )
    tokenizer.save(folder / "tokenizer.json")
    (folder / "ratings.json").write_text(json.dumps(RATINGS))
    return splits.report(sizes)


def load(data: RatingData, config: ClassifierConfig, folder: Path) -> RatingTask:
    return RatingTask(config, Tokenizer.load(folder / "tokenizer.json"))


def trace_text(task: RatingTask, model: Classifier, text: str) -> Trace:
    encoded = task.tokenizer.encode(text)
    output = model(*pad([np.array(encoded.ids)]), need_weights=True)
    weights = {name: tensor[0] for name, tensor in output.weights.items()}
    sides = {"words": text_side(text, encoded.offsets), "rating": named_side(["rating"])}
    kinds = {
        "pooling": ("rating", "words"),
        "pooling.self": ("words", "words"),
        "encoder.self": ("words", "words"),
    }
    log_probabilities = output.logits.log_softmax(-1)
    prediction = _prediction(log_probabilities.exp()[0].tolist())
    return Trace(
        "rate",
        sides,
        make_looks(weights, sides, kinds),
        prediction.output,
        prediction.details,
        most_likely(log_probabilities, RATINGS),
    )


def explain_rating(
    task: RatingTask, network: Any, text: str, erase: str | None, every: bool
) -> ExplainTarget | None:
    encoded = task.tokenizer.encode(text)
    ids = torch.tensor(encoded.ids)

    def read_versions(kept: Any, positions: Any, need_weights: bool) -> Reading:
        output = network(*erase_tokens(ids, kept, erase or "delete"), need_weights=need_weights)
        return Reading(output.logits.log_softmax(-1), output.weights)

    whole = torch.ones(1, len(ids), dtype=torch.bool)
    best = int(read_versions(whole, None, False).log_probabilities.argmax())
    side = text_side(text, encoded.offsets)
    return ExplainTarget(
        network=network,
        input_layers=(network.inputs.words,),
        output_attention=(network.pooling,) if network.pooling.kind == "weighted" else (),
        read=read_versions,
        side_name="words",
        side=side,
        positions=(0,),
        chosen=(best,),
        names=(RATINGS[best],),
        visible=whole.numpy(),
        units=word_units(task.tokenizer, side),
        flow=flow_to_pooling,
        erase=erase or "delete",
        whole_output=True,
    )


SPEC = TaskSpec(
    name="rate",
    summary="rate texts from 1 to 5",
    data=RatingData,
    model=ClassifierConfig,
    read=read,
    prepare=prepare,
    load=load,
    training_defaults={"epochs": 5, "batch_tokens": 512},
    trace=trace_text,
    explain=explain_rating,
    example_text=lambda example: str(example.text),
    screens=SCREENS,
    example_texts=("a good film", "not good at all"),
)
