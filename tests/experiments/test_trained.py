"""Experiments that train: what they generate and measure, and where their claims must fail."""

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.examples import AlignedPair
from regard.experiments import fitting
from regard.experiments.claims import Setting, over_seeds
from regard.experiments.fitting import (
    CausalTransformer,
    fit,
    next_symbol_loss,
    train_on_built_in_data,
)
from regard.experiments.trained import (
    beams,
    bottleneck,
    experts_routing,
    explanation,
    heads,
    induction,
    learned_alignments,
    lengths,
    link_errors,
    lookup_task,
    negation,
    other_weights,
    recall,
    score_scaling,
    sinks,
    span,
)


def test_fit_finds_a_minimum():
    layer = torch.nn.Linear(2, 1)
    losses = fit(layer, lambda: (layer(torch.ones(1, 2)) - 3).square().sum(), 150, 0.1)
    assert losses[-1] < 1e-3 * losses[0]


def test_each_size_has_runs_and_data_of_its_own(tmp_path):
    """A tiny run before does not change what is trained at another size in the same folder."""
    options = {"seed": 1, "steps": 1, "width": 8, "attention": "none"}
    run = train_on_built_in_data(Setting("tiny", tmp_path), "translation", "a", **options)
    assert run.folder.path == tmp_path / "runs/tiny/a"
    counts = {}
    for size in ("tiny", "default"):
        (path,) = fitting.data_files(Setting(size, tmp_path), "english_french")["data"]
        counts[size] = len(Path(path).read_text("utf-8").splitlines())
    assert counts == {"tiny": 100, "default": 8000}


def test_only_scored_symbols_count():
    logits = torch.zeros(1, 4, 3)
    logits[0, 1, 2] = 50.0  # right about the third symbol, which alone is scored
    scored = torch.tensor([[False, False, True, False]])
    assert float(next_symbol_loss(logits, torch.tensor([[0, 1, 2, 0]]), scored)) < 1e-6


def test_not_turns_the_label_round():
    words, labels, turned = negation.reviews(200)
    good = ((words >= negation.GOOD.start) & (words < negation.GOOD.stop)).any(1)
    assert ((words == negation.NOT).any(1) == turned).all()
    assert ((good ^ turned).long() == labels).all()


def test_a_sum_learns_reviews_without_not_but_cannot_learn_not():
    """Planted: without "not" in training and with it."""
    torch.manual_seed(0)
    without, _ = negation.accuracies(negation.POOLINGS["sum"], 200, negated=0.0)
    assert without > 0.95
    assert min(negation.accuracies(negation.POOLINGS["sum"], 200)) < 0.75
    solved = {name: [0.99, 0.98] for name in negation.POOLINGS}
    assert not negation.judge(solved)
    assert negation.judge(solved | {"sum": [0.5, 0.5], "mean": [0.5, 0.5]})


def test_the_second_half_of_a_repetition_is_predictable():
    symbols, scored = induction.repeated(5)
    half = symbols.shape[1] // 2
    assert (symbols[:, :half] == symbols[:, half:]).all()
    assert scored.sum(1).tolist() == [half - 1] * 5
    assert induction.judge([0.2, 0.3], [0.99, 0.97])
    assert not induction.judge([0.95, 0.95], [0.99, 0.97])
    assert not induction.judge([0.1, 0.1], [0.5, 0.5])


class Lookup(torch.nn.Module):
    """Planted: a head that looks exactly where an induction head must, and predicts from there."""

    def forward(self, symbols):
        same = torch.tril(symbols[:, :, None] == symbols[:, None, :], diagonal=-1)
        weights = torch.roll(same, 1, dims=2).float()
        return weights @ torch.nn.functional.one_hot(symbols, induction.SYMBOLS).float(), [
            weights[:, None]
        ]


