"""The trace of a translation: what each target token attended to, and what else it might have been.

Row t of a decoder's look is what the model attended to when it predicted token t. It had read the
tokens before t then, so that attention of a decoder to its own past goes from the side that is
predicted (`target`) to the side that was read (`written`), which begins with the start token.
"""

from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.data.batches import pad
from regard.data.tokenizers.tokenizer import BOS, EOS, SPECIAL, Tokenizer
from regard.devices import to_device
from regard.models import Translator
from regard.search import Hypothesis, force_decode, pin_attention
from regard.tasks.shared.trace_looks import expert_side, make_looks, most_likely
from regard.tasks.shared.trace_sides import decode_with_spans, text_side
from regard.tasks.translation.decode import Pins, SourceBatch, names_around, search, source_ids
from regard.tasks.translation.task import Translation
from regard.tasks.translation.task_options import Decoding
from regard.trace import Side, Token, Trace

SIDES = {
    "source": ("target", "source"),
    "encoder.self": ("source", "source"),
    "encoder.experts": ("source", "experts"),
    "decoder.source": ("target", "source"),
    "decoder.self": ("target", "written"),
    "decoder.experts": ("target", "experts"),
}


def trace_text(
    task: Translation,
    model: Translator,
    text: str,
    target: str | None = None,
    *,
    prefix: str | None = None,
    pins: Pins | None = None,
    **options: Any,
) -> Trace:
    """One text and its translation.

    The source is encoded once. The search keeps no weights; forced decoding of its best hypothesis
    gives weights and alternatives together.

    Args:
        task: a translation task.
        model: its model.
        text: what to translate.
        target: a translation to force instead of the model's own.
        prefix: what the translation begins with.
        pins: for positions of the target, the source tokens that may be attended to there.
        options: those of `Decoding`.
    """
    source = task.source.encode(text)
    batch = SourceBatch.encode(
        model,
        source_ids(task, [text]),
        need_weights=True,
        quantize=Decoding(**options).quantize,
    )
    if target is None:
        hypotheses = _search(task, batch, text, prefix, pins, options)
        output, spans = decode_with_spans(task.target, hypotheses[0].output)
        forced_best, log_probabilities = _force(batch, hypotheses[0].tokens, pins)
        best = replace(hypotheses[0], weights=forced_best.weights)
    else:
        encoded = task.target.encode(target)
        output, spans = target, encoded.offsets
        best, log_probabilities = _force(batch, [*encoded.ids, EOS], pins)
        hypotheses = [best]
    encoder_weights = {name: tensor[0] for name, tensor in batch.encoder_weights.items()}
    weights = encoder_weights | best.weights
    first, last = ("".join(names) for names in names_around(task))
    sides = {
        "source": text_side(text, source.offsets[: task.max_tokens], first=first, last=last),
        "target": text_side(output, spans, last=SPECIAL[EOS] if best.finished else ""),
    }
    if any(name.startswith("decoder") and name.endswith("self") for name in weights):
        read = spans if best.finished else spans[:-1]
        sides["written"] = text_side(output, read, first=SPECIAL[BOS])
        if task.pretrained is not None and task.pretrained.architecture.leads:
            sides["written"] = _led_by(sides["written"], task.pretrained.architecture.end_name)
    sides |= expert_side(weights)
    return Trace(
        "translation",
        sides,
        make_looks(weights, sides, SIDES),
        " ".join(output.splitlines()),
        {
            **_record(task.target, best),
            "token_log_probabilities": best.token_log_probabilities,
            "nbest": [_candidate(task.target, hypothesis) for hypothesis in hypotheses],
            "truncated": len(source.ids) > task.max_tokens,
        },
        most_likely(log_probabilities, task.target.vocabulary()),
    )


def _led_by(side: Side, name: str) -> Side:
    """The side after one more special token."""
    start = side.tokens[0].start
    return Side(side.text, (Token(name, start, start, special=True), *side.tokens))


def _search(
    task: Translation,
    batch: SourceBatch,
    text: str,
    prefix: str | None,
    pins: Pins | None,
    options: dict[str, Any],
) -> list[Hypothesis]:
    decoding = Decoding(**options)
    if "nbest" not in options:
        decoding = replace(decoding, nbest=1 if decoding.sampled else decoding.beam)
    prefixes = None if prefix is None else task.target.ids([prefix])
    pinned_tokens = None if pins is None else [pins]
    return search(task, batch, decoding, [text], prefixes=prefixes, pins=pinned_tokens)[0]


def _force(batch: SourceBatch, tokens: list[int], pins: Pins | None) -> tuple[Hypothesis, Tensor]:
    """A hypothesis with its weights, and the log-probabilities [t, v] at each of its positions."""
    steps: list[Tensor] = []
    (hypothesis,) = force_decode(
        batch.step(need_weights=True, record=steps),
        batch.state,
        *to_device(pad([np.array(tokens)]), batch.lengths.device),
        bos=BOS,
        eos=EOS,
        allowed=None if pins is None else pin_attention([pins], batch.keys),
    )
    return hypothesis, torch.cat(steps)


def _record(target: Tokenizer, hypothesis: Hypothesis) -> dict[str, Any]:
    return {
        "output": " ".join(target.decode(hypothesis.output).splitlines()),
        "score": hypothesis.normalized_log_probability,
        "log_probability": hypothesis.log_probability,
        "finished": hypothesis.finished,
    }


def _candidate(target: Tokenizer, hypothesis: Hypothesis) -> dict[str, Any]:
    """A hypothesis with the text of each token: candidates that begin alike share tokens."""
    text, spans = decode_with_spans(target, hypothesis.output)
    ends = [0, *accumulate((end for _, end in spans), max)]
    tokens = [text[start:end] for start, end in pairwise(ends)]
    return {
        **_record(target, hypothesis),
        "tokens": tokens + [SPECIAL[EOS]] * hypothesis.finished,
        "token_log_probabilities": hypothesis.token_log_probabilities,
    }
