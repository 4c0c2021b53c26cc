"""Word alignment: expectation maximization against plain loops, and runs from end to end."""

import json
import random
from collections import defaultdict
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from scipy.special import digamma

import regard
from regard.cli import main
from regard.commands.terminal.training_summary import next_commands
from regard.data import Pair
from regard.errors import RegardError
from regard.inference.load_run import load
from regard.metrics import GoldLinks
from regard.metrics.alignment import parse_weighted_pharaoh
from regard.tasks.alignment.align_pairs import PairPosteriors, align_pairs
from regard.tasks.alignment.attachments import REACH, attach
from regard.tasks.alignment.chain_aligner import ChainAligner, Posteriors, agree_on
from regard.tasks.alignment.expectation_maximization import (
    ExpectationMaximization,
    counted_loss,
)
from regard.tasks.alignment.link_threshold import choose_threshold
from regard.tasks.alignment.task import Alignment
from regard.tasks.alignment.task_options import AlignerConfig, AlignmentData
from regard.tasks.alignment.word_pairs import WordPairs
from regard.tasks.shared.splits import with_corpora
from regard.training.run import train_run
from regard.training.stored_runs.run_summary import summarize_run

WORDS = {
    "red": "rouge", "blue": "bleu", "cat": "chat", "dog": "chien", "house": "maison",
    "sees": "voit", "eats": "mange", "bread": "pain", "water": "eau", "Parliament": "Parlement",
}  # fmt: skip


def sentences(count, seed=1):
    """Pairs in which neighbours trade places, and a third of the targets begin with a particle."""
    chance = random.Random(seed)
    for _ in range(count):
        source = chance.sample(sorted(WORDS), chance.randint(3, 5))
        order = list(range(len(source)))
        if chance.random() < 0.5:
            order[0], order[1] = order[1], order[0]
        particle = chance.random() < 0.3
        target = ["euh"] * particle + [WORDS[source[i]] for i in order]
        links = {(s, t + particle) for t, s in enumerate(order)}
        yield " ".join(source), " ".join(target), " ".join(f"{s}-{t}" for s, t in sorted(links))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    for name, count, seed in (("train", 300, 1), ("dev", 40, 2), ("test", 40, 3)):
        columns = zip(*sentences(count, seed), strict=True)
        for ending, lines in zip(("en", "fr", "gold"), columns, strict=True):
            (folder / f"{name}.{ending}").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def run(files, tmp_path_factory):
    options = {
        "data": [str(files / "train.en"), str(files / "train.fr")],
        "valid": [str(files / "dev.en"), str(files / "dev.fr")],
        "valid_gold": str(files / "dev.gold"),
    }
    return regard.train("align", out=tmp_path_factory.mktemp("align") / "run", **options)


def small_model(config, corpus):
    sides = [[target.split() for _, target in corpus], [source.split() for source, _ in corpus]]
    pairs, words, cells = WordPairs.of(sides, config.prefix_letters)
    return ChainAligner(config, pairs.sizes), pairs, words, cells


def batch_of(pairs, words, cells, number):
    """One sentence pair as a batch."""
    target, source = (torch.from_numpy(side[number])[None] for side in words)
    shape = 1, target.shape[1], source.shape[1]
    lengths = torch.tensor([shape[1]]), torch.tensor([shape[2]])
    return torch.from_numpy(cells[number]).reshape(shape), (target, source), lengths


CORPUS = [("a b", "x y z"), ("b c c", "z"), ("a", "x x"), ("c a b d", "y x w z")]


def test_an_iteration_without_positions_is_variational_bayes_of_model_1():
    config = AlignerConfig(agreement=0.0, similar_prior=0.0, prefix_prior=0.0, concentration=0.3)
    model, pairs, words, cells = small_model(config, CORPUS)
    model.train()
    total = sum(len(s.split()) + len(t.split()) for s, t in CORPUS)
    optimizer = ExpectationMaximization(model, pairs, total)
    for _ in range(3):
        optimizer.zero_grad()
        for number in range(len(CORPUS)):
            place, numbers, lengths = batch_of(pairs, words, cells, number)
            loss = counted_loss(model, model.emissions(place, numbers, lengths), place, numbers)
            (loss / total).backward()
        optimizer.step()

    # The same by loops over words, target given source.
    table = {(f, e): 1.0 for s, t in CORPUS for f, e in product(t.split(), s.split())}
    nothing = defaultdict(lambda: 1.0)
    for _ in range(3):
        counts, empty = dict.fromkeys(table, 0.0), defaultdict(float)
        for source, target in CORPUS:
            given = source.split()
            for f in target.split():
                parts = [0.8 / len(given) * table[f, e] for e in given]
                whole = sum(parts) + 0.2 * nothing[f]
                empty[f] += 0.2 * nothing[f] / whole
                for e, part in zip(given, parts, strict=True):
                    counts[f, e] += part / whole
        sums = defaultdict(float)
        for (_, e), count in counts.items():
            sums[e] += count + 0.3
        table = {
            (f, e): np.exp(digamma(count + 0.3) - digamma(sums[e]))
            for (f, e), count in counts.items()
        }
        # One more evidence of unknown words.
        whole = sum(empty.values()) + 0.3 * (len(empty) + 1)
        known = {f: np.exp(digamma(n + 0.3) - digamma(whole)) for f, n in empty.items()}
        nothing = defaultdict(lambda: 1.0, known)
    learned, empty = model.direction(0).table.tolist(), model.direction(0).empty.tolist()
    for cell, (t, s) in enumerate(zip(*pairs.words_of_cells, strict=True)):
        if cell:
            expected = table[pairs.words[0][t], pairs.words[1][s]]
            assert learned[cell] == pytest.approx(expected, rel=1e-4)
    for number, word in enumerate(pairs.words[0]):
        assert empty[number] == pytest.approx(nothing[word], rel=1e-4)