def test_prefix_matching_of_a_perfect_head():
    assert induction.accuracy(Lookup()) == 1.0
    assert induction.prefix_matching(Lookup()) == pytest.approx(1.0)
    random = CausalTransformer(induction.SYMBOLS, 16, layers=1)
    assert induction.prefix_matching(random) < 0.5


def test_roles_of_a_perfect_head():
    (head,) = heads.roles(Lookup())
    assert head["the symbol after that"] == pytest.approx(1.0)
    assert [*head.values()][:3] == [0.0, 0.0, 0.0]
    shares = heads.roles(CausalTransformer(induction.SYMBOLS, 16, layers=2))
    assert len(shares) == 8
    assert all(0 < sum(one.values()) < 1 for one in shares)


def test_a_removed_head_comes_back():
    network = CausalTransformer(induction.SYMBOLS, 16, layers=1)
    before = heads.output_projection(network, 0).weight.detach().clone()
    heads.without_head(network, 0, 1, 4)
    torch.testing.assert_close(heads.output_projection(network, 0).weight.detach(), before)
    free, costly = [[0.0, 0.0, 0.0, 0.5]], [[0.3, 0.3, 0.3, 0.0]]
    assert heads.judge(free, [0.99])
    assert not heads.judge(costly, [0.99])
    assert not heads.judge(free, [0.1])  # a network that has learned nothing shows nothing


def test_lengths_are_judged_by_what_is_lost():
    trained = dict.fromkeys(lengths.KINDS, 1.0)
    kept = dict.fromkeys(lengths.KINDS, 0.99)
    assert lengths.judge(trained, kept | {"learned": 0.3})
    assert not lengths.judge(trained, kept)
    assert not lengths.judge(trained, kept | {"learned": 0.3, "recurrence": 0.5})
    assert not lengths.judge(trained | {"linear": 0.4}, kept | {"learned": 0.3, "linear": 0.4})
    symbols = torch.tensor([[9, 2, 8, 4, 15]])  # below 5 is marked
    assert lengths.latest(symbols).tolist() == [[-1, 2, 2, 4, 4]]


def test_what_an_expert_tells_about_the_regime():
    regime = torch.arange(experts_routing.REGIMES).repeat(50)
    assert experts_routing.shared_information(regime, regime) == pytest.approx(1.0)
    assert experts_routing.shared_information(torch.zeros_like(regime), regime) == 0.0
    half = experts_routing.shared_information(regime // 2, regime)  # by hand: 1 of 2 bits
    assert half == pytest.approx(0.5)
    assert not experts_routing.judge([0.1, 0.2])
    rows = experts_routing.routing_table((regime + regime % 2) % 4, regime).rows
    assert rows[0][1:] == ["100 %", "0 %", "0 %", "0 %"]
    assert rows[3][1:] == ["100 %", "0 %", "0 %", "0 %"]
    assert rows[1][1:] == ["0 %", "0 %", "100 %", "0 %"]


def test_both_sides_of_the_bottleneck_have_the_same_size():
    sizes = [
        sum(p.numel() for p in bottleneck.make(name).parameters()) for name in bottleneck.NAMES
    ]
    assert max(sizes) <= 1.03 * min(sizes)
    assert bottleneck.judge({"none": [0.5, 0.6], "additive": [0.0, 0.05]})
    assert not bottleneck.judge({"none": [0.1, 0.1], "additive": [0.1, 0.1]})
    source, _, right = bottleneck.pairs(2, 4, "copy")
    assert (right == source).all()
    source, target, right = bottleneck.pairs(2, 4, "reverse")
    assert (right == source.flip(1)).all()
    assert (target[:, 1:] == right[:, :-1]).all()


def test_other_weights_are_judged_with_the_uniform_baseline():
    def answers(right, shuffled, adversarial):
        return [explanation.Answer(right - d, shuffled, adversarial, None) for d in (0, 0.01)]

    found = {kind: answers(0.99, 0.1, 0.9) for kind in explanation.KINDS}
    assert explanation.judge(found)
    own, uniform = "softmax, in context", "uniform, in context"
    assert not explanation.judge(found | {own: answers(0.99, 0.6, 0.9)})
    assert not explanation.judge(found | {own: answers(0.99, 0.1, 0.2)})
    assert not explanation.judge(found | {uniform: answers(0.7, 0.0, 0.9)})
    words, labels, places = explanation.reviews(20)
    deciding = words[torch.arange(20), places]
    assert (deciding // explanation.OPINIONS == labels).all()


def test_divergence_of_weights_by_hand():
    one, other = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 0.5, 0.5])
    assert float(other_weights.divergence(one, one)) == pytest.approx(0, abs=1e-6)
    assert float(other_weights.divergence(one, other)) == pytest.approx(1, abs=1e-6)
    half = torch.tensor([0.5, 0.5, 0.0])  # mean .75, .25: (log2 4/3 + log2(2/3)/2 + log2(2)/2) / 2
    assert float(other_weights.divergence(one, half)) == pytest.approx(0.311278, abs=1e-5)


