"""Beam search: keep the best few hypotheses at each step, and stop when none can still win."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.devices import widest_float
from regard.search.hypotheses import EndedHypotheses, History, Hypothesis, StepRecord
from regard.search.penalties import Coverage, LengthPenalty, no_length_penalty, penalty_table
from regard.search.ranking import IMPOSSIBLE, best_candidates
from regard.search.step import (
    AllowedKeys,
    Limit,
    Prefix,
    Start,
    Step,
    Weights,
    advance,
    check_vocabulary,
    prepare,
    reorder,
)


@torch.no_grad()
def beam(
    step: Step,
    state: Any,
    *,
    bos: int | Int[Tensor, " b"],
    eos: int,
    limit: Limit,
    width: int,
    nbest: int = 1,
    length_penalty: LengthPenalty = no_length_penalty,
    coverage: Coverage | None = None,
    patience: float | None = None,
    full: bool = False,
    prefix: Prefix | None = None,
    allowed: AllowedKeys | None = None,
) -> list[list[Hypothesis]]:
    """The n best outputs that a beam finds for each sentence, best first.

    At each step all continuations of all live hypotheses are compared by log-probability and the
    best `width` are kept; those among them that end in the end token leave the beam, and the next
    step fills it again. Of equal continuations the lowest token, then the lowest beam goes first.
    Hypotheses truncated at the limit come after all finished ones.

    A sentence is decided when no live hypothesis can still enter its n best: log-probabilities only
    fall, so a live one with log-probability l can reach l / lp(n) at most, over the lengths n that
    it may still get, and no coverage penalty is above zero. The result is the same as without
    stopping early. A number as `patience` stops sooner, once `patience` · `width` hypotheses are
    finished (Kasai et al. 2022, https://arxiv.org/abs/2204.05424), which may change it.

    With `full`, hypotheses that end do not take the places of others: the best `width` that go on
    are kept as well, as in `transformers` and fairseq.
    """
    if not 1 <= nbest <= width:
        raise ValueError(f"a beam of width {width} gives 1 to {width} hypotheses, not {nbest}")
    if patience is not None and not patience > 0:
        raise ValueError(f"patience must be above 0, got {patience}")
    start = prepare(state, bos, eos, limit, prefix, allowed)
    if len(start.tokens) == 0:
        return []
    beams = Beams(start, width, nbest, length_penalty, coverage, patience, full)
    for position in range(start.longest):
        keys = start.allowed_at(position, beams.sentences)
        log_probabilities, state, weights = advance(step, beams.tokens, state, keys)
        beams.grow(position, log_probabilities, weights)
        if beams.parents is None or len(beams.parents) == 0:
            break
        state = reorder(state, beams.parents, beams.moved)
    return beams.history.best(len(start.tokens), nbest)


class Candidates(NamedTuple):
    """The best continuations of the hypotheses of each sentence, best first."""

    totals: Float[Tensor, "m w"]
    tokens: Int[Tensor, "m w"]
    rows: Int[Tensor, "m w"]

    def select(self, mask: Bool[Tensor, "m w"]) -> tuple[Tensor, Tensor, Tensor]:
        """Totals, tokens and rows of some of the candidates, sentence by sentence."""
        places = mask.flatten().nonzero().squeeze(1)
        totals, tokens, rows = (field.flatten().index_select(0, places) for field in self)
        return totals, tokens, rows


class Beams:
    """The live hypotheses of all sentences that are not decided yet: n rows for m sentences.

    Rows are grouped by sentence, `counts` of them for each, best first. Fields come in two
    lengths: those of rows [n] and those of sentences [m].
    """

    def __init__(
        self,
        start: Start,
        width: int,
        nbest: int,
        length_penalty: LengthPenalty,
        coverage: Coverage | None,
        patience: float | None,
        full: bool,
    ) -> None:
        b, device = len(start.tokens), start.tokens.device
        self.start, self.width, self.coverage, self.full = start, width, coverage, full
        penalties = penalty_table(length_penalty, start.longest)
        self.penalties = penalties.to(device, widest_float(device))
        self.enough_ends = None if patience is None else patience * width
        self.history = History()

        # One entry per row.
        self.tokens = start.tokens
        self.sentences = torch.arange(b, device=device)
        self.parents: Tensor | None = None
        self.moved = False
        self.total = self.chosen = torch.zeros(b, device=device)
        self.covered: Tensor | None = None

        # One entry per sentence that is not decided; `kept` are its n best finished hypotheses.
        self.active = self.sentences
        self.limits = start.limits
        self.counts = torch.ones_like(self.sentences)
        self.ends = torch.zeros_like(self.sentences)
        self.kept = torch.full((b, nbest), IMPOSSIBLE, device=device)

    def grow(
        self, position: int, log_probabilities: Float[Tensor, "n v"], weights: Weights
    ) -> None:
        """One step of all beams; afterwards the rows are the hypotheses to feed next."""
        self.history.add(StepRecord(self.tokens, self.parents, self.chosen, weights))
        if self.coverage is not None:
            self.covered = self.coverage.add(self.covered, self.parents, weights)
        self.penalties = self.penalties.to(log_probabilities.dtype)
        candidates = self.best_continuations(position, log_probabilities)
        possible = candidates.totals > IMPOSSIBLE
        if not possible[:, 0].all():
            raise ValueError(self.dead_end(position, candidates))
        last = candidates.tokens == self.start.eos
        ended, going = possible & last, possible & ~last
        if self.full:
            ended[:, self.width :] = False
            going &= going.cumsum(1) <= self.width
        if ended.any():
            values = self.end(position, ended, candidates, log_probabilities, finished=True)
            new = candidates.totals.new_full(ended.shape, IMPOSSIBLE).masked_scatter_(ended, values)
            self.kept = torch.cat([self.kept, new], 1).topk(self.kept.shape[1]).values
            self.ends = self.ends + ended.sum(1)
        # Before anything has ended and before any limit, no sentence can be decided.
        if self.history.ended or position + 1 >= self.start.shortest:
            best = candidates.totals.masked_fill(~going, IMPOSSIBLE).amax(1)
            truncated = going & (self.limits <= position + 1)[:, None]
            if truncated.any():
                self.end(position, truncated, candidates, log_probabilities, finished=False)
            going = going & ~self.decided(position, best)[:, None]
        self.keep(going, candidates, log_probabilities)

    def best_continuations(
        self, position: int, log_probabilities: Float[Tensor, "n v"]
    ) -> Candidates:
        """The best continuations of each sentence, over all its hypotheses at once."""
        totals_of_rows = self.total[:, None] + log_probabilities
        n, v = totals_of_rows.shape
        given = self.start.required(position, self.sentences)
        if given is not None:
            check_vocabulary(given.clamp(min=0), totals_of_rows)
            wanted = torch.arange(v, device=given.device) == given[:, None]
            totals_of_rows = totals_of_rows.where(wanted | (given < 0)[:, None], IMPOSSIBLE)
        m, slots = len(self.counts), int(self.counts.max())
        first = self.counts.cumsum(0) - self.counts
        # Sentences may have fewer rows than the fullest one has; empty slots make a rectangle of
        # them, [m · slots, v], where row i of a sentence moves to slot i of its own.
        if n < m * slots:
            shift = torch.arange(0, m * slots, slots, device=first.device) - first
            place = torch.arange(n, device=first.device) + shift.repeat_interleave(self.counts)
            empty = totals_of_rows.new_full((m * slots, v), IMPOSSIBLE)
            totals_of_rows = empty.index_copy_(0, place, totals_of_rows)
        # each hypothesis has one end, so that twice as many candidates have `width` without it
        most = 2 * self.width if self.full else self.width
        totals, index = best_candidates(totals_of_rows.view(m, slots * v), most, beams=slots)
        slot = torch.div(index, v, rounding_mode="floor")
        return Candidates(totals, index - slot * v, slot + first[:, None])

    def end(
        self,
        position: int,
        ending: Bool[Tensor, "m w"],
        candidates: Candidates,
        log_probabilities: Float[Tensor, "n v"],
        finished: bool,
    ) -> Float[Tensor, " e"]:
        """Store hypotheses that end here; returns their normalised log-probabilities."""
        totals, tokens, rows = candidates.select(ending)
        sentences = self.sentences[rows]
        values = totals / self.penalties[position + 1]
        if self.coverage is not None and self.covered is not None:
            values = values + self.coverage.penalty(self.covered[rows], sentences)
        chosen = log_probabilities[rows, tokens]
        flags = torch.full_like(rows, finished, dtype=torch.bool)
        self.history.ended.append(
            EndedHypotheses(
                step=position,
                sentences=sentences,
                rows=rows,
                tokens=tokens,
                token_log_probabilities=chosen,
                log_probabilities=totals,
                normalized_log_probabilities=values,
                finished=flags,
            )
        )
        return values

    def decided(self, position: int, best: Float[Tensor, " m"]) -> Bool[Tensor, " m"]:
        """Which sentences are decided, given the best total of their live hypotheses.

        A live hypothesis has at least one token to come, so its length will lie between
        position + 2 and its limit. Its total only falls. The length penalty is monotonic
        (`penalty_table` checks that), so total / penalty is largest at one of the two ends.
        """
        following = self.penalties[min(position + 2, self.start.longest)]
        bound = torch.maximum(best / following, best / self.penalties[self.limits])
        decided = (self.kept[:, -1] >= bound) | (self.limits <= position + 1)
        return decided if self.enough_ends is None else decided | (self.ends >= self.enough_ends)

    def keep(
        self,
        going: Bool[Tensor, "m w"],
        candidates: Candidates,
        log_probabilities: Float[Tensor, "n v"],
    ) -> None:
        """Make the chosen candidates the rows of the next step; sentences without any leave."""
        self.total, self.tokens, self.parents = candidates.select(going)
        self.chosen = log_probabilities[self.parents, self.tokens]
        sentences = self.sentences.index_select(0, self.parents)
        self.moved = not torch.equal(sentences, self.sentences)
        self.sentences = sentences
        counts = going.sum(1)
        left = counts > 0
        if not left.all():
            self.active, self.limits = self.active[left], self.limits[left]
            self.kept, self.ends, counts = self.kept[left], self.ends[left], counts[left]
        self.counts = counts

    def dead_end(self, position: int, candidates: Candidates) -> str:
        """Why a sentence cannot continue: a fault of the step, or an impossible prefix."""
        row = int((~(candidates.totals[:, 0] > IMPOSSIBLE)).nonzero()[0])
        sentence = int(self.active[row])
        if candidates.totals[row, 0].isnan():
            return f"the step returned NaN as a log-probability for sentence {sentence}"
        given = self.start.required(position, self.active)
        if given is not None and given[row] >= 0:
            return (
                f"token {int(given[row])} at position {position} of the prefix of sentence "
                f"{sentence} has probability zero"
            )
        return (
            f"no token has a probability above zero at position {position} of sentence {sentence}"
        )
