"""The faithfulness report, on models whose attention is right or wrong by construction."""

from pathlib import Path

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data import Labels
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.errors import RegardError
from regard.inference.explain.faithfulness import faithfulness, kendall_tau, verdict
from regard.inference.explain.perturbation import (
    erase_by,
    perturb_attention,
    select_outputs,
    sum_over_words,
)
from regard.inference.explain.targets import make_target
from regard.inference.run import Run
from regard.layers import MemoryAttention, Pooling
from regard.metrics import Comparison, Measurement
from regard.models import ClassifierConfig
from regard.tasks.classification.task import Classification
from regard.training import RunFolder
from tests.inference.explain.explained import MODELS, TEXT, make_run

FILLERS = ["the", "film", "plot", "was", "long", "and", "so"]


def texts(count=24, seed=0):
    """Six fillers and one word that decides."""
    drawn = np.random.default_rng(seed)
    found = []
    for i in range(count):
        words = [*drawn.choice(FILLERS[1:], 6), "the"]
        words[drawn.integers(6)] = ["dreadful", "lovely"][i % 2]
        found.append(" ".join(words))
    return found


def looking_at(seen):
    """A classifier of two-number words, (opinion, salience), whose one query asks for salience.

    Its label depends on opinion alone: weights are right where the words that have one are the
    salient ones.
    """
    tokenizer = Tokenizer.train("word", [" ".join([*FILLERS, "dreadful", "lovely"])])
    config = ClassifierConfig(width=2, encoder="none", pooling="fixed", dropout=0.0)
    task = Classification(config, tokenizer, Labels.of(["-", "+"]), 50)
    model = task.build().eval()
    names = tokenizer.vocabulary()
    plus = task.labels.number("+")
    with torch.no_grad():
        for i, name in enumerate(names):
            opinion = {"lovely": 1.0, "dreadful": -1.0}.get(name, 0.0)
            word = torch.tensor([opinion, 2.0 * (name in seen)])
            model.inputs.words.weight[i] = word / model.inputs.scale
        model.pooling.queries[0] = torch.tensor([0.0, 1.0])
        model.decision.weight.zero_()
        model.decision.weight[plus, 0], model.decision.weight[1 - plus, 0] = 6.0, -6.0
        model.decision.bias.zero_()
    return Run("classify", RunFolder(Path("nowhere")), task, model, None)


def test_the_report_tells_right_attention_from_irrelevant():
    right = faithfulness(looking_at({"lovely", "dreadful"}), texts(), shuffles=3)
    wrong = faithfulness(looking_at({"the"}), texts(), shuffles=3)
    assert right.verdict.startswith("Attention names words that matter: erasing them changes")
    assert right.against["random"].low > 0
    assert right.agreement["gradient × input"].value > 0.9
    # what draws weight away matters too, by taking it from the word that decides
    assert 0 < wrong.agreement["gradient × input"].value < 0.9
    assert right.sufficiency["attention"].value < 0.05
    # what is erased is a filler, which leaves more weight for the word that decides
    assert wrong.verdict.startswith("Attention names words that matter less than others")
    assert wrong.against["random"].high < 0
    for found in (right, wrong):
        assert found.comprehensiveness["integrated gradients"].value > 0
        assert found.texts == found.outputs == 24
    # moved to another word, the weight that was on the right one is on a filler
    assert right.distance["shuffled"].value > wrong.distance["shuffled"].value
    assert right.flips["shuffled"].value == 0  # some weight stays, and its sign decides


def test_erasure_is_the_mean_over_proportions_by_hand():
    run = looking_at({"lovely", "dreadful"})
    target = make_target(run, "lovely film plot long so")
    order = np.array([0, 3, 1, 2, 4])
    found = erase_by(target, [{"given": [order]}], [0.2, 0.5])[0]["given"]

    def chance(*words):
        weights = np.exp([2.0 * (word == "lovely") for word in words])
        opinion = (weights / weights.sum()) @ [float(word == "lovely") for word in words]
        return 1 / (1 + np.exp(-12 * opinion))

    whole = chance("lovely", "film", "plot", "long", "so")
    without = [chance("film", "plot", "long", "so"), chance("plot", "so")]
    alone = [chance("lovely"), chance("lovely", "film", "long")]
    assert found.comprehensiveness == pytest.approx(whole - np.mean(without), abs=1e-6)
    assert found.sufficiency == pytest.approx(whole - np.mean(alone), abs=1e-6)


def test_outputs_together_equal_each_by_itself():
    target = make_target(looking_at({"lovely"}), "lovely film plot long so")
    twice = select_outputs(target, [0, 0])
    rankings = [{"given": [np.array([4, 1, 0, 2, 3])]}, {"given": [np.array([0, 1, 2, 3, 4])]}]
    together = erase_by(twice, rankings, [0.2, 0.5])
    for found, ranking in zip(together, rankings, strict=True):
        (by_itself,) = erase_by(target, [ranking], [0.2, 0.5])
        assert found["given"] == pytest.approx(by_itself["given"], abs=1e-6)