class Planted(torch.nn.Module):
    """A decision that depends on every weight, or on none."""

    def __init__(self, strength):
        super().__init__()
        self.strength = strength

    def forward(self, words, weights=None):
        place = torch.arange(1.0, words.shape[1] + 1)
        first = self.strength * (weights * (place - 1)).sum(-1)  # 0 only if all is on the first
        return torch.stack([first, torch.zeros_like(first)], -1), weights


def test_an_adversary_finds_other_weights_where_there_are_any():
    words, sharp = torch.zeros(20, 6, dtype=torch.long), torch.eye(6)[:1].repeat(20, 1)
    assert other_weights.adversarial_share(Planted(0.0), words, sharp, 60) == 1.0
    assert other_weights.adversarial_share(Planted(20.0), words, sharp, 60) == 0.0


def test_the_first_token_of_even_and_of_sunk_attention():
    even = np.tril(np.ones((9, 9))) / np.arange(1, 10)[:, None]
    assert sinks.head_shares(even) == pytest.approx((1.0, 1.0, 0.0))
    sunk = np.zeros((9, 9))
    sunk[:, 0] = 1.0
    assert sinks.head_shares(sunk).first == pytest.approx(np.mean(np.arange(5, 10)))
    emptied = np.hstack([np.ones((9, 1)), np.zeros((9, 9))])  # all weight on an empty key
    assert sinks.head_shares(emptied) == pytest.approx((0.0, 0.0, 1.0))
    assert sinks.judge([4.0, 4.1])
    assert not sinks.judge([1.0, 1.1])


def test_an_empty_key_is_one_more_column_and_reads_nothing():
    network = CausalTransformer(9, 8, layers=1, heads=2, empty_key=True, positions="none")
    symbols = torch.randint(9, (3, 5))
    logits, (weights,) = network(symbols)
    assert weights.shape == (3, 2, 5, 6)
    assert (weights[:, :, 0, 2:] == 0).all()  # the first query has itself and the empty key
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 2, 5))
    changed = network(torch.cat([symbols[:, :4], (symbols[:, 4:] + 1) % 9], 1))[0]
    torch.testing.assert_close(changed[:, :4], logits[:, :4])
    with torch.no_grad():  # drawn to the empty key, all queries read zero and know no context
        network.blocks[0].own.query.weight.zero_()
        network.blocks[0].own.query.bias.fill_(1.0)
        network.empty_keys[0].fill_(50.0)
    alone = network(symbols[:, 4:])[0]
    torch.testing.assert_close(network(symbols)[0][:, 4:], alone)


def test_scaling_is_what_keeps_the_gradient():
    unscaled, scaled = (score_scaling.entropy_and_gradient(1024, t)[0] for t in (1.0, 32.0))
    assert unscaled < 1 < 3.5 < scaled <= 5
    assert score_scaling.entropy_and_gradient(64, 1e6)[0] == pytest.approx(5)  # 32 even keys
    flat = {(s, d): [0.2, 0.21, 0.2] for s in ("dot", "scaled_dot") for d in (4, 256)}
    assert not score_scaling.judge(flat, 4, 256)
    assert score_scaling.judge(flat | {("dot", 256): [0.05, 0.05, 0.051]}, 4, 256)


