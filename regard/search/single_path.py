"""One path per sentence: choose a token, feed it, repeat until the end token or the limit."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.search.hypotheses import EndedHypotheses, History, Hypothesis, StepRecord
from regard.search.penalties import Coverage, LengthPenalty, penalty_table
from regard.search.step import Start, Step, advance, check_vocabulary, reorder

Choose = Callable[
    [Float[Tensor, "n v"], int, Int[Tensor, " n"], Int[Tensor, " n"]], Int[Tensor, " n"]
]


def follow(
    step: Step,
    state: Any,
    start: Start,
    choose: Choose,
    length_penalty: LengthPenalty,
    coverage: Coverage | None = None,
) -> list[Hypothesis]:
    """The path of each sentence, one choice after the other.

    `choose(log_probabilities, position, sentences, tokens)` gives the next tokens, where `tokens`
    are those that were fed. Sentences that have ended leave the batch.
    """
    b = len(start.tokens)
    if b == 0:
        return []
    history, penalties, covered = History(), penalty_table(length_penalty, start.longest), None
    sentences = torch.arange(b, device=start.tokens.device)
    tokens, parents, limits = start.tokens, None, start.limits
    total = chosen = torch.zeros(b, device=tokens.device)
    for position in range(start.longest):
        allowed = start.allowed_at(position, sentences)
        log_probabilities, state, weights = advance(step, tokens, state, allowed)
        history.add(StepRecord(tokens, parents, chosen, weights))
        if coverage is not None:
            covered = coverage.add(covered, parents, weights)
        tokens = choose(log_probabilities, position, sentences, tokens)
        given = start.required(position, sentences)
        if given is not None:
            tokens = check_vocabulary(torch.where(given >= 0, given, tokens), log_probabilities)
        chosen = log_probabilities.gather(1, tokens[:, None]).squeeze(1)
        total = total + chosen
        parents = None
        over = finished = tokens == start.eos
        if position + 1 >= start.shortest:
            over = finished | (limits <= position + 1)
        if not over.any():
            continue
        rows = over.nonzero().squeeze(1)
        penalties = penalties.to(total)
        normalized = total[rows] / penalties[position + 1]
        if coverage is not None and covered is not None:
            normalized = normalized + coverage.penalty(covered[rows], sentences[rows])
        history.ended.append(
            EndedHypotheses(
                step=position,
                sentences=sentences[rows],
                rows=rows,
                tokens=tokens[rows],
                token_log_probabilities=chosen[rows],
                log_probabilities=total[rows],
                normalized_log_probabilities=normalized,
                finished=finished[rows],
            )
        )
        parents = (~over).nonzero().squeeze(1)
        if len(parents) == 0:
            break
        state = reorder(state, parents)
        sentences, tokens, limits = sentences[parents], tokens[parents], limits[parents]
        total, chosen = total[parents], chosen[parents]
    paths = [best[0] for best in history.best(b, nbest=1)]
    for sentence, path in enumerate(paths):
        if path.log_probability != path.log_probability:
            raise ValueError(f"the step returned NaN as a log-probability for sentence {sentence}")
    return paths
