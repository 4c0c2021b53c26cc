"""Linear-chain conditional random field: a distribution over whole label sequences."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


class BestTags(NamedTuple):
    """The most probable label sequence of every input, and its s(x, y)."""

    tags: list[list[int]]
    potentials: Float[Tensor, " b"]
    """s(x, y), the log-probability before log Z is subtracted."""


class CRF(nn.Module):
    """Potentials of neighbouring labels on top of the emissions of a network.

        log p(y | x) = s(x, y) − log Z(x)
        s(x, y) = start[y₁] + Σₜ emissions[t, yₜ] + Σₜ transitions[yₜ₋₁, yₜ] + end[y_T]

    The partition Z(x) sums over all sequences of the same length by the forward algorithm; it is
    exact. The empty sequence has s = 0 and, being the only one of its length, probability 1.
    All three tables start at zero, where the field is an independent softmax at every step.

    `allowed[i, j]` says whether label j may follow label i; `allowed_start[i]` and
    `allowed_end[i]` whether a sequence may begin or end with i. What is forbidden has probability
    zero and no gradient. Constraints are arguments, not weights: the state dict has none of them.

    Lafferty, McCallum & Pereira 2001, https://repository.upenn.edu/cis_papers/159;
    on a recurrent tagger: Lample et al. 2016, https://arxiv.org/abs/1603.01360.

    >>> field = CRF(2, allowed=torch.tensor([[True, False], [True, True]]))
    >>> emissions = torch.tensor([[[3.0, 1.0], [0.0, 2.5]]])
    >>> field.decode(emissions).tags
    [[1, 1]]
    """

    allowed: Tensor | None
    allowed_start: Tensor | None
    allowed_end: Tensor | None

    def __init__(
        self,
        labels: int,
        *,
        allowed: Bool[Tensor, "l l"] | None = None,
        allowed_start: Bool[Tensor, " l"] | None = None,
        allowed_end: Bool[Tensor, " l"] | None = None,
    ) -> None:
        super().__init__()
        if labels < 1:
            raise ValueError(f"a CRF needs at least one label, got labels={labels}")
        _check_constraint("allowed", allowed, (labels, labels))
        _check_constraint("allowed_start", allowed_start, (labels,))
        _check_constraint("allowed_end", allowed_end, (labels,))
        self.labels = labels
        self.transitions = nn.Parameter(torch.zeros(labels, labels))
        self.start = nn.Parameter(torch.zeros(labels))
        self.end = nn.Parameter(torch.zeros(labels))
        self.register_buffer("allowed", allowed, persistent=False)
        self.register_buffer("allowed_start", allowed_start, persistent=False)
        self.register_buffer("allowed_end", allowed_end, persistent=False)

    def forward(
        self,
        emissions: Float[Tensor, "b t l"],
        tags: Int[Tensor, "b t"],
        lengths: Int[Tensor, " b"] | None = None,
    ) -> Float[Tensor, " b"]:
        """The same as `log_likelihood`."""
        return self.log_likelihood(emissions, tags, lengths)

    def log_likelihood(
        self,
        emissions: Float[Tensor, "b t l"],
        tags: Int[Tensor, "b t"],
        lengths: Int[Tensor, " b"] | None = None,
    ) -> Float[Tensor, " b"]:
        """log p(tags | emissions) of each sequence; its negative mean is the loss to train with.

        What stands beyond a sequence's length, in emissions or tags, has no influence. Tags that
        the constraints forbid are a ValueError that names the place (see `legal`):
        their log-likelihood is −∞, which no training step could change.
        """
        emissions, real = self._prepare(emissions, lengths)
        tags = self._real_tags(tags, real)
        self._refuse_forbidden(tags, real)
        return self._potential(emissions, tags, real) - self._log_partition(emissions, real)

    def log_partition(
        self, emissions: Float[Tensor, "b t l"], lengths: Int[Tensor, " b"] | None = None
    ) -> Float[Tensor, " b"]:
        """log Z: the log of Σ exp s(x, y) over all allowed label sequences.

        −∞, with no gradient, where the constraints leave no sequence of that length.
        """
        return self._log_partition(*self._prepare(emissions, lengths))

    def marginals(
        self, emissions: Float[Tensor, "b t l"], lengths: Int[Tensor, " b"] | None = None
    ) -> Float[Tensor, "b t l"]:
        """p(yₜ = l | x) for every step, by the forward–backward algorithm; zeros beyond the length.

        The softmax over l of α + β equals exp(α + β − log Z), and sums to one after rounding too.
        """
        emissions, real = self._prepare(emissions, lengths)
        if emissions.shape[1] == 0:
            return emissions
        (alphas, _), betas = self._alphas(emissions, real), self._betas(emissions, real)
        joint = torch.stack(alphas, 1) + torch.stack(betas, 1)
        possible = real[..., None] & (joint > -torch.inf).any(-1, keepdim=True)
        return torch.where(possible, joint, 0).softmax(-1) * possible

    @torch.no_grad()
    def decode(
        self, emissions: Float[Tensor, "b t l"], lengths: Int[Tensor, " b"] | None = None
    ) -> BestTags:
        """The most probable allowed label sequences, by Viterbi's algorithm.

        Viterbi 1967, https://doi.org/10.1109/TIT.1967.1054010.
        """
        emissions, real = self._prepare(emissions, lengths)
        batch, time, _ = emissions.shape
        if time == 0:
            return BestTags([[] for _ in range(batch)], emissions.new_zeros(batch))
        best, pointers = self._best_prefixes(emissions, real)
        potentials, last = (best + self._allowed_end(best.dtype)).max(-1)
        potentials = torch.where(real[:, 0], potentials, 0)
        counts = real.sum(1).tolist()
        _refuse_impossible(potentials, counts)
        # Follow the pointers back from the best last label, for all sequences at once.
        path = [last]
        for previous in reversed(pointers):
            path.append(previous.gather(1, path[-1][:, None])[:, 0])
        tags = torch.stack(path[::-1], 1).tolist()
        return BestTags([row[:n] for row, n in zip(tags, counts, strict=True)], potentials)

    def legal(
        self, tags: Int[Tensor, "b t"], lengths: Int[Tensor, " b"] | None = None
    ) -> Bool[Tensor, " b"]:
        """Whether the constraints allow each of these tag sequences."""
        real = _real_steps(lengths, tags)
        return ~self._forbidden_steps(self._real_tags(tags, real), real).any(1)

    def _log_partition(self, emissions: Tensor, real: Tensor) -> Tensor:
        if emissions.shape[1] == 0:
            return emissions.new_zeros(emissions.shape[0])
        alphas, taken = self._alphas(emissions, real)
        total = log_sum_exp(alphas[-1] + self._allowed_end(emissions.dtype)) + taken
        return torch.where(real[:, 0], total, 0)

    def _alphas(self, emissions: Tensor, real: Tensor) -> tuple[list[Tensor], Tensor]:
        """α[t, j] = log Σ exp s over all prefixes that end with label j at step t.

        Each has its maximum over j subtracted, since α grows with t and would lose its last
        digits; the second result is the sum of those maxima, which log Z needs back. After the
        end of a sequence (`here` is False) its α stays as it is, so that the last one is that of
        its own last step.
        """
        into = self._allowed_transitions(emissions.dtype).t()
        # unbind, not one index per step: the gradient of each index is as large as emissions.
        first, *later = emissions.unbind(1)
        alpha, taken = _centre(self._allowed_start(emissions.dtype) + first)
        alphas = [alpha]
        for emission, here in zip(later, real.unbind(1)[1:], strict=True):
            reached = log_sum_exp(alpha[:, None, :] + into) + emission
            alpha, peak = _centre(torch.where(here[:, None], reached, alpha))
            taken = taken + peak
            alphas.append(alpha)
        return alphas, taken

    def _betas(self, emissions: Tensor, real: Tensor) -> list[Tensor]:
        """β[t, i] = log Σ exp s over all continuations of label i at step t, less its maximum.

        Computed backward. Steps after the end of a sequence have the β of an ending, so that the
        recursion starts anew at the sequence's own last step.
        """
        onto = self._allowed_transitions(emissions.dtype)
        beta = ending = self._allowed_end(emissions.dtype).expand_as(emissions[:, 0])
        betas = [ending]
        steps = zip(emissions.unbind(1)[1:], real.unbind(1)[1:], strict=True)
        for emission, here in reversed(list(steps)):
            onward = log_sum_exp(onto + (emission + beta)[:, None, :])
            beta, _ = _centre(torch.where(here[:, None], onward, ending))
            betas.append(beta)
        return betas[::-1]

    def _best_prefixes(self, emissions: Tensor, real: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The recursion of α with max in place of the sum, and the label of each maximum.

        After the end of a sequence every label points to itself, so that tracing back from the
        last step arrives unchanged at the sequence's own last label.
        """
        into = self._allowed_transitions(emissions.dtype).t()
        first, *later = emissions.unbind(1)
        best = self._allowed_start(emissions.dtype) + first
        itself = torch.arange(self.labels, device=emissions.device).expand_as(best)
        pointers = []
        for emission, here in zip(later, real.unbind(1)[1:], strict=True):
            reached, source = (best[:, None, :] + into).max(-1)
            best = torch.where(here[:, None], reached + emission, best)
            pointers.append(torch.where(here[:, None], source, itself))
        return best, pointers

    def _potential(self, emissions: Tensor, tags: Tensor, real: Tensor) -> Tensor:
        """s(x, y) of sequences that the constraints allow."""
        if emissions.shape[1] == 0:
            return emissions.new_zeros(emissions.shape[0])
        dtype = emissions.dtype
        emitted = emissions.gather(2, tags[..., None])[..., 0].sum(1)
        moves = self.transitions.to(dtype)[tags[:, :-1], tags[:, 1:]]
        moved = torch.where(real[:, 1:], moves, 0).sum(1)
        last = tags.gather(1, (real.sum(1, keepdim=True) - 1).clamp(min=0))[:, 0]
        ends = self.start.to(dtype)[tags[:, 0]] + self.end.to(dtype)[last]
        return torch.where(real[:, 0], emitted + moved + ends, 0)

    def _allowed_transitions(self, dtype: torch.dtype) -> Tensor:
        return _forbid(self.transitions.to(dtype), self.allowed)

    def _allowed_start(self, dtype: torch.dtype) -> Tensor:
        return _forbid(self.start.to(dtype), self.allowed_start)

    def _allowed_end(self, dtype: torch.dtype) -> Tensor:
        return _forbid(self.end.to(dtype), self.allowed_end)

    def _prepare(self, emissions: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Emissions in float32 or wider and zero beyond the lengths, and which steps are real."""
        if emissions.dim() != 3 or emissions.shape[2] != self.labels:
            raise ValueError(
                f"emissions must be [batch, time, {self.labels} labels], "
                f"got shape {tuple(emissions.shape)}"
            )
        real = _real_steps(lengths, emissions)
        emissions = emissions.to(torch.promote_types(emissions.dtype, torch.float32))
        return torch.where(real[..., None], emissions, 0), real

    def _real_tags(self, tags: Tensor, real: Tensor) -> Tensor:
        """Tags, with 0 for whatever padding was used beyond the lengths."""
        if tags.shape != real.shape:
            raise ValueError(
                f"tags must be [batch, time] = {tuple(real.shape)} like the emissions, "
                f"got shape {tuple(tags.shape)}"
            )
        tags = torch.where(real, tags, 0).long()
        wrong = (tags < 0) | (tags >= self.labels)
        if wrong.any():
            row, step = wrong.nonzero()[0].tolist()
            raise ValueError(
                f"tags[{row}, {step}] = {tags[row, step].item()} is not a label: "
                f"expected 0 to {self.labels - 1} within the sequence's length"
            )
        return tags

    def _forbidden_steps(self, tags: Tensor, real: Tensor) -> Tensor:
        """[b t]: where a label may not begin the sequence, follow the one before it or end it."""
        forbidden = torch.zeros_like(real)
        last = real & ~F.pad(real, (0, 1))[:, 1:]
        if self.allowed_start is not None:
            forbidden[:, :1] |= ~self.allowed_start[tags[:, :1]]
        if self.allowed is not None:
            forbidden[:, 1:] |= ~self.allowed[tags[:, :-1], tags[:, 1:]]
        if self.allowed_end is not None:
            forbidden |= last & ~self.allowed_end[tags]
        return forbidden & real

    def _refuse_forbidden(self, tags: Tensor, real: Tensor) -> None:
        forbidden = self._forbidden_steps(tags, real)
        if forbidden.any():
            row, step = forbidden.nonzero()[0].tolist()
            sequence = tags[row, real[row]].tolist()
            raise ValueError(
                f"the constraints forbid tags[{row}, {step}] = {sequence[step]} in the sequence "
                f"{sequence[: step + 2]}{'…' if step + 2 < len(sequence) else ''}: correct the "
                "tags or loosen allowed, allowed_start or allowed_end"
            )


def log_sum_exp(values: Float[Tensor, "*b l"]) -> Float[Tensor, "*b"]:
    """log Σ exp over the last axis; −∞ with a zero gradient where all values are −∞."""
    total: Tensor = _LogSumExp.apply(values)  # type: ignore[no-untyped-call]
    return total


class _LogSumExp(torch.autograd.Function):
    """torch.logsumexp has the same values, and a gradient of NaN for a row of −∞."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        total = torch.logsumexp(values, -1)
        ctx.save_for_backward(values, total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        values, total = ctx.saved_tensors
        finite = total.masked_fill(total == -torch.inf, 0)
        share: Tensor = (values - finite[..., None]).exp()
        return gradient[..., None] * share


def _centre(values: Tensor) -> tuple[Tensor, Tensor]:
    """Values [b l] less their maximum, and that maximum: 0 where all values are −∞."""
    peak = values.detach().amax(-1)
    peak = peak.masked_fill(peak == -torch.inf, 0)
    return values - peak[:, None], peak


def _forbid(potentials: Tensor, allowed: Tensor | None) -> Tensor:
    return potentials if allowed is None else potentials.masked_fill(~allowed, -torch.inf)


def _real_steps(lengths: Tensor | None, like: Tensor) -> Tensor:
    """[b t]: True within the lengths; everywhere if there are none."""
    batch, time = like.shape[:2]
    if lengths is None:
        return torch.ones(batch, time, dtype=torch.bool, device=like.device)
    if lengths.shape != (batch,):
        raise ValueError(f"lengths must be [{batch}], one per sequence, got {tuple(lengths.shape)}")
    if batch and not 0 <= int(lengths.min()) <= int(lengths.max()) <= time:
        raise ValueError(f"lengths must be from 0 to {time} steps, got {lengths.tolist()}")
    return torch.arange(time, device=like.device) < lengths.to(like.device)[:, None]


def _refuse_impossible(potentials: Tensor, lengths: list[int]) -> None:
    impossible = (potentials == -torch.inf).nonzero().flatten().tolist()
    if impossible:
        row = impossible[0]
        raise ValueError(
            f"no label sequence of length {lengths[row]} (row {row}) is possible: loosen allowed, "
            "allowed_start or allowed_end, or look for −∞ in the emissions"
        )


def _check_constraint(name: str, allowed: Tensor | None, shape: tuple[int, ...]) -> None:
    if allowed is None:
        return
    if allowed.dtype != torch.bool or allowed.shape != shape:
        raise ValueError(
            f"{name} must be a bool tensor (True = allowed) of shape {shape}, "
            f"got {allowed.dtype} of shape {tuple(allowed.shape)}"
        )