def test_gradients_are_the_counts_of_all_alignments():
    """In the chain, against the sum over every alignment of a pair."""
    config = AlignerConfig(agreement=0.0, position_free=1, farthest=2)
    model, pairs, words, cells = small_model(config, CORPUS)
    chance = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for part in model.parameters():
            part.copy_(torch.rand(part.shape, generator=chance) + 0.1)
        model.iteration += 1
    place, numbers, lengths = batch_of(pairs, words, cells, 0)
    loss = counted_loss(model, model.emissions(place, numbers, lengths), place, numbers)
    loss.backward()
    direction, (source, target) = model.direction(0), (2, 3)
    emissions = direction.table.detach()[place[0]].double()
    empty = direction.empty.detach()[numbers[0][0]].double()
    moves, starts = direction.moves.detach().double(), direction.starts.detach().double()[:source]

    def step(before, after):
        weights = [float(moves[min(max(k - before, -2), 2) + 2]) for k in range(source)]
        return weights[after] / sum(weights)

    total, counts = 0.0, torch.zeros(target, source, dtype=torch.float64)
    # A state is a position and whether the word is linked there.
    for path in product(range(source), repeat=target):
        for linked in product((True, False), repeat=target):
            p = float(starts[path[0]] / starts.sum())
            for j, (before, after) in enumerate(pairwise(path), 1):
                p *= step(before, after) if linked[j] else float(before == after)
            for j, (k, here) in enumerate(zip(path, linked, strict=True)):
                p *= 0.8 * float(emissions[j, k]) if here else 0.2 * float(empty[j])
            total += p
            for j, (k, here) in enumerate(zip(path, linked, strict=True)):
                counts[j, k] += p * here
    found = -direction.table.grad[place[0]].double()
    assert torch.allclose(found, counts / total, rtol=1e-4)
    backward = model.posteriors(model.emissions(place, numbers, lengths), chain=True)[1]
    assert float(loss.detach()) == pytest.approx(
        -np.log(total) - float(backward.log_likelihood.detach()), rel=1e-5
    )


def test_what_both_directions_agree_on_sums_to_one_per_word():
    chance = torch.Generator().manual_seed(3)
    parts = []
    for q, k in ((5, 7), (7, 5)):
        weights = torch.rand(2, q, k + 1, generator=chance).softmax(-1)
        parts.append(Posteriors(weights[..., :-1], weights[..., -1], torch.zeros(2)))
    for share in (0.0, 0.4, 1.0):
        for own, mixed in zip(parts, agree_on(*parts, share), strict=True):
            sums = mixed.weights.sum(-1) + mixed.empty
            assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5)
            if share == 0:
                assert torch.equal(mixed.weights, own.weights)


def test_thresholds_are_chosen_by_gold_links_or_by_agreement():
    weights = np.array([[0.9, 0.3], [0.3, 0.6]])
    found = PairPosteriors(
        ["a", "b"], ["x", "y"], weights, np.zeros(2), weights.T, np.zeros(2), np.zeros((2, 2))
    )
    sure = frozenset({(0, 0)})
    assert 0.6 < choose_threshold([found], [GoldLinks(sure, sure)]) <= 0.9
    assert 0.3 < choose_threshold([found]) <= 0.6


