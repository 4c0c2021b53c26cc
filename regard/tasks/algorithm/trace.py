"""The trace of a problem: what the model answers at each step, and where its heads are."""

import torch

from regard.devices import device_of
from regard.models import AlgorithmModel
from regard.tasks.algorithm.task import Algorithm, read_answer
from regard.tasks.shared.trace_looks import make_looks, most_likely
from regard.tasks.shared.trace_sides import named_side
from regard.trace import Trace

SIDES = {
    "memory.read": ("steps", "slots"),
    "memory.write": ("steps", "slots"),
    "decoder.self": ("steps", "steps"),
}


def trace_problem(task: Algorithm, model: AlgorithmModel, text: str) -> Trace:
    """One problem through a model, with the blanks of its answer."""
    names = task.data.names()
    (numbers,) = task.numbers([text])
    row = numbers[: task.max_symbols()]
    symbols = task.with_blanks(row)
    output = model(torch.tensor([symbols], device=device_of(model)), need_weights=True)
    weights = {name: tensor[0] for name, tensor in output.weights.items()}
    sides = {
        "steps": named_side(names[number] for number in symbols),
        "slots": named_side(str(slot) for slot in range(task.config.slots)),
    }
    log_probabilities = output.logits[0].log_softmax(-1)[len(row) :]
    truncated = len(row) < len(numbers)
    prediction = task.prediction(*read_answer(log_probabilities), truncated=truncated)
    return Trace(
        "algorithm",
        sides,
        make_looks(weights, sides, SIDES),
        prediction.output,
        {**prediction.details, "truncated": truncated},
        most_likely(log_probabilities, names),
    )
