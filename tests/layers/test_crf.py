"""The CRF against the sum over all label sequences, written out."""

from itertools import pairwise, product

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.layers.crf import CRF, log_sum_exp

LABELS, BATCH, TIME = 3, 7, 5
LENGTHS = torch.tensor([5, 1, 0, 3, 2, 4, 5])


def field(labels: int = LABELS, **constraints: Tensor) -> CRF:
    crf = CRF(labels, **constraints).double()
    for parameter in crf.parameters():
        torch.nn.init.normal_(parameter)
    return crf


def forbidding() -> dict[str, Tensor]:
    """Label 2 may only follow 1 or 2 (as I-X after B-X or I-X), and nothing ends with 1."""
    allowed = torch.tensor([[True, True, False], [False, True, True], [True, True, True]])
    return {
        "allowed": allowed,
        "allowed_start": torch.tensor([True, True, False]),
        "allowed_end": torch.tensor([True, False, True]),
    }


def is_legal(sequence: tuple[int, ...], rules: dict[str, Tensor]) -> bool:
    if not rules or not sequence:
        return True
    follows = all(rules["allowed"][a, b] for a, b in pairwise(sequence))
    starts, ends = rules["allowed_start"][sequence[0]], rules["allowed_end"][sequence[-1]]
    return bool(follows and starts and ends)


def path_score(crf: CRF, emissions: Tensor, sequence: tuple[int, ...]) -> Tensor:
    score = emissions.new_zeros(())
    if not sequence:
        return score
    score = crf.start[sequence[0]] + crf.end[sequence[-1]]
    for step, label in enumerate(sequence):
        score = score + emissions[step, label]
        if step:
            score = score + crf.transitions[sequence[step - 1], label]
    return score


def enumerate_paths(
    crf: CRF, emissions: Tensor, length: int, rules: dict[str, Tensor]
) -> dict[tuple[int, ...], Tensor]:
    return {
        sequence: path_score(crf, emissions, sequence)
        for sequence in product(range(crf.labels), repeat=length)
        if is_legal(sequence, rules)
    }


