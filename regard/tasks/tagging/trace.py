"""The trace of a tagged text: what each word attended to."""

from typing import Any

from regard.models import Tagger
from regard.tasks.shared.trace_looks import expert_side, make_looks, most_likely
from regard.tasks.shared.trace_sides import numbered_side, text_side, word_spans
from regard.tasks.shared.vector_inputs import read_sequence
from regard.tasks.tagging.task import MAX_WORDS, Tagging, tag_details
from regard.trace import Trace

SIDES = {"encoder.self": ("text", "text"), "encoder.experts": ("text", "experts")}


def trace_text(task: Tagging, model: Tagger, text: str) -> Trace:
    """The first words of a text, as many as the model reads at once."""
    words: Any = text.split()
    side = text_side(text, word_spans(text)[:MAX_WORDS])
    if task.features is not None:
        words = read_sequence(text, task.features)
        side = numbered_side(len(words[:MAX_WORDS]))
    inputs, lengths, characters = task.inputs([words[:MAX_WORDS]])
    output = model(inputs, lengths, characters, need_weights=True)
    weights = {name: tensor[0] for name, tensor in output.weights.items()}
    sides = {"text": side, **expert_side(weights)}
    marginals = model.probabilities(output.logits, lengths)
    truncated = len(words) > MAX_WORDS
    if truncated or task.features is not None:
        details = task.predict(model, [text])[0].details
    else:  # everything is known from the one pass above
        sentence = task.decode(model, output.logits, lengths, marginals)[0]
        details = {"words": words, **tag_details(sentence)}
    return Trace(
        "tag",
        sides,
        make_looks(weights, sides, SIDES),
        " ".join(details["tags"]),
        {**details, "truncated": truncated},
        most_likely(marginals[0].log(), task.labels.names),
    )