def test_uniform_attention_by_hand():
    target = make_target(looking_at({"lovely"}), "lovely film plot")
    found = perturb_attention(target, 3, torch.Generator().manual_seed(0))["uniform"]
    before = 1 / (1 + np.exp(-12 * np.exp(2) / (np.exp(2) + 2)))
    assert found.distance == pytest.approx(before - 1 / (1 + np.exp(-4)), abs=1e-6)
    assert found.flips == 0


def test_pieces_of_a_word_are_erased_together():
    pieces = Tokenizer.train("bpe", ["ab ab cd cd abcd"], size=300)
    run = make_run(MODELS["gru"])
    task = Classification(run.task.config, pieces, run.task.labels, 50)
    run = Run("classify", run.folder, task, task.build().eval(), None)
    target = make_target(run, "abxycd cd")
    assert target.tokens > 2
    assert set(target.units) == {0, 1}
    sums = sum_over_words(target, 0, np.arange(target.tokens, dtype=np.float64))
    first = int((target.units == 0).sum())
    assert sums.tolist() == [sum(range(first)), sum(range(first, target.tokens))]


@pytest.mark.parametrize(
    "kind", ["recurrent translator", "transformer translator", "transformer language", "lookback"]
)
def test_every_task_has_a_report(kind):
    run = make_run(MODELS[kind])
    found = faithfulness(run, [TEXT, "x", "", "one who sleeps"], positions=1, shuffles=2)
    assert found.texts == found.outputs == 2
    assert "attention" in found.comprehensiveness
    assert {"shuffled", "uniform"} == set(found.flips)
    assert found.verdict == "2 texts are not enough for a verdict: 10 or more are needed."


def test_a_model_without_attention_is_named():
    blind = faithfulness(make_run(MODELS["lstm tagger"]), [TEXT] * 10, positions=2)
    assert blind.verdict.startswith("The model has no attention over the input")
    assert not blind.flips
    alike = faithfulness(make_run(MODELS["sum"]), [TEXT] * 10, positions=2)
    assert alike.verdict.startswith("Attention is the same for all words")
    with pytest.raises(RegardError, match="no text of two words or more"):
        faithfulness(make_run(MODELS["sum"]), ["", "bird"])
    with pytest.raises(ValueError, match="lie between 0 and 1"):
        faithfulness(make_run(MODELS["sum"]), [TEXT], proportions=[1.5])


def test_the_attention_next_to_the_output_is_shuffled():
    def output_attention(kind):
        return make_target(make_run(MODELS[kind]), TEXT).output_attention

    assert [type(module) for module in output_attention("blocks")] == [Pooling]
    assert [type(module) for module in output_attention("luong")] == [MemoryAttention]
    target = make_target(make_run(MODELS["transformer translator"]), TEXT)
    crossing = tuple(block.source for block in target.network.decoder.stack.blocks)
    assert target.output_attention == crossing
    assert output_attention("sum") == ()


def test_a_target_with_fewer_outputs():
    target = make_target(make_run(MODELS["recurrent translator"]), TEXT)
    one = select_outputs(target, [1])
    assert (one.positions, one.chosen) == ((1,), target.chosen[1:2])
    assert one.visible.shape == (1, 6)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=9))
def test_kendall_tau_is_that_of_scipy(pairs):
    left, right = np.array(pairs, dtype=np.float64).T
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert np.isnan(kendall_tau(left, right))
        return
    expected = scipy.stats.kendalltau(left, right).statistic
    assert kendall_tau(left, right) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("against_random", "against_gradient", "words"),
    [
        ((0.1, 0.2), (-0.2, -0.1), "more than erasing random ones (0.31 against 0.12), but less"),
        ((0.1, 0.2), (-0.1, 0.1), "random ones (0.31 against 0.12), and about as much as those"),
        ((0.1, 0.2), (0.1, 0.2), "random ones (0.31 against 0.12), and more than those"),
        ((-0.1, 0.2), (-0.1, 0.1), "does not change the output measurably more than erasing"),
        ((-0.2, -0.1), (-0.2, -0.1), "less than erasing random ones (0.31 against 0.12)"),
    ],
)
def test_the_verdict_follows_the_intervals(against_random, against_gradient, words):
    def measured(value):
        return Measurement("comprehensiveness", value, value, value, 9)

    def compared(interval):
        return Comparison("comprehensiveness", 0.0, *interval, 0.5, 9)

    values = {"attention": 0.31, "random": 0.12, "gradient": 0.2, "gradient × input": 0.3}
    found = verdict(
        {name: measured(v) for name, v in {**values, "integrated gradients": 0.38}.items()},
        {"random": compared(against_random), "integrated gradients": compared(against_gradient)},
        {"shuffled": measured(0.25)},
    )
    assert words in found
    assert found.endswith("; shuffling its weights changes 25 % of the outputs.")
