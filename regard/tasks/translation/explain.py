"""What of a translation is explained: each token of it, given those before it."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from regard.data.tokenizers.tokenizer import BOS, EOS, SPECIAL
from regard.devices import device_of
from regard.models import Translator
from regard.models.output import Weights
from regard.tasks.shared.attention_flow import AttentionFlow, flow_to_source
from regard.tasks.shared.attention_modules import attention_modules
from regard.tasks.shared.explain_target import (
    ExplainTarget,
    Reading,
    erase_tokens,
    word_units,
)
from regard.tasks.shared.trace_sides import decode_with_spans, text_side
from regard.tasks.translation.decode import decode
from regard.tasks.translation.task import Translation
from regard.tasks.translation.task_options import Decoding


def explain_translation(
    task: Translation, network: Translator, text: str, erase: str | None, every: bool
) -> ExplainTarget | None:
    """Each token of the model's own translation, under forced decoding."""
    erase = erase or "delete"
    encoded = task.source.encode(text)
    device = device_of(network)
    ids = torch.tensor(encoded.ids[: task.max_tokens], device=device)
    if not len(ids):
        return None
    best = decode(task, network, [text], Decoding())[0][0]
    target = torch.tensor([BOS, *best.tokens], device=device)[:-1]

    def read(kept: Tensor, positions: Tensor, need_weights: bool) -> Reading:
        # words after the last explained one change nothing, but their attention may be wanted
        steps = len(target) if need_weights else int(positions.max()) + 1
        forced = target[:steps].expand(len(kept), -1)
        versions = erase_tokens(ids, kept, erase)
        output = network(*versions, forced, need_weights=need_weights, at=positions)
        return Reading(output.logits.log_softmax(-1), output.weights)

    side = text_side(text, encoded.offsets[: len(ids)])
    output, spans = decode_with_spans(task.target, best.output)
    end = (SPECIAL[EOS],) if best.finished else ()
    return ExplainTarget(
        network=network,
        input_layers=(network.source.words,),
        output_attention=_attention_to_source(network),
        read=read,
        side_name="source" if task.pretrained is None else "tokens",
        side=side,
        positions=tuple(range(len(target))),
        chosen=tuple(best.tokens),
        names=(*(output[start:stop] for start, stop in spans), *end),
        visible=np.ones((len(target), len(ids)), dtype=bool),
        units=word_units(task.source, side),
        flow=partial(_flow_to_text, network),
        erase=erase,
    )


def _flow_to_text(
    network: Translator, weights: Weights, positions: Sequence[int], tokens: int
) -> AttentionFlow:
    """Attention to the text alone, without the tokens that a model puts around it."""
    before, after = network.frame
    rows = next((w.shape[-2] for name, w in weights.items() if name.endswith("source")), 0)
    shown = {
        # what a decoder read before the first word is no row of its weights
        name: w[..., -rows:] if name.startswith("decoder.") and name.endswith("self") else w
        for name, w in weights.items()
    }
    flow = flow_to_source(shown, positions, tokens + before + after)
    kept = slice(before, before + tokens)
    return AttentionFlow(*(None if part is None else part[:, kept] for part in flow))


def _attention_to_source(network: Translator) -> tuple[nn.Module, ...]:
    own = {id(module) for name, module in network.named_modules() if name.endswith(".own")}
    return tuple(m for m in attention_modules(network.decoder) if id(m) not in own)
