"""Traces: one text through one model, with every look that it took on the way.

Row t of a decoder's look is where the model looked as it made token t. It had read the tokens
before t then, so that attention of a decoder over its own past goes from the side that is being
made (`target`, `next`) to the side that was read (`written`, `text`), which begins with a start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.batches import pad, pad_vectors
from regard.data.tokenizer import BOS, EOS, SPECIAL, Tokenizer
from regard.looks import Look
from regard.models import Classifier, Tagger, Translator
from regard.search import Hypothesis
from regard.tasks import features as frames
from regard.tasks.classification import Classification
from regard.tasks.conditional import Conditional
from regard.tasks.generation import LONGEST_PROMPT, continued
from regard.tasks.language import Language
from regard.tasks.prompts import prompted
from regard.tasks.sides import named_side, numbered_side, side, word_spans, written
from regard.tasks.tagging import STRETCH, Tagging
from regard.tasks.translating import Decoding, Pins, decode, score
from regard.tasks.translation import Translation
from regard.trace import Alternative, Side, Trace

ALTERNATIVES = 5


@torch.no_grad()
def trace(
    task: Any, model: nn.Module, text: str, target: str | None = None, **options: Any
) -> Trace:
    """What a model makes of a text, and where it looks.

    Args:
        task: any of the tasks.
        model: its model.
        text: what to read.
        target: the translation that it is made to write, instead of its own.
        options: of `Decoding` in translation; `tokens` to write on, in a language model, with
            those of its sampling.
    """
    if target is not None and not isinstance(task, Translation):
        raise ValueError(f"a target needs a translation, not a {type(task).__name__}")
    if isinstance(task, Translation):
        return _translation(task, model, text, target, **options)
    if isinstance(task, Language | Conditional):
        return _language(task, model, text, **options)
    if isinstance(task, Classification):
        return _classification(task, model, text, **options)
    if isinstance(task, Tagging):
        return _tagging(task, model, text, **options)
    own = getattr(task, "trace", None)
    if own is None:
        raise ValueError(f"a {type(task).__name__} has no trace")
    made: Trace = own(model, text, **options)
    return made


def looks(
    weights: Mapping[str, Tensor], sides: Mapping[str, Side], where: Mapping[str, tuple[str, str]]
) -> tuple[Look, ...]:
    """Looks of weights [h, q, k] by name; `where` says which sides each kind of attention joins.

    A kind is a name without its layer, such as decoder.source; an empty look is none.
    """
    found = []
    for full, tensor in weights.items():
        parts = full.split(".")
        layer = next((int(part) for part in parts if part.isdecimal()), None)
        kind = ".".join(part for part in parts if not part.isdecimal())
        asking, asked = where[kind]
        queries, keys = (tuple(t.text for t in sides[name].tokens) for name in (asking, asked))
        if not queries or not keys:
            continue
        single = layer is None and len(tensor) == 1
        for head, matrix in enumerate(tensor.double().numpy()):
            found.append(
                Look(
                    matrix[: len(queries), : len(keys)],
                    queries,
                    keys,
                    kind,
                    layer,
                    None if single or kind.endswith("experts") else head,
                    asking,
                    asked,
                )
            )
    return tuple(found)


def experts(weights: Mapping[str, Tensor]) -> dict[str, Side]:
    """A side with the experts, where there are any."""
    counts = [look.shape[-1] for name, look in weights.items() if name.endswith("experts")]
    if not counts:
        return {}
    return {"experts": named_side(f"expert {i + 1}" for i in range(max(counts)))}


def likeliest(
    log_probabilities: Tensor, names: Sequence[str], most: int = ALTERNATIVES
) -> tuple[tuple[Alternative, ...], ...]:
    """The likeliest names at each position of [t, v], likeliest first."""
    best = log_probabilities.topk(min(most, log_probabilities.shape[-1]))
    return tuple(
        tuple(Alternative(names[i], p) for i, p in zip(row, chances, strict=True))
        for row, chances in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
    )


def _translation(
    task: Translation,
    model: nn.Module,
    text: str,
    target: str | None,
    *,
    prefix: str | None = None,
    pins: Pins | None = None,
    **options: Any,
) -> Trace:
    """A translation; `pins` are tokens of the source by position of the target."""
    assert isinstance(model, Translator)
    source = task.source.encode(text)
    cut = len(source.ids) > task.max_tokens
    pinned = None if pins is None else [pins]
    if target is None:
        given = None if prefix is None else task.target.ids([prefix])
        decoding = Decoding(**options)
        if "nbest" not in options:
            decoding = replace(decoding, nbest=1 if decoding.drawn else decoding.beam)
        found = decode(
            task,
            model,
            [text],
            decoding,
            prefixes=given,
            pins=pinned,
            need_weights=True,
        )[0]
        best = found[0]
        output, spans = written(task.target, best.output)
    else:
        aimed = task.target.encode(target)
        ids, spans, output = aimed.ids, aimed.offsets, target
        found = score(task, model, [text], [ids], pins=pinned, need_weights=True)
        best = found[0]
    ids = task.source.ids([text])[0][: task.max_tokens]
    context = model.encode(
        torch.tensor([ids], dtype=torch.long), torch.tensor([len(ids)]), need_weights=True
    )
    weights = {name: look[0] for name, look in context.weights.items()} | best.weights
    sides = {
        "source": side(text, source.offsets[: task.max_tokens]),
        "target": side(output, spans, last=SPECIAL[EOS] if best.finished else ""),
    }
    if any(name.startswith("decoder") and name.endswith("self") for name in weights):
        read = spans if best.finished else spans[:-1]
        sides["written"] = side(output, read, first=SPECIAL[BOS])
    sides |= experts(weights)
    where = {
        "source": ("target", "source"),
        "encoder.self": ("source", "source"),
        "encoder.experts": ("source", "experts"),
        "decoder.source": ("target", "source"),
        "decoder.self": ("target", "written"),
        "decoder.experts": ("target", "experts"),
    }
    chances = _chances(task, model, text, best, pins)
    return Trace(
        "translation",
        sides,
        looks(weights, sides, where),
        " ".join(output.splitlines()),
        {
            **_told(task.target, best),
            "token_log_probabilities": best.token_log_probabilities,
            "nbest": [_told(task.target, one) for one in found],
            "cut": cut,
        },
        likeliest(chances, task.target.vocabulary()),
    )


def _told(target: Tokenizer, found: Hypothesis) -> dict[str, Any]:
    return {
        "output": " ".join(target.decode(found.output).splitlines()),
        "score": found.score,
        "log_probability": found.log_probability,
        "finished": found.finished,
    }


def _chances(
    task: Translation, model: Translator, text: str, found: Hypothesis, pins: Pins | None
) -> Tensor:
    """Log-probabilities [t, v] of every token at each position of a hypothesis."""
    ids = task.source.ids([text])[0][: task.max_tokens]
    context = model.encode(torch.tensor([ids], dtype=torch.long), torch.tensor([len(ids)]))
    state = model.start(context)
    rows = []
    for position, token in enumerate([BOS, *found.tokens[:-1]]):
        look = None
        if pins is not None and position in pins:
            look = torch.zeros(1, len(ids), dtype=torch.bool)
            look[0, list(pins[position])] = True
        row, state, _ = model.step(torch.tensor([token]), state, look=look, need_weights=False)
        rows.append(row[0])
    return torch.stack(rows)


def _language(
    task: Language | Conditional, model: nn.Module, given: str, *, tokens: int = 0, **options: Any
) -> Trace:
    """A text under a language model, with `tokens` more that it writes itself."""
    reader, tokenizer, text, state = prompted(task, model, given)
    encoded = tokenizer.encode(text)
    ids, spans = encoded.ids, encoded.offsets
    if tokens:
        ids = continued(reader, ids, state, limit=tokens, **options).output
        text, spans = written(tokenizer, ids)
    cut = len(ids) > LONGEST_PROMPT
    ids, spans = ids[-LONGEST_PROMPT:], spans[-LONGEST_PROMPT:]
    output, _ = reader(torch.tensor([[EOS, *ids]]), state, need_weights=True)
    weights = {name: look[0] for name, look in output.weights.items()}
    chances = output.logits[0].log_softmax(-1)
    sides = {
        "text": side(text, spans, first=SPECIAL[EOS]),
        "next": side(text, spans, last="…"),
        **experts(weights),
    }
    where = {
        "past": ("next", "text"),
        "decoder.self": ("next", "text"),
        "decoder.experts": ("next", "experts"),
    }
    each = chances[:-1].gather(1, torch.tensor(ids, dtype=torch.long)[:, None])[:, 0]
    return Trace(
        "language",
        sides,
        looks(weights, sides, where),
        " ".join(text.splitlines()),
        {
            "log_probability": float(each.sum()),
            "token_log_probabilities": each.tolist(),
            "cut": cut,
        },
        likeliest(chances, tokenizer.vocabulary()),
    )


def _classification(task: Classification, model: nn.Module, text: str) -> Trace:
    assert isinstance(model, Classifier)
    found = task.predict(model, [text])[0]
    read, rows = _read(task, text, task.max_tokens)
    output = model(*rows, need_weights=True)
    weights = {name: look[0] for name, look in output.weights.items()}
    # the queries of pooling come as heads: they are rows of one look
    pooled = weights.pop("pooling")[:, 0]
    kind = model.pooling.kind
    queries = [f"query {i + 1}" for i in range(len(pooled))] if kind == "fixed" else [kind]
    sides = {
        "text": read,
        "queries": named_side(queries),
        "decision": named_side(["decision"]),
        **experts(weights),
    }
    where = {
        "pooling": ("queries", "text"),
        "pooling.self": ("text", "text"),
        "encoder.self": ("text", "text"),
        "encoder.experts": ("text", "experts"),
        "experts": ("decision", "experts"),
    }
    chances = sorted(found.details["probabilities"].items(), key=lambda pair: -pair[1])
    if "experts" not in sides:
        del sides["decision"]
    return Trace(
        "classify",
        sides,
        looks({**weights, "pooling": pooled[None]}, sides, where),
        found.output,
        {**found.details, "cut": found.cut},
        (tuple(Alternative(label, chance) for label, chance in chances[:ALTERNATIVES]),),
    )


def _read(task: Classification, text: str, most: int) -> tuple[Side, tuple[Tensor, Tensor]]:
    """The side of a text, or of vectors, and the tensors that a classifier reads."""
    if task.features is not None:
        vectors = frames.sequence(text, task.features)[:most]
        return numbered_side(len(vectors)), pad_vectors([vectors])
    encoded = task.tokenizer.encode(text)
    ids = np.array(encoded.ids[:most], dtype=np.int64)
    return side(text, encoded.offsets[:most]), pad([ids])


def _tagging(task: Tagging, model: nn.Module, text: str) -> Trace:
    """The first stretch of a text, which is what the model sees at once."""
    assert isinstance(model, Tagger)
    found = task.predict(model, [text])[0]
    words: Any = text.split()
    read = side(text, word_spans(text)[:STRETCH])
    if task.features is not None:
        words = frames.sequence(text, task.features)
        read = numbered_side(len(words[:STRETCH]))
    inputs, lengths, characters = task._inputs([words[:STRETCH]])
    output = model(inputs, lengths, characters, need_weights=True)
    weights = {name: look[0] for name, look in output.weights.items()}
    sides = {"text": read, **experts(weights)}
    where = {"encoder.self": ("text", "text"), "encoder.experts": ("text", "experts")}
    chances = model.probabilities(output.logits, lengths).log()
    return Trace(
        "tag",
        sides,
        looks(weights, sides, where),
        found.output,
        {**found.details, "cut": len(words) > STRETCH},
        likeliest(chances[0], task.labels.names),
    )