def test_a_run_learns_the_words(run, files, capsys):
    gold = [line.strip() for line in (files / "test.gold").read_text().splitlines()]
    found = run.align([str(files / "test.en"), str(files / "test.fr")])
    assert sum(str(one) == links for one, links in zip(found, gold, strict=True)) >= 38
    assert run("red cat ||| chat rouge") == "0-1 1-0"
    pairs = [str(files / "test.en"), str(files / "test.fr")]
    command = ["align", str(run.folder.path), "--data", *pairs]
    assert main([*command, "--gold", str(files / "test.gold"), "--output", "-"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [str(one) for one in found]
    assert "AER" in printed.err
    assert "[" in printed.err
    assert main([*command, "--threshold", "1.5"]) == 0
    assert set(capsys.readouterr().out) == {"\n"}
    dev = ["--dev", str(files / "dev.en"), str(files / "dev.fr")]
    assert main([*command, "--json", *dev, "--dev-gold", str(files / "dev.gold")]) == 0
    record = json.loads(capsys.readouterr().out.splitlines()[0])
    assert record["links"] == [list(link) for link in found[0].links]


def test_training_ends_with_commands_that_align(run, files):
    commands = next_commands(summarize_run(run.folder.path))
    data = f"--data {files / 'train.en'} {files / 'train.fr'}"
    assert any(f"align {run.folder.path} {data} --output" in command for command in commands)
    assert any("--lexicon" in command for command in commands)


def test_the_lexicon_has_the_words(run, capsys):
    assert main(["align", str(run.folder.path), "--lexicon"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert {(row[0], row[1]) for row in rows} >= {
        (source.lower(), target.lower()) for source, target in WORDS.items()
    }
    assert all(0 < float(p) <= 1 for row in rows for p in row[2:])


def test_a_trace_has_a_column_for_nothing(run):
    trace = run.trace("red cat sees bread", "euh chat rouge voit pain")
    by_name = {look.name: look for look in trace.looks}
    assert by_name["target"].keys == ("red", "cat", "sees", "bread", "∅")
    for name in ("target", "source"):
        assert np.allclose(by_name[name].weights.sum(-1), 1, atol=1e-4)
    assert trace.output == "0-2 1-1 2-3 3-4"
    nothing = by_name["target"].weights[:, -1]
    assert nothing[0] > nothing[1:].max()
    joined = run.trace("red cat sees bread ||| euh chat rouge voit pain")
    assert joined.output == trace.output


def test_unknown_words_are_aligned_by_likeness_and_place(run):
    assert run("dog Parliaments ||| chien Parlements") == "0-0 1-1"
    assert run("red 1997 cat ||| rouge 1997 chat") == "0-0 1-1 2-2"
    assert run(["||| chat"]) == [""]


def test_an_interrupted_run_ends_with_the_same_weights(files, tmp_path):
    options = {"data": [str(files / "train.en"), str(files / "train.fr")], "epochs": 7}
    whole, _ = train_run("align", options, tmp_path / "whole")
    steps = []
    _, position = train_run(
        "align",
        options,
        tmp_path / "parts",
        report=steps.append,
        stop=lambda: len(steps) == 3,
    )
    assert not position.done
    assert position.step == 3
    parts, position = train_run("align", options, tmp_path / "parts")
    assert position.done
    one, other = (load(folder.path).model.state_dict() for folder in (whole, parts))
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"valid_gold": "dev.gold"}, "requires valid"),
        ({"learning_rate": 0.5}, "learning_rate.*does not apply"),
        ({"accumulate": 1, "batch_tokens": 50}, "accumulate.*all batches"),
        ({"max_words": 1}, "nothing is left to train on.*300 pairs, over 1 words"),
    ],
)
def test_options_that_do_not_fit(files, tmp_path, options, message):
    data = [str(files / "train.en"), str(files / "train.fr")]
    with pytest.raises(RegardError, match=message):
        regard.train("align", out=tmp_path / "run", data=data, **options)
    assert not (tmp_path / "run").exists()


def test_bad_gold_links_are_named_by_file_and_line(files, tmp_path, run, capsys):
    lines = (files / "dev.gold").read_text().splitlines()
    lines[6] = "0-99"
    bad = tmp_path / "bad.gold"
    bad.write_text("\n".join(lines) + "\n")
    train, dev = (
        [str(files / f"{name}.en"), str(files / f"{name}.fr")] for name in ("train", "dev")
    )
    command = ["train", "align", "--data", *train, "--valid", *dev, "--valid-gold", str(bad)]
    assert main([*command, "--out", str(tmp_path / "run")]) == 2
    assert f"{bad}:7: link 0-99" in capsys.readouterr().err
    for option in (["--both", "x"], ["--layer", "1"], ["--erasure", "1"], ["--extract", "cover"]):
        assert main(["align", str(run.folder.path), "--data", *dev, *option]) == 2
        assert f"{option[0]} does not apply to align runs" in capsys.readouterr().err
    assert main(["predict", str(run.folder.path), "no pair"]) == 2
    assert "expected a pair" in capsys.readouterr().err


