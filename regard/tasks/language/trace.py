"""The trace of a text under a language model: what each prediction attended to.

Row t of a look is what the model attended to when it predicted token t. It had read the tokens
before t then, so that attention goes from the side that is predicted (`next`) to the side that was
read (`text`), which begins with the start of the text.
"""

from typing import Any

import torch

from regard.data.tokenizers.tokenizer import SPECIAL
from regard.devices import device_of
from regard.models import LanguageModel
from regard.tasks.language.conditional import Conditional
from regard.tasks.language.generate import continue_prompt, longest_prompt
from regard.tasks.language.prompts import parse_prompt
from regard.tasks.language.task import Language
from regard.tasks.language.task_options import Sampling
from regard.tasks.shared.trace_looks import expert_side, make_looks, most_likely
from regard.tasks.shared.trace_sides import decode_with_spans, text_side
from regard.trace import Trace

SIDES = {
    "past": ("next", "text"),
    "cache": ("next", "text"),
    "decoder.self": ("next", "text"),
    "decoder.experts": ("next", "experts"),
}


def trace_text(
    task: Language | Conditional,
    model: LanguageModel,
    given: str,
    *,
    tokens: int = 0,
    **options: Any,
) -> Trace:
    """A text under a language model, with `tokens` more that it generates itself."""
    sampling = Sampling(tokens=max(1, tokens), **options)
    tokenizer, text, state = parse_prompt(task, model, given, sampling)
    encoded = tokenizer.encode(text)
    ids, spans = encoded.ids, encoded.offsets
    if tokens:
        ids = continue_prompt(model, ids, state, sampling).output
        text, spans = decode_with_spans(tokenizer, ids)
    longest = longest_prompt(model)
    truncated = len(ids) > longest
    ids, spans = ids[-longest:], spans[-longest:]
    read = torch.tensor([[model.start_token, *ids]], device=device_of(model))
    output, _ = model(read, state, need_weights=True)
    weights = {name: tensor[0] for name, tensor in output.weights.items()}
    if "cache" in weights:  # shown at the words that followed the states
        weights["cache"] = torch.nn.functional.pad(weights["cache"], (1, 0))
    log_probabilities = output.logits[0].log_softmax(-1)
    sides = {
        "text": text_side(text, spans, first=SPECIAL[model.start_token]),
        "next": text_side(text, spans, last="…"),
        **expert_side(weights),
    }
    own = log_probabilities[:-1].gather(1, read[0, 1:, None])[:, 0]
    shares = model.ngram_shares(read, state)
    beside = {}
    if shares is not None:
        lengths, weights_of_network = (part[0].tolist() for part in shares)
        beside = {"ngram_context": lengths, "network_weight": weights_of_network}
    return Trace(
        "language",
        sides,
        make_looks(weights, sides, SIDES),
        " ".join(text.splitlines()),
        {
            "log_probability": float(own.sum()),
            "token_log_probabilities": own.tolist(),
            "truncated": truncated,
            **beside,
        },
        most_likely(log_probabilities, tokenizer.vocabulary()),
    )
