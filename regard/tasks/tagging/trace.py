"""The trace of a tagged text: what each word attended to."""

from typing import Any

from regard.devices import to_device
from regard.tasks.shared.trace_looks import expert_side, make_looks, most_likely
from regard.tasks.shared.trace_sides import numbered_side, text_side, word_spans
from regard.tasks.shared.vector_inputs import read_sequence
from regard.tasks.tagging.task import (
    MAX_TOKENS_OF_A_WORD,
    MAX_WORDS,
    AnyTagger,
    Tagging,
    tag_details,
)
from regard.trace import Side, Trace

SIDES = {"encoder.self": ("text", "text"), "encoder.experts": ("text", "experts")}


def trace_text(task: Tagging, model: AnyTagger, text: str) -> Trace:
    """The first words of a text, as many as the model reads at once."""
    words: Any = text.split()
    read = words[:MAX_WORDS] if task.features is not None else task.split(words)[0]
    side = text_side(text, word_spans(text)[: len(read)])
    if task.pretrained is not None:
        side = token_side(task, text)
    if task.features is not None:
        words = read_sequence(text, task.features)
        read = words[:MAX_WORDS]
        side = numbered_side(len(read))
    inputs, lengths, characters = to_device(task.inputs([read]), model)
    output = model(inputs, lengths, characters, need_weights=True)
    weights = {name: tensor[0] for name, tensor in output.weights.items()}
    sides = {"text": side, **expert_side(weights)}
    marginals = model.probabilities(output.logits, lengths)
    truncated = len(words) > len(read)
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


def token_side(task: Tagging, text: str) -> Side:
    """The tokens that a pretrained encoder reads, at their places in the text."""
    spans = word_spans(text)
    words = task.split([text[start:end] for start, end in spans])[0]
    encoded = task.tokenizer.encode_words(words)
    places, counts = [], [0] * len(words)
    for word, (start, end) in zip(encoded.words, encoded.offsets, strict=True):
        counts[word] += 1
        if counts[word] <= MAX_TOKENS_OF_A_WORD:
            places.append((spans[word][0] + start, spans[word][0] + end))
    return text_side(text, places, **task.frame)