def test_pairs_without_words_have_no_links():
    config, data = AlignerConfig(), AlignmentData()
    model, pairs, *_ = small_model(config, CORPUS)
    task = Alignment(config, data, pairs)
    found = align_pairs(task, model, [Pair("", "x"), Pair("a", "x"), Pair("", "")])
    assert [one.weights.shape for one in found] == [(1, 0), (1, 1), (0, 0)]
    assert not found[0].links(0.1)
    assert not found[2].best(0)


def test_soft_links_guide_a_translator(run, files, tmp_path, capsys):
    data = [str(files / "train.en"), str(files / "train.fr")]
    soft = tmp_path / "train.soft"
    command = ["align", str(run.folder.path), "--data", *data, "--soft", "--output", str(soft)]
    assert main(command) == 0
    lines = [parse_weighted_pharaoh(line) for line in soft.read_text().split("\n")[:-1]]
    assert len(lines) == 300
    for links in lines:
        sums = defaultdict(float)
        for (_, t), weight in links.items():
            sums[t] += weight
        assert max(sums.values()) < 1.01
    options = {"alignments": str(soft), "tokenizer": "word", "width": 8, "steps": 2}
    guided = regard.train("translation", data, out=tmp_path / "guided", **options)
    task = with_corpora(guided.task, guided.folder.data)
    batch = task.batch(np.arange(5))
    rows = batch.alignment.sum(-1)
    assert 0 < float(rows[rows > 0].min()) < 1  # the particle has hardly a counterpart
    assert float(rows.max()) <= 1.0001
    soft.write_text("0-0:1.5\n" * 300)
    with pytest.raises(RegardError, match=r"train.soft:1: link 1 is '0-0:1.5'"):
        regard.train("translation", data, out=tmp_path / "bad", **options)


def test_attachments_are_the_shares_of_intensities_near_the_counterpart():
    """Against loops over queries and keys; the second key has no counterpart."""
    chance = torch.Generator().manual_seed(7)
    rates, linked = torch.rand(1, 5, 3, generator=chance), torch.zeros(1, 5, 3)
    linked[0, 1, 0], linked[0, 2, 0], linked[0, 4, 2] = 0.6, 0.4, 0.9
    empty, alone = 1 - linked.sum(-1), torch.rand(1, 5, generator=chance)
    offsets = torch.rand(2 * REACH + 1, generator=chance)
    offsets[: REACH - 2] = 0.0
    found = attach(rates, alone, offsets, linked, empty)
    counterparts = {0: 1.4, 2: 4.0}
    for q in range(5):
        parts = {
            k: float(rates[0, q, k] * offsets[round(q - place) + REACH])
            for k, place in counterparts.items()
        }
        total = sum(parts.values()) + float(alone[0, q])
        for k in range(3):
            expected = parts.get(k, 0.0) / total * float(empty[0, q])
            assert float(found.weights[0, q, k]) == pytest.approx(expected, rel=1e-5)
        expected = float(alone[0, q] / total * empty[0, q])
        assert float(found.spontaneous[0, q]) == pytest.approx(expected, rel=1e-5)


def test_both_parts_of_an_expression_are_linked(tmp_path):
    """`because` is `parce que`; `euh` comes with nothing."""
    chance = random.Random(4)
    lines = []
    for _ in range(600):
        numbers = chance.sample(range(60), 4)
        source, target = [f"word{n}" for n in numbers], [f"mot{n}" for n in numbers]
        if chance.random() < 0.4:
            place = chance.randrange(5)
            source[place:place], target[place:place] = ["because"], ["parce", "que"]
        if chance.random() < 0.2:
            target.insert(chance.randrange(len(target) + 1), "euh")
        lines.append((" ".join(source), " ".join(target)))
    for name, texts in zip(("en", "fr"), zip(*lines, strict=True), strict=True):
        (tmp_path / f"pairs.{name}").write_text("\n".join(texts) + "\n", "utf-8")
    data = [str(tmp_path / "pairs.en"), str(tmp_path / "pairs.fr")]
    run = regard.train("align", out=tmp_path / "run", data=data)
    found = run("word1 word2 because word3 ||| mot1 mot2 parce que mot3")
    assert found == "0-0 1-1 2-2 2-3 3-4"
    assert run("word1 word2 word3 ||| mot1 euh mot2 mot3") == "0-0 1-2 2-3"
    pairs = run.task.pairs
    codes = [
        pairs.numbers[0][word] * len(pairs.words[1]) + pairs.numbers[1]["because"]
        for word in ("parce", "que")
    ]
    rates = run.model.direction(0).rates[torch.from_numpy(pairs.find_cells(np.array(codes)))]
    assert rates.max().item() == pytest.approx(1, abs=0.15)  # one further word per `because`