def legal_tags(rules: dict[str, Tensor], padding: int = -100) -> Tensor:
    tags = torch.full((BATCH, TIME), padding)
    for row, length in enumerate(LENGTHS.tolist()):
        choices = [s for s in product(range(LABELS), repeat=length) if is_legal(s, rules)]
        tags[row, :length] = torch.tensor(choices[len(choices) // 2], dtype=torch.long)
    return tags


@pytest.fixture(params=["free", "constrained"])
def rules(request: pytest.FixtureRequest) -> dict[str, Tensor]:
    return forbidding() if request.param == "constrained" else {}


@pytest.fixture
def emissions() -> Tensor:
    return torch.randn(BATCH, TIME, LABELS, dtype=torch.float64, requires_grad=True)


def test_log_likelihood_and_gradients_equal_the_enumeration(
    rules: dict[str, Tensor], emissions: Tensor
) -> None:
    crf, tags = field(**rules), legal_tags(rules)
    inputs = (emissions, *crf.parameters())
    ours = crf.log_likelihood(emissions, tags, LENGTHS)
    theirs = []
    for row, length in enumerate(LENGTHS.tolist()):
        paths = enumerate_paths(crf, emissions[row], length, rules)
        total = torch.stack(list(paths.values())).logsumexp(0)
        theirs.append(paths[tuple(tags[row, :length].tolist())] - total)
    expected = torch.stack(theirs)
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(crf(emissions, tags, LENGTHS), expected)
    weights = torch.randn(BATCH, dtype=torch.float64)
    for a, b in zip(
        torch.autograd.grad(ours @ weights, inputs),
        torch.autograd.grad(expected @ weights, inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b)


def test_decode_finds_the_best_sequence(rules: dict[str, Tensor], emissions: Tensor) -> None:
    crf = field(**rules)
    decoded = crf.decode(emissions, LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        paths = enumerate_paths(crf, emissions[row], length, rules)
        best = max(paths, key=lambda sequence: paths[sequence].item())
        assert decoded.tags[row] == list(best)
        torch.testing.assert_close(decoded.potentials[row], paths[best].detach())


def test_marginals_equal_the_enumeration(rules: dict[str, Tensor], emissions: Tensor) -> None:
    crf = field(**rules)
    expected = torch.zeros(BATCH, TIME, LABELS, dtype=torch.float64)
    for row, length in enumerate(LENGTHS.tolist()):
        paths = enumerate_paths(crf, emissions[row], length, rules)
        probabilities = torch.stack(list(paths.values())).softmax(0).tolist()
        for sequence, probability in zip(paths, probabilities, strict=True):
            for step, label in enumerate(sequence):
                expected[row, step, label] += probability
    marginals = crf.marginals(emissions, LENGTHS)
    torch.testing.assert_close(marginals, expected)
    (gradient,) = torch.autograd.grad(crf.log_partition(emissions, LENGTHS).sum(), emissions)
    torch.testing.assert_close(marginals, gradient)


def test_gradcheck_once_and_twice(rules: dict[str, Tensor]) -> None:
    lengths = torch.tensor([4, 1, 0])
    crf, tags = field(**rules), legal_tags(rules)[[3, 1, 2], :4]
    if rules:
        tags[0] = torch.tensor([0, 1, 2, 0])
    else:
        tags[0, 3] = 1
    emissions = torch.randn(3, 4, LABELS, dtype=torch.float64, requires_grad=True)

    def likelihood(emissions: Tensor, *parameters: Tensor) -> Tensor:
        named = dict(zip(dict(crf.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(crf, named, (emissions, tags, lengths))

    inputs = (emissions, *crf.parameters())
    assert torch.autograd.gradcheck(likelihood, inputs)
    assert torch.autograd.gradgradcheck(likelihood, inputs)
    assert torch.autograd.gradcheck(lambda e: crf.marginals(e, lengths), (emissions,))


def test_padding_changes_nothing_even_nan(rules: dict[str, Tensor], emissions: Tensor) -> None:
    crf, tags = field(**rules), legal_tags(rules)
    beyond = torch.arange(TIME) >= LENGTHS[:, None]
    poisoned = emissions.detach().masked_fill(beyond[..., None], torch.nan).requires_grad_()
    loss = crf.log_likelihood(emissions, tags, LENGTHS)
    same = crf.log_likelihood(poisoned, tags, LENGTHS)
    torch.testing.assert_close(same, loss, rtol=0, atol=0)
    (gradient,) = torch.autograd.grad(loss.sum(), emissions)
    (poisoned_gradient,) = torch.autograd.grad(same.sum(), poisoned)
    torch.testing.assert_close(poisoned_gradient, gradient, rtol=0, atol=0)
    assert (poisoned_gradient[beyond] == 0).all()
    assert (crf.marginals(poisoned, LENGTHS)[beyond] == 0).all()
    assert crf.decode(poisoned, LENGTHS).tags == crf.decode(emissions, LENGTHS).tags
    for row, length in enumerate(LENGTHS.tolist()):
        alone = crf.log_likelihood(emissions[row : row + 1, :length], tags[row : row + 1, :length])
        torch.testing.assert_close(alone[0], loss[row])


def test_lengths_may_be_left_out_and_time_may_be_zero(emissions: Tensor) -> None:
    crf, tags = field(), torch.randint(LABELS, (BATCH, TIME))
    torch.testing.assert_close(
        crf.log_likelihood(emissions, tags),
        crf.log_likelihood(emissions, tags, torch.full((BATCH,), TIME)),
    )
    nothing = emissions[:, :0]
    assert crf.log_likelihood(nothing, tags[:, :0]).tolist() == [0.0] * BATCH
    assert crf.decode(nothing).tags == [[]] * BATCH
    assert crf.marginals(nothing).shape == (BATCH, 0, LABELS)
    assert crf.decode(emissions[:0]).tags == []


def test_forbidden_transitions_have_no_gradient_and_are_never_decoded() -> None:
    rules = forbidding()
    crf = field(**rules)
    with torch.no_grad():
        crf.transitions.masked_fill_(~rules["allowed"], 1e4)
    emissions = (5 * torch.randn(31, TIME, LABELS)).double()
    decoded = crf.decode(emissions).tags
    assert all(is_legal(tuple(tags), rules) for tags in decoded)
    assert crf.legal(torch.tensor(decoded)).all()
    crf.log_likelihood(emissions, torch.tensor(decoded)).sum().backward()
    assert crf.transitions.grad is not None
    assert crf.transitions.grad.isfinite().all()
    assert (crf.transitions.grad[~rules["allowed"]] == 0).all()
    marginals = crf.marginals(emissions)
    assert (marginals[:, 0, 2] == 0).all()
    assert (marginals[:, -1, 1] == 0).all()


def test_legal_says_which_sequences_the_constraints_allow() -> None:
    rules = forbidding()
    every = torch.tensor(list(product(range(LABELS), repeat=3)))
    expected = [is_legal(tuple(s), rules) for s in every.tolist()]
    assert CRF(LABELS, **rules).legal(every).tolist() == expected
    assert 0 < sum(expected) < len(expected)


def test_dead_ends_give_minus_infinity_and_zeros_not_nan() -> None:
    """No label of a sequence of length one may both begin and end it."""
    crf = field(
        2, allowed_start=torch.tensor([True, False]), allowed_end=torch.tensor([False, True])
    )
    emissions = torch.randn(2, 2, 2, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([1, 2])
    total = crf.log_partition(emissions, lengths)
    assert total[0] == -torch.inf
    assert total[1].isfinite()
    (gradient,) = torch.autograd.grad(total.sum(), emissions)
    assert (gradient[0] == 0).all()
    torch.testing.assert_close(gradient[1], torch.eye(2, dtype=torch.float64))
    marginals = crf.marginals(emissions, lengths)
    assert (marginals[0] == 0).all()
    (gradient,) = torch.autograd.grad(marginals.square().sum(), emissions)
    assert gradient.isfinite().all()
    with pytest.raises(ValueError, match=r"no label sequence of length 1 \(row 0\) is possible"):
        crf.decode(emissions, lengths)


def test_log_sum_exp_of_nothing_has_no_gradient() -> None:
    scores = torch.tensor([[-torch.inf, -torch.inf], [0.5, -torch.inf]], requires_grad=True)
    total = log_sum_exp(scores)
    assert total.tolist() == [-torch.inf, 0.5]
    total.sum().backward()
    assert scores.grad is not None
    assert scores.grad.tolist() == [[0, 0], [1, 0]]


def test_long_sequences_in_float32_and_bfloat16_stay_exact() -> None:
    crf = field().float()
    emissions = 10 * torch.randn(2, 997, LABELS)
    tags = torch.randint(LABELS, (2, 997))
    wide = CRF(LABELS).double()
    wide.load_state_dict(crf.state_dict())
    exact = wide.log_likelihood(emissions.double(), tags)
    torch.testing.assert_close(
        crf.log_likelihood(emissions, tags).double(), exact, rtol=1e-5, atol=0
    )
    rounded = emissions.bfloat16()
    ours = crf.log_likelihood(rounded, tags)
    assert ours.dtype == torch.float32
    exact = wide.log_likelihood(rounded.double(), tags)
    torch.testing.assert_close(ours.double(), exact, rtol=1e-5, atol=0)
    torch.testing.assert_close(
        crf.marginals(emissions).double(), wide.marginals(emissions.double()), rtol=0, atol=1e-5
    )


def test_without_transitions_the_field_is_a_softmax_at_every_step() -> None:
    emissions, tags = torch.randn(2, 11, LABELS), torch.randint(LABELS, (2, 11))
    expected = -torch.nn.functional.cross_entropy(
        emissions.flatten(0, 1), tags.flatten(), reduction="none"
    ).view(2, 11)
    torch.testing.assert_close(CRF(LABELS)(emissions, tags), expected.sum(1))
    torch.testing.assert_close(CRF(LABELS).marginals(emissions), emissions.softmax(-1))
    assert CRF(LABELS).decode(emissions).tags == emissions.argmax(-1).tolist()


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**31), st.floats(0.1, 50))
def test_marginals_sum_to_one_and_no_sequence_beats_the_best(
    labels: int, time: int, seed: int, scale: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    crf = field(labels)
    emissions = scale * torch.randn(2, time, labels, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(
        crf.marginals(emissions).sum(-1), torch.ones(2, time, dtype=torch.float64)
    )
    best = crf.decode(emissions)
    log_best = crf.log_likelihood(emissions, torch.tensor(best.tags))
    assert (log_best <= 1e-9).all()
    other = torch.randint(labels, (2, time), generator=generator)
    assert (crf.log_likelihood(emissions, other) <= log_best + 1e-9).all()
    torch.testing.assert_close(best.potentials - crf.log_partition(emissions), log_best)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the shape checks of the tests, which would answer first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("emissions", "tags", "lengths", "words"),
    [
        (
            (2, 5, 4),
            (2, 5),
            None,
            r"emissions must be \[batch, time, 3 labels\], got .*\(2, 5, 4\)",
        ),
        ((2, 3), (2, 3), None, r"emissions must be .* got shape \(2, 3\)"),
        ((2, 5, 3), (2, 4), None, r"tags must be \[batch, time\] = \(2, 5\).* got shape \(2, 4\)"),
        ((2, 5, 3), (2, 5), [5], r"lengths must be \[2\], one per sequence, got \(1,\)"),
        ((2, 5, 3), (2, 5), [5, 6], r"lengths must be from 0 to 5 steps, got \[5, 6\]"),
        ((2, 5, 3), (2, 5), [-1, 2], r"lengths must be from 0 to 5 steps, got \[-1, 2\]"),
    ],
)
def test_wrong_shapes_are_named(
    emissions: tuple[int, ...], tags: tuple[int, ...], lengths: list[int] | None, words: str
) -> None:
    given_lengths = None if lengths is None else torch.tensor(lengths)
    with pytest.raises(ValueError, match=words):
        CRF(3)(torch.zeros(emissions), torch.zeros(tags, dtype=torch.long), given_lengths)


@pytest.mark.usefixtures("unchecked")
def test_wrong_constraints_are_named() -> None:
    with pytest.raises(ValueError, match=r"allowed must be a bool tensor .*\(3, 3\), got .*\(3,\)"):
        CRF(3, allowed=torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"allowed_end must be a bool tensor.*got torch.float32"):
        CRF(3, allowed_end=torch.ones(3))
    with pytest.raises(ValueError, match="at least one label, got labels=0"):
        CRF(0)


def test_wrong_tags_are_named() -> None:
    crf, emissions = CRF(LABELS, **forbidding()), torch.zeros(2, 4, LABELS)
    tags = torch.tensor([[0, 1, 2, 0], [0, 0, 3, 1]])
    with pytest.raises(ValueError, match=r"tags\[1, 2\] = 3 is not a label: expected 0 to 2"):
        crf(emissions, tags)
    tags[1] = torch.tensor([0, 0, 2, 2])
    words = r"constraints forbid tags\[1, 2\] = 2 in the sequence \[0, 0, 2, 2\]: correct"
    with pytest.raises(ValueError, match=words):
        crf(emissions, tags)
    with pytest.raises(ValueError, match=r"forbid tags\[0, 1\] = 1 in the sequence \[0, 1\]"):
        crf(emissions, tags, torch.tensor([2, 2]))


def test_gradients_of_transitions_train_the_field_to_alternate() -> None:
    """Emissions say nothing; only the transitions can learn that labels alternate."""
    crf, emissions = CRF(2), torch.zeros(1, 6, 2)
    tags = torch.tensor([[0, 1, 0, 1, 0, 1]])
    optimizer = torch.optim.LBFGS(crf.parameters(), max_iter=20)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = -crf(emissions, tags).mean()
        value.backward()
        return value

    optimizer.step(loss)
    assert crf.decode(torch.zeros(1, 10, 2)).tags == [[0, 1] * 5]
