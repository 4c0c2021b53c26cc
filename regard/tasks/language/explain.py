"""What of a language model is explained: the token that it predicts next."""

import numpy as np
import torch
from torch import Tensor

from regard.data.tokenizers.tokenizer import SPECIAL
from regard.devices import device_of
from regard.errors import RegardError
from regard.models import LanguageModel
from regard.tasks.language.conditional import Conditional
from regard.tasks.language.generate import longest_prompt
from regard.tasks.language.task import Language
from regard.tasks.shared.attention_flow import flow_to_past
from regard.tasks.shared.attention_modules import attention_modules
from regard.tasks.shared.explain_target import (
    ExplainTarget,
    Reading,
    erase_tokens,
    word_units,
)
from regard.tasks.shared.trace_sides import text_side


def explain_next_token(
    task: Language | Conditional, network: LanguageModel, text: str, erase: str | None, every: bool
) -> ExplainTarget | None:
    """The most likely token after the text; with `every`, after each of its tokens."""
    if isinstance(task, Conditional):
        raise RegardError("explanations do not apply to runs that generate from a condition")
    erase = erase or "delete"
    encoded = task.tokenizer.encode(text)
    device = device_of(network)
    read_ids = encoded.ids[-longest_prompt(network) :]
    ids = torch.tensor([network.start_token, *read_ids], device=device)
    if len(ids) < 2:
        return None

    def read(kept: Tensor, positions: Tensor, need_weights: bool) -> Reading:
        words, _ = erase_tokens(ids, kept, erase)
        if erase == "delete":  # deletion shifts the token before the output to the left
            positions = kept.cumsum(1).gather(1, positions[:, None])[:, 0] - 1
        output, _ = network(words, network.start(len(words)), need_weights=need_weights)
        logits = output.logits[torch.arange(len(words), device=device), positions]
        return Reading(logits.log_softmax(-1), output.weights)

    positions = torch.arange(1 if every else len(ids) - 1, len(ids), device=device)
    kept = torch.ones(len(positions), len(ids), dtype=torch.bool, device=device)
    best = read(kept, positions, False).log_probabilities.argmax(-1).tolist()
    side = text_side(text, encoded.offsets[-(len(ids) - 1) :], first=SPECIAL[network.start_token])
    visible = np.arange(len(ids)) <= positions.cpu().numpy()[:, None]
    visible[:, 0] = False  # the start of a text is not a word of it
    names = task.tokenizer.vocabulary()
    return ExplainTarget(
        network=network,
        input_layers=(network.embedding.words,),
        output_attention=attention_modules(network),
        read=read,
        side_name="text",
        side=side,
        positions=tuple(positions.tolist()),
        chosen=tuple(best),
        names=tuple(names[token] for token in best),
        visible=visible,
        units=word_units(task.tokenizer, side),
        flow=flow_to_past,
        erase=erase,
    )
