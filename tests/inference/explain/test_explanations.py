"""Explanations against finite differences, brute force, captum and sums by hand."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.cli import main
from regard.commands.explain import _token_names
from regard.errors import RegardError
from regard.inference.explain import attributions, hooks
from regard.inference.explain import faithfulness_reports as reports
from regard.inference.explain.explainers import EXPLAINERS
from regard.inference.explain.explanations import explain
from regard.inference.explain.targets import make_target
from regard.progress import reporting
from regard.tasks.classification.word_polarity import nearest_words, word_polarities
from regard.tasks.shared.attention_flow import rollout
from regard.tasks.shared.attention_modules import attention_modules
from regard.tasks.shared.explain_target import erase_tokens, log_odds
from regard.tasks.translation.decode import force_targets
from regard.trace import Token
from regard.training import RunFolder
from regard.training.run_folder import FORMAT
from tests.inference.explain.explained import MODELS, TEXT, WORDS, make_run


def odds_of(target):
    """The log-odds of every output, read with nothing in between."""
    kept = torch.ones(len(target.positions), target.tokens, dtype=torch.bool)
    with torch.no_grad():
        return target.log_odds(kept, torch.arange(len(target.positions))).numpy()


def gradients_under_interventions(target):
    """The norm of the gradient as it is, and with parts of its paths blocked."""
    names = [name for name in EXPLAINERS if name.split()[0] == "gradient" and "×" not in name]
    assert len(names) == 4
    return {name: EXPLAINERS[name].method(target).values for name in names}


@pytest.mark.parametrize("kind", MODELS)
def test_gradients_are_finite_differences_and_integrals_are_complete(kind):
    run = make_run(MODELS[kind])
    target = make_target(run, TEXT)
    table = target.input_layers[0].weight
    times_input = attributions.gradient_times_input(target).values
    gradient, *_ = attributions.gradients(target)[0]
    ids = WORDS.ids([TEXT])[0]
    shift = target.tokens - len(ids)
    direction = torch.randn(table.shape[1], dtype=table.dtype)
    step = 1e-5
    for place in (0, 2, 5):
        before = table[ids[place]].clone()
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                table[ids[place]] = before + sign * step * direction
                values.append(odds_of(target))
                table[ids[place]] = before
        slope = (values[0] - values[1]) / (2 * step)
        expected = gradient[:, place + shift] @ direction
        if "language" in kind or kind == "lookback":  # words have one table, coming in and out
            continue
        np.testing.assert_allclose(expected.detach().numpy(), slope, rtol=1e-4, atol=1e-6)
    integrated = attributions.integrated_gradients(target, steps=32, tolerance=1e-4)
    difference = integrated.details["log_odds_above_baseline"]
    np.testing.assert_allclose(integrated.values.sum(1), difference, rtol=1e-3, atol=1e-4)
    gap = integrated.values.sum(1) - difference
    np.testing.assert_allclose(integrated.details["integration_gap"], gap, atol=1e-12)
    with (
        torch.no_grad(),
        hooks.replace_vectors(
            target.input_layers,
            [torch.zeros_like(x)[None] for x in attributions.input_vectors(target)],
        ),
    ):
        nothing = [
            target.log_odds(torch.ones(1, target.tokens, dtype=torch.bool), torch.tensor([o]))
            for o in range(len(target.positions))
        ]
    np.testing.assert_allclose(difference, odds_of(target) - torch.cat(nothing).numpy())
    assert times_input.shape == integrated.values.shape == target.visible.shape


def test_in_a_sum_of_words_every_method_gives_the_word_its_own_part():
    run = make_run(MODELS["sum"])
    target = make_target(run, TEXT)
    ids = WORDS.ids([TEXT])[0]
    table, weight = (
        run.model.inputs.words.weight * run.model.inputs.scale,
        run.model.decision.weight,
    )
    margin = weight[target.chosen[0]] - weight[1 - target.chosen[0]]
    expected = (table[ids] @ margin).detach().numpy()[None]
    for method in (attributions.gradient_times_input, attributions.leave_one_out):
        np.testing.assert_allclose(method(target).values, expected)
    np.testing.assert_allclose(attributions.integrated_gradients(target).values, expected)
    polarities = word_polarities(run.task, run.model)
    assert polarities.exact
    bias = run.model.decision.bias - run.model.decision.bias.mean()
    logits = run.model(torch.tensor([ids]), torch.tensor([len(ids)])).logits[0]
    parts = polarities.values[[polarities.words.index(word) for word in TEXT.split()]]
    centred = (logits - logits.mean() - bias).detach().numpy()
    np.testing.assert_allclose(parts.sum(0), centred)
    (word, value), *_ = polarities.strongest("good", 1)
    assert value == polarities.values[:, polarities.labels.index("good")].max()
    assert word in polarities.words


def test_integrated_gradients_are_those_of_captum():
    captum = pytest.importorskip("captum.attr")
    run = make_run(MODELS["gru"])
    target = make_target(run, TEXT)
    ids = torch.tensor(WORDS.ids([TEXT]))

    def margin(words, lengths):
        logits = run.model(words, lengths).logits
        return logits[:, target.chosen[0]] - logits[:, 1 - target.chosen[0]]

    layer = captum.LayerIntegratedGradients(margin, run.model.inputs.words)
    reference = layer.attribute(
        ids,
        baselines=torch.zeros_like(ids),
        additional_forward_args=(torch.tensor([6]),),
        n_steps=50,
        method="gausslegendre",
    )
    ours = attributions.integrated_gradients(target, steps=64).values
    np.testing.assert_allclose(ours, reference.sum(-1).detach().numpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["gru", "recurrent translator", "transformer translator"])
def test_leaving_a_word_out_is_reading_the_shorter_text(kind):
    run = make_run(MODELS[kind])
    target = make_target(run, TEXT)
    found = attributions.leave_one_out(target).values
    words = TEXT.split()
    shorter = [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))]
    if kind == "gru":
        chances = run.task.probabilities(run.model, [TEXT, *shorter])[:, target.chosen[0]]
        odds = np.log(chances / (1 - chances))
        np.testing.assert_allclose(found[0], odds[0] - odds[1:])
        return
    outputs = list(target.chosen)
    forced = [
        force_targets(run.task, run.model, [text], [outputs], finished=False)[0]
        for text in [TEXT, *shorter]
    ]
    chances = np.exp([one.token_log_probabilities for one in forced])
    odds = np.log(chances / (1 - chances))
    np.testing.assert_allclose(found, (odds[0] - odds[1:]).T, atol=1e-8)


def test_a_language_model_without_a_word_reads_what_is_left():
    run = make_run(MODELS["transformer language"])
    target = make_target(run, TEXT, every=True)
    found = attributions.leave_one_out(target).values
    output = 3  # after the fourth word
    words = TEXT.split()[: output + 1]
    odds = []
    for gone in (None, *range(len(words))):
        left = [word for i, word in enumerate(words) if i != gone]
        ids = torch.tensor([[3, *WORDS.ids([" ".join(left)])[0]]])
        with torch.no_grad():
            logits = run.model(ids, run.model.start(1))[0].logits[:, -1]
        odds.append(
            float(
                log_odds(logits.log_softmax(-1), torch.tensor(target.chosen[output : output + 1]))
            )
        )
    np.testing.assert_allclose(found[output, 1:5], odds[0] - np.array(odds[1:]))
    assert not found[output, 5:].any()
    assert found[output, 0] == 0


def test_held_weights_pass_the_error_in_proportion_to_themselves():
    run = make_run(replace(MODELS["fixed"], queries=1))
    target = make_target(run, TEXT)
    found = gradients_under_interventions(target)
    ids = WORDS.ids([TEXT])[0]
    scale = run.model.inputs.scale  # gradients are those of words before they are scaled
    table = scale * run.model.inputs.words.weight[ids].detach()
    weights = (table @ run.model.pooling.queries[0]).softmax(0)
    decision = run.model.decision.weight
    slope = scale * (decision[0] - decision[1]).norm().detach()
    expected = (weights * slope).detach().numpy()[None]
    np.testing.assert_allclose(found["gradient through values"], expected)
    even = np.full((1, 6), float(slope) / 6)
    np.testing.assert_allclose(found["gradient under uniform attention"], even)
    assert not found["gradient around attention"].any()
    # through the weights too: the derivative of Σ aᵢ (w · xᵢ) by hand
    values = table @ (decision[target.chosen[0]] - decision[1 - target.chosen[0]])
    mean = weights @ values
    theta = run.model.pooling.queries[0]
    whole = (
        scale
        * weights[:, None]
        * (
            (decision[target.chosen[0]] - decision[1 - target.chosen[0]])[None]
            + (values - mean)[:, None] * theta
        )
    )
    np.testing.assert_allclose(found["gradient"][0], whole.norm(dim=1).detach().numpy())


@pytest.mark.parametrize(
    ("kind", "around"),
    [("transformer translator", False), ("recurrent translator", True), ("lookback", True)],
)
def test_only_recurrence_leads_around_attention(kind, around):
    run = make_run(MODELS[kind])
    target = make_target(run, TEXT)
    before = odds_of(target)
    found = gradients_under_interventions(target)
    assert bool(found["gradient around attention"].any()) is around
    assert found["gradient through values"].any()
    np.testing.assert_array_equal(odds_of(target), before)  # all hooks are gone
    np.testing.assert_array_equal(attributions.gradient_norm(target).values, found["gradient"])


def test_what_cutting_leaves_is_the_gradient_at_constant_attention():
    """In self-attention with a residual: z = norm(x + c), with c held as it is."""
    run = make_run(MODELS["self"])
    target = make_target(run, TEXT)
    found = gradients_under_interventions(target)["gradient around attention"]
    model, ids = run.model, torch.tensor(WORDS.ids([TEXT]))
    x = model.inputs(ids).detach().requires_grad_()
    read = model.attention.attention(x).output.detach()
    logits = model.decision(model.attention.norm(x + read).mean(1))[0]
    (logits[target.chosen[0]] - logits[1 - target.chosen[0]]).backward()
    np.testing.assert_allclose(found[0], model.inputs.scale * x.grad[0].norm(dim=1).numpy())


def test_rollout_is_the_sum_over_all_paths():
    """Each path takes, at every layer, a look or stays where it is, half and half."""
    layers = torch.rand(3, 4, 4, dtype=torch.float64).softmax(-1)
    expected = np.zeros((4, 4))
    for choice in np.ndindex(2, 2, 2):
        path = np.eye(4)
        for layer, looks in zip(layers.numpy(), choice, strict=True):
            path = (layer if looks else np.eye(4)) @ path
        expected += path / 8
    np.testing.assert_allclose(rollout(list(layers)).numpy(), expected)


@pytest.mark.parametrize("kind", MODELS)
def test_attention_has_one_row_per_output(kind):
    run = make_run(MODELS[kind])
    target = make_target(run, TEXT)
    attention, rolled_out = attributions.attention(target), attributions.attention_rollout(target)
    if kind in ("blind language", "lstm tagger"):
        assert attention is None
        assert rolled_out is None
        return
    assert attention.values.shape == target.visible.shape
    np.testing.assert_allclose(attention.values.sum(1), 1, rtol=1e-9)
    if "transformer" in kind or kind in ("blocks", "self"):
        assert rolled_out.values.shape == attention.values.shape
        assert (rolled_out.values.sum(1) < 1 + 1e-9).all()
    else:
        assert rolled_out is None


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 99), keys=st.integers(1, 7), masked=st.booleans())
def test_shuffled_weights_are_the_same_at_other_keys(seed, keys, masked):
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(2, 1, keys, generator=generator) < 0.7 if masked else None
    weights = torch.rand(2, 3, keys, generator=generator)
    weights = weights if mask is None else weights * mask
    moved = hooks.shuffle_weights(generator)(weights, mask)
    torch.testing.assert_close(moved.sort(-1).values, weights.sort(-1).values)
    even = hooks.uniform_weights(weights, mask)
    torch.testing.assert_close(even.sum(-1), weights.sum(-1) * (even.sum(-1) > 0))
    if mask is not None:
        assert not moved[~mask.expand_as(moved)].any()
        assert not even[~mask.expand_as(even)].any()


def test_the_model_itself_is_never_touched():
    run = make_run(MODELS["blocks"])
    before = run.model.pooling.normalize
    target = make_target(run, TEXT)
    assert target.network is not run.model
    pairs = zip(target.network.parameters(), run.model.parameters(), strict=True)
    assert all(ours is theirs for ours, theirs in pairs)
    with hooks.change_weights(attention_modules(target.network), hooks.constant_weights):
        assert run.model.pooling.normalize is before
    attributions.integrated_gradients(target)
    assert all(parameter.grad is None for parameter in run.model.parameters())


def test_nearest_words_are_those_of_the_smallest_angle():
    for score_name in ("dot", "mlp"):
        run = make_run(replace(MODELS["fixed"], attention=score_name))
        keys = (run.model.inputs.words.weight * run.model.inputs.scale).detach()[4:]
        if score_name == "mlp":
            keys = run.model.pooling.score.hidden(keys).tanh().detach()
        for theta, found in zip(
            run.model.pooling.queries, nearest_words(run.task, run.model, 3), strict=True
        ):
            theta = theta.detach().numpy()
            cosines = [k @ theta / np.linalg.norm(k) / np.linalg.norm(theta) for k in keys.numpy()]
            best = np.argsort(cosines)[::-1][:3]
            assert [one.word for one in found] == [WORDS.vocabulary()[4 + i] for i in best]
            np.testing.assert_allclose(
                [one.degrees for one in found], np.degrees(np.arccos(np.array(cosines)[best]))
            )
    run = make_run(MODELS["gru"])
    assert nearest_words(run.task, run.model) == []
    assert make_run(MODELS["lookback"]).spec.words is None


def test_several_labels_are_explained_each_for_itself():
    run = make_run(MODELS["sum"], labels=("a", "b", "c"), several=True)
    target = make_target(run, TEXT)
    ids = WORDS.ids([TEXT])[0]
    table = run.model.inputs.words.weight * run.model.inputs.scale
    parts = table[ids] @ run.model.decision.weight.T
    signs = torch.tensor([1 if yes else -1 for yes in target.chosen])
    expected = (parts * signs).T.detach().numpy()
    np.testing.assert_allclose(attributions.gradient_times_input(target).values, expected)
    assert [name.startswith("not ") for name in target.names] == [s < 0 for s in signs]


def test_erasing():
    kept = torch.tensor([[True, False, True, True], [False] * 4])
    ids, lengths = erase_tokens(torch.tensor([5, 6, 7, 8]), kept)
    assert ids.tolist() == [[5, 7, 8], [0, 0, 0]]
    assert lengths.tolist() == [3, 0]
    ids, lengths = erase_tokens(torch.tensor([5, 6, 7, 8]), kept, "unknown")
    assert ids.tolist() == [[5, 1, 7, 8], [1] * 4]
    assert lengths.tolist() == [4, 4]
    with pytest.raises(ValueError, match="did you mean 'delete'"):
        make_target(make_run(MODELS["sum"]), TEXT, erase="delte")
    with pytest.raises(RegardError, match="needs a word for every tag"):
        make_target(make_run(MODELS["lstm tagger"]), TEXT, erase="delete")


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """A trained classifier of texts whose label depends on one word."""
    folder = tmp_path_factory.mktemp("reviews")
    data = write_reviews(folder)
    options = {"width": 8, "dropout": 0.0, "learning_rate": 0.05, "warmup": 2, "average": 1}
    plan = {"steps": 20, "batch_tokens": 400, "evaluate_every": 20, "encoder": "none"}
    return regard.train("classify", data, valid=data, out=folder / "run", **options, **plan), data


def write_reviews(folder):
    drawn = np.random.default_rng(0)
    lines = ["text\tlabel"]
    for i in range(120):
        words = list(drawn.choice(["the", "film", "plot", "was", "is", "long", "it"], 6))
        words[drawn.integers(6)] = ["dreadful", "lovely"][i % 2]
        lines.append(f"{' '.join(words)}\t{'-+'[i % 2]}")
    (folder / "reviews.tsv").write_text("\n".join(lines) + "\n")
    return str(folder / "reviews.tsv")


def test_the_command_names_the_word_that_decides(reviews, capsys, tmp_path):
    run, data = reviews
    folder = str(run.folder.path)
    assert main(["explain", folder, "--text", "the plot was lovely it is", "--json"]) == 0
    found = regard.trace.Trace.from_json(capsys.readouterr().out)
    assert found.output == "+"
    methods = {one.method: one.values for one in found.attributions}
    for method in ("gradient × input", "integrated gradients", "leave-one-out"):
        assert methods[method].argmax() == 3, method
    assert found.looks[0].weights.shape == (1, 6)
    assert main(["explain", folder, "--words"]) == 0
    printed = capsys.readouterr().out
    assert "  -: dreadful" in printed
    assert "  +: lovely" in printed
    (tmp_path / "in.txt").write_text("the film is dreadful\n\nlovely\n")
    assert main(["explain", folder, "--input", str(tmp_path / "in.txt"), "--looks"]) == 0
    blocks = capsys.readouterr().out
    assert blocks.count("→ ") == 2
    assert "(nothing to explain)" in blocks
    assert (
        main(["explain", folder, "--data", data, "--faithfulness", "--limit", "20", "--json"]) == 0
    )
    told = capsys.readouterr()
    report = json.loads(told.out)
    assert report["texts"] == 20
    (kept,) = reports.saved_reports(regard.load(folder).folder)
    assert f"saved in {folder}/faithfulness/{kept['name']}.json" in told.err
    assert kept["current"]
    assert kept["options"] == {"limit": 20, "seed": 0}
    assert {name: kept[name] for name in report} == report
    shutil.copytree(folder, tmp_path / "later")
    with (tmp_path / "later/model.safetensors").open("ab") as file:
        file.write(b"\0")
    assert [one["current"] for one in reports.saved_reports(RunFolder(tmp_path / "later"))] == [
        False
    ]
    named, random = (report["comprehensiveness"][m] for m in ("integrated gradients", "random"))
    assert named["low"] > random["high"]


def test_a_report_that_cannot_be_kept_has_been_printed(tmp_path, capsys, monkeypatch):
    """And what lies in the folder that is no report is passed over."""
    run = make_run(MODELS["gru"])
    folder = RunFolder(tmp_path)
    folder.model.write_bytes(b"weights")
    (tmp_path / "config.json").write_text(json.dumps({"task": run.name, "format": FORMAT}))
    monkeypatch.setattr("regard.inference.load", lambda path, device: replace(run, folder=folder))
    monkeypatch.setattr(
        "regard.inference.explain.faithfulness.read_texts",
        lambda run, data: ([TEXT, TEXT], "2 texts"),
    )
    asked = ["explain", str(tmp_path), "--data", "some.tsv", "--faithfulness"]
    assert main(asked) == 0
    (folder.faithfulness / "other.json").write_text("[1]")
    (folder.faithfulness / "broken.json").write_text("{")
    (listed,) = reports.saved_reports(folder)
    assert listed["data"] == [str(Path("some.tsv").resolve())]
    printed = capsys.readouterr().out
    shutil.rmtree(folder.faithfulness)
    folder.faithfulness.write_text("a file in the way")
    assert main(asked) == 2
    told = capsys.readouterr()
    assert told.out == printed
    assert "cannot be written" in told.err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "nothing to explain"),
        (["--faithfulness"], "--faithfulness and --data: expected both, or neither"),
        (["--data", "x.tsv"], "--faithfulness and --data: expected both, or neither"),
        (["--input", "nowhere.txt"], "nowhere.txt: cannot be read"),
        (["--text", "fine", "--output", "4"], "--output 4: expected 0, the only output"),
        (["--text", "fine", "--words"], "--words: cannot be combined with --text"),
        (
            ["--text", "fine", "--json", "--output", "0"],
            "--output: cannot be combined with --json",
        ),
    ],
)
def test_bad_use_is_one_line(given, words, reviews, capsys):
    assert main(["explain", str(reviews[0].folder.path), *given]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_every_attribution_fits_its_side(reviews):
    found = explain(reviews[0], "lovely")
    assert {len(one.values) for one in found.attributions} == {1}
    assert explain(reviews[0], " \t").attributions == ()
    assert explain(reviews[0], "\ud800 lovely").output == "+"


def test_texts_come_as_to_every_command(reviews, tmp_path, capsys):
    (tmp_path / "in.gz").write_bytes(gzip.compress(b"lovely\n \nfine \0\n", mtime=0))
    command = ["explain", str(reviews[0].folder.path), "--input", str(tmp_path / "in.gz")]
    assert main(command) == 0
    assert capsys.readouterr().out.count("nothing to explain") == 1
    assert main([*command, "--output", "3"]) == 2
    assert "in.gz:1: --output 3: expected 0, the only output" in capsys.readouterr().err


def test_the_columns_of_texts_can_be_chosen(reviews, tmp_path, capsys):
    """As the message about columns recommends, and as training and evaluation choose them."""
    rows = "".join(f"{i},{'-+'[i % 2]},so {i} it is\n" for i in range(12))
    (tmp_path / "odd.csv").write_text(f"row,stars,remark of {0}\n{rows}")
    command = ["explain", str(reviews[0].folder.path), "--faithfulness", "--data"]
    command += [str(tmp_path / "odd.csv"), "--json"]
    assert main(command) == 2
    assert "--text" in capsys.readouterr().err
    assert main([*command, "--text", "remark of 0", "--label", "stars"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"] == 12
    assert main([*command, "--text", "remark of 0", "--target", "stars"]) == 2
    assert "--target" in capsys.readouterr().err


def test_a_single_explanation_reports_its_progress(reviews):
    stages = []
    with reporting(lambda stage: stages.append((stage.label, stage.done, stage.total))):
        explain(reviews[0], "lovely")
    assert ("explaining", len(EXPLAINERS), len(EXPLAINERS)) in stages


def test_bytes_of_a_character_are_numbered():
    tokens = [Token("the", 0, 3), *[Token("🦄", 4, 5)] * 4, Token("🦄", 6, 7), Token("<eos>")]
    assert _token_names(tokens) == [
        "the", "🦄 1/4", "🦄 2/4", "🦄 3/4", "🦄 4/4", "🦄", "<eos>",
    ]  # fmt: skip


def test_tables_fit_a_narrow_terminal(reviews, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    command = ["explain", str(reviews[0].folder.path), "--text", "the plot was lovely it is so"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    table = printed[: printed.index("\nattention ")]
    assert max(map(len, printed.splitlines())) <= 60
    assert table.count("for +") > 1
    assert all(
        EXPLAINERS[row.method].column in table for row in explain(reviews[0], "x").attributions
    )
