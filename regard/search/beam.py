"""Beam search: keep the best few hypotheses at each step, and stop when none can still win."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.search.hypotheses import Ended, Fed, History, Hypothesis
from regard.search.penalties import Coverage, LengthPenalty, penalty_table, unnormalised
from regard.search.ranking import IMPOSSIBLE, ranked
from regard.search.steps import (
    Limit,
    Look,
    Prefix,
    Start,
    Step,
    Weights,
    advance,
    prepare,
    reorder,
    within,
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
    length_penalty: LengthPenalty = unnormalised,
    coverage: Coverage | None = None,
    patience: float | None = None,
    prefix: Prefix | None = None,
    look: Look | None = None,
) -> list[list[Hypothesis]]:
    """The n best outputs that a beam finds for each sentence, best first.

    At each step all continuations of all live hypotheses are compared by log-probability and the
    best `width` are kept; those among them that end in the end token leave the beam, and the next
    step fills it again. Of equal continuations the lowest token, then the lowest beam goes first.
    Hypotheses cut off at the limit come after all finished ones.

    A sentence is over when no live hypothesis can still enter its n best: log-probabilities only
    fall, so a live one with log-probability l can reach l / lp(n) at most, over the lengths n that
    it may still get, and no coverage penalty is above zero. The result is the same as without
    stopping early. A number as `patience` stops sooner, once `patience` · `width` hypotheses are
    finished (Kasai et al. 2022, https://arxiv.org/abs/2204.05424), which may change it.
    """
    if not 1 <= nbest <= width:
        raise ValueError(f"a beam of width {width} gives 1 to {width} hypotheses, not {nbest}")
    if patience is not None and not patience > 0:
        raise ValueError(f"patience must be above 0, got {patience}")
    start = prepare(state, bos, eos, limit, prefix, look)
    if len(start.tokens) == 0:
        return []
    beams = Beams(start, width, nbest, length_penalty, coverage, patience)
    for position in range(start.longest):
        looks = start.looks(position, beams.sentences)
        log_probabilities, state, weights = advance(step, beams.tokens, state, looks)
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

    def chosen(self, mask: Bool[Tensor, "m w"]) -> tuple[Tensor, Tensor, Tensor]:
        """Totals, tokens and rows of some of the candidates, sentence by sentence."""
        places = mask.flatten().nonzero().squeeze(1)
        totals, tokens, rows = (field.flatten().index_select(0, places) for field in self)
        return totals, tokens, rows


class Beams:
    """The live hypotheses of all sentences that are not over: n rows for m sentences.

    Rows go sentence by sentence, `counts` of them for each, best first.
    """

    def __init__(
        self,
        start: Start,
        width: int,
        nbest: int,
        length_penalty: LengthPenalty,
        coverage: Coverage | None,
        patience: float | None,
    ) -> None:
        b, device = len(start.tokens), start.tokens.device
        self.start, self.width, self.coverage = start, width, coverage
        self.penalties = penalty_table(length_penalty, start.longest).to(device)
        self.enough = None if patience is None else patience * width
        self.history = History()

        self.tokens = start.tokens
        self.sentences = torch.arange(b, device=device)
        self.parents: Tensor | None = None
        self.moved = False
        self.total = self.chosen = torch.zeros(b, device=device)
        self.covered: Tensor | None = None

        self.active = self.sentences
        self.limits = start.limits
        self.counts = torch.ones_like(self.sentences)
        self.ends = torch.zeros_like(self.sentences)
        self.kept = torch.full((b, nbest), IMPOSSIBLE, device=device)

    def grow(
        self, position: int, log_probabilities: Float[Tensor, "n v"], weights: Weights
    ) -> None:
        """One step of all beams; afterwards the rows are the hypotheses to feed next."""
        self.history.add(Fed(self.tokens, self.parents, self.chosen, weights))
        if self.coverage is not None:
            self.covered = self.coverage.add(self.covered, self.parents, weights)
        self.penalties = self.penalties.to(log_probabilities.dtype)
        candidates = self.continued(position, log_probabilities)
        possible = candidates.totals > IMPOSSIBLE
        if not possible[:, 0].all():
            raise ValueError(self.complaint(position, candidates))
        last = candidates.tokens == self.start.eos
        ended, going = possible & last, possible & ~last
        if ended.any():
            scores = self.end(position, ended, candidates, log_probabilities, finished=True)
            new = candidates.totals.new_full(ended.shape, IMPOSSIBLE).masked_scatter_(ended, scores)
            self.kept = torch.cat([self.kept, new], 1).topk(self.kept.shape[1]).values
            self.ends = self.ends + ended.sum(1)
        # Before anything has ended and before any limit, no sentence can be over.
        if self.history.ended or position + 1 >= self.start.shortest:
            best = candidates.totals.masked_fill(~going, IMPOSSIBLE).amax(1)
            cut = going & (self.limits <= position + 1)[:, None]
            if cut.any():
                self.end(position, cut, candidates, log_probabilities, finished=False)
            going = going & ~self.over(position, best)[:, None]
        self.go_on(going, candidates, log_probabilities)

    def continued(self, position: int, log_probabilities: Float[Tensor, "n v"]) -> Candidates:
        """The best continuations of each sentence, over all its hypotheses at once."""
        scores = self.total[:, None] + log_probabilities
        n, v = scores.shape
        given = self.start.given(position, self.sentences)
        if given is not None:
            within(given.clamp(min=0), scores)
            wanted = torch.arange(v, device=given.device) == given[:, None]
            scores = scores.where(wanted | (given < 0)[:, None], IMPOSSIBLE)
        m, slots = len(self.counts), int(self.counts.max())
        first = self.counts.cumsum(0) - self.counts
        if n < m * slots:
            shift = torch.arange(0, m * slots, slots, device=first.device) - first
            place = torch.arange(n, device=first.device) + shift.repeat_interleave(self.counts)
            empty = scores.new_full((m * slots, v), IMPOSSIBLE)
            scores = empty.index_copy_(0, place, scores)
        totals, index = ranked(scores.view(m, slots * v), self.width, beams=slots)
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
        """Put hypotheses aside that go no further; their scores."""
        totals, tokens, rows = candidates.chosen(ending)
        sentences = self.sentences[rows]
        scores = totals / self.penalties[position + 1]
        if self.coverage is not None and self.covered is not None:
            scores = scores + self.coverage.penalty(self.covered[rows], sentences)
        chosen = log_probabilities[rows, tokens]
        flags = torch.full_like(rows, finished, dtype=torch.bool)
        self.history.ended.append(
            Ended(position, sentences, rows, tokens, chosen, totals, scores, flags)
        )
        return scores

    def over(self, position: int, best: Float[Tensor, " m"]) -> Bool[Tensor, " m"]:
        """Which sentences are over, given the best total of those hypotheses that go on."""
        following = self.penalties[min(position + 2, self.start.longest)]
        reach = torch.maximum(best / following, best / self.penalties[self.limits])
        over = (self.kept[:, -1] >= reach) | (self.limits <= position + 1)
        return over if self.enough is None else over | (self.ends >= self.enough)

    def go_on(
        self,
        going: Bool[Tensor, "m w"],
        candidates: Candidates,
        log_probabilities: Float[Tensor, "n v"],
    ) -> None:
        """Make the chosen candidates the rows of the next step; sentences without any leave."""
        self.total, self.tokens, self.parents = candidates.chosen(going)
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

    def complaint(self, position: int, candidates: Candidates) -> str:
        """Why a sentence cannot go on: the step's fault, or a prefix that is impossible."""
        row = int((~(candidates.totals[:, 0] > IMPOSSIBLE)).nonzero()[0])
        sentence = int(self.active[row])
        if candidates.totals[row, 0].isnan():
            return f"the step gave NaN as a log-probability for sentence {sentence}"
        given = self.start.given(position, self.active)
        if given is not None and given[row] >= 0:
            return (
                f"token {int(given[row])} at position {position} of the prefix of sentence "
                f"{sentence} has probability zero"
            )
        return (
            f"no token has a probability above zero at position {position} of sentence {sentence}"
        )
