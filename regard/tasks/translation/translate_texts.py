"""Translations as plain records, with unknown words and numbers copied from the source."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from regard.data.tokenizers.tokenizer import UNK, Tokenizer
from regard.errors import OptionError
from regard.models import Translator
from regard.search import Hypothesis
from regard.tasks.prediction import Prediction
from regard.tasks.shared.trace_sides import decode_with_spans
from regard.tasks.translation.copied_numbers import copy_numbers, unmatched_numbers
from regard.tasks.translation.decode import (
    Pins,
    TranslationSides,
    decode,
    force_targets,
    names_around,
    pin_tokens,
)
from regard.tasks.translation.task_options import Decoding


def translate_texts(
    task: TranslationSides,
    model: Translator,
    texts: Sequence[str],
    decoding: Decoding,
    prefixes: Sequence[str] | None = None,
    force: Pins | None = None,
) -> list[Prediction]:
    """The best translation of each text with its score, and whatever else `decoding` asks for.

    Args:
        task: tokenizers and limits.
        model: a translator.
        texts: what to translate.
        decoding: how.
        prefixes: what each translation begins with.
        force: for positions of the target, in tokens, the source words that may be attended to.
    """
    encoded = task.source.encode_batch(texts)
    hypotheses = decode(
        task,
        model,
        texts,
        decoding,
        prefixes=None if prefixes is None else task.target.ids(prefixes),
        pins=None if force is None else [pin_tokens(task, text, force) for text in texts],
        need_weights=decoding.weights or decoding.replace_unknown,
    )
    names = task.target.vocabulary() if decoding.return_tokens else None
    copied: Iterator[str] | None = None
    if decoding.copy_numbers:
        sources = [text for text, nbest in zip(texts, hypotheses, strict=True) for _ in nbest]
        copied = iter(with_copied_numbers(task, model, sources, list(chain(*hypotheses))))
    predictions = []
    for source, nbest in zip(encoded, hypotheses, strict=True):
        before, after = names_around(task)
        tokens = [*before, *source.tokens[: task.max_tokens], *after]
        words = slice(len(before), len(tokens) - len(after))
        records = [_record(task.target, one, tokens, words, decoding, names) for one in nbest]
        if copied is not None:
            records = [record | {"output": next(copied)} for record in records]
        details = {name: value for name, value in records[0].items() if name != "output"}
        if decoding.weights:
            details["source_tokens"] = tokens
        if decoding.nbest > 1:
            details["nbest"] = records
        truncated = len(source.ids) > task.max_tokens
        predictions.append(Prediction(records[0]["output"], truncated, details))
    return predictions


def with_copied_numbers(
    task: TranslationSides,
    model: Translator,
    texts: Sequence[str],
    hypotheses: Sequence[Hypothesis],
) -> list[str]:
    """Translations in which wrong numbers are those of the source that were attended to.

    Attention is computed only for translations with a number that the source lacks, while the
    source has one that they lack.
    """
    outputs = task.target.decode_batch([one.output for one in hypotheses])
    chosen = [
        i
        for i, (text, output) in enumerate(zip(texts, outputs, strict=True))
        if all(unmatched_numbers(text, output))
    ]
    targets = [hypotheses[i].output for i in chosen]
    forced = force_targets(task, model, [texts[i] for i in chosen], targets, need_weights=True)
    before = len(names_around(task)[0])
    for i, one in zip(chosen, forced, strict=True):
        mean = mean_source_attention(one.weights)
        if mean is None:
            raise OptionError("copy_numbers", "this model has no attention to the source")
        source_spans = task.source.encode(texts[i]).offsets[: task.max_tokens]
        output, spans = decode_with_spans(task.target, hypotheses[i].output)
        weights = mean[: len(spans), before : before + len(source_spans)].cpu().numpy()
        outputs[i] = copy_numbers(texts[i], output, weights, source_spans, spans)
    return outputs


def _record(
    target: Tokenizer,
    hypothesis: Hypothesis,
    source: Sequence[str],
    words: slice,
    decoding: Decoding,
    names: Sequence[str] | None,
) -> dict[str, Any]:
    """One translation in plain values."""
    output = target.decode(hypothesis.output)
    if decoding.replace_unknown and UNK in hypothesis.output:
        output = replace_unknown_tokens(target, hypothesis, source, words)
    record: dict[str, Any] = {
        "output": output,
        "score": hypothesis.normalized_log_probability,
        "log_probability": hypothesis.log_probability,
        "finished": hypothesis.finished,
    }
    if names is not None:
        record["tokens"] = [names[token] for token in hypothesis.tokens]
        record["token_log_probabilities"] = hypothesis.token_log_probabilities
    if decoding.weights:
        keys = len(source)
        record["weights"] = {
            name: (weights[..., :keys] if name.endswith("source") else weights).tolist()
            for name, weights in hypothesis.weights.items()
        }
    return record


def replace_unknown_tokens(
    target: Tokenizer, hypothesis: Hypothesis, source: Sequence[str], words: slice = slice(None)
) -> str:
    """The text of a hypothesis with the most attended source token for each unknown one.

    Heads and layers are averaged; `words` are the source tokens that stand for text.
    Luong et al., 2015, https://arxiv.org/abs/1410.8206
    """
    text, spans = decode_with_spans(target, hypothesis.output)
    mean = mean_source_attention(hypothesis.weights)
    if mean is None or not source:
        return text
    source, mean = source[words], mean[:, : len(source)][:, words]
    for position in reversed(range(len(spans))):
        if hypothesis.output[position] == UNK:
            start, end = spans[position]
            text = text[:start] + source[int(mean[position].argmax())] + text[end:]
    return text


def mean_source_attention(weights: Mapping[str, Tensor]) -> Tensor | None:
    """Attention to the source [t, k], the mean of layers and heads; None where there is none."""
    to_source = [one for name, one in weights.items() if name.split(".")[-1] == "source"]
    if not to_source:
        return None
    return torch.stack([one.flatten(0, -3).mean(0) for one in to_source]).mean(0)