def test_only_a_score_that_reads_keys_can_look_up():
    key, keys, values, right = lookup_task.lookups(7)
    assert (values[keys == key[:, None]] == right).all()
    assert lookup_task.lookup_accuracy("scaled_dot", 300) > 0.9
    assert lookup_task.lookup_accuracy("location", 300) < 0.5


def test_what_is_held_for_the_backward_pass_is_counted_once():
    numbers = torch.ones(1000, requires_grad=True)
    assert lookup_task.held_for_backward(lambda: numbers.exp()) == 4000
    assert lookup_task.held_for_backward(lambda: numbers * numbers) == 4000
    assert lookup_task.held_for_backward(lambda: numbers + 1) == 0


def test_distance_of_the_weight():
    back = np.eye(6, k=-2)
    assert span.mean_distance(back) == pytest.approx(2.0)
    assert span.mean_distance(np.eye(6)) == 0.0
    assert span.weight_by_distance(back, 4) == pytest.approx([0, 0, 1, 0])
    extended = np.array([[0.25, 0.25, 0.5, 0.0], [0.0, 0.25, 0.25, 0.5]])  # two keys before
    assert span.weight_by_distance(extended, 3) == pytest.approx([0.5, 0.25, 0.25])
    assert span.judge([10.0, 10.0], [9.9, 9.8])
    assert not span.judge([10.0, 10.0], [5.0, 5.0])


def test_symbols_are_counted_by_length():
    lines = [
        {"source": "1 2", "target": "1 2", "predicted": "1 3"},
        {"source": "1 2 3", "target": "1 2 3", "predicted": "1 2 3"},
    ]
    assert recall.problem_length("a 1 b 2 ? a") == 2
    assert recall.accuracy(lines, range(2, 3)) == 0.5
    assert recall.accuracy(lines, range(2, 4)) == 0.8
    high, low = over_seeds([0.9]), over_seeds([0.4])
    assert recall.judge({"memory": high, "LSTM": low, "transformer": low})
    assert not recall.judge({"memory": low, "LSTM": low, "transformer": high})


def test_beams_are_judged_by_quality_and_length():
    assert beams.judge([(30.0, 1.0)], [(29.0, 0.95)])
    assert not beams.judge([(30.0, 1.0)], [(33.0, 0.95)])
    assert not beams.judge([(30.0, 1.0)], [(30.0, 1.1)])


def test_alignments_of_planted_weights():
    """Planted: weights on the known links, and weights on none of them."""
    pairs = [AlignedPair("a b c", "x y z", links=((0, 0), (1, 2), (2, 1)))]
    right = np.eye(3)[[0, 2, 1]]
    gold = link_errors.gold_links(pairs)
    error, entropy = link_errors.error_and_entropy([right], gold)
    assert (error, entropy) == (0.0, pytest.approx(0.0, abs=1e-9))
    wrong, bits = link_errors.error_and_entropy([np.full((3, 3), 1 / 3)], gold)
    assert wrong == pytest.approx(2 / 3)  # of three links to the first word one is right
    assert bits == pytest.approx(np.log2(3))
    diagonal, _ = link_errors.error_and_entropy(link_errors.diagonal(pairs), gold)
    assert diagonal == pytest.approx(2 / 3)
    learned = {score: [0.1, 0.12] for score in learned_alignments.SCORES}
    assert learned_alignments.judge(learned, diagonal)
    assert not learned_alignments.judge(learned | {"dot": [0.6, 0.65]}, diagonal)
    assert learned_alignments.judge(learned | {"location": [0.9, 0.9]}, diagonal)
