"""Alignments on a toy language whose links are known: every two words change places."""

import json
import random
import re

import numpy as np
import pytest
import torch

from regard.cli import main
from regard.data import Pair
from regard.data.corpus import Corpus
from regard.errors import RegardError
from regard.inference import load
from regard.inference.align.alignments import align, attention_places, pair_attention
from regard.inference.align.check_direction import check_opposite
from regard.inference.align.choose_head import choose_head, choose_heads
from regard.inference.align.erasure import erasure_losses
from regard.inference.align.extract_links import argmax
from regard.inference.align.markup import translate_markup
from regard.inference.align.symmetrize import grow_diag_final_and
from regard.metrics import alignment_error_rate, metric_value, parse_pharaoh
from regard.tasks.shared.word_attention import AttentionPlace, source_attention
from regard.tasks.translation.guided_alignment import alignment_targets, guided_alignment_loss
from regard.tasks.translation.task import prepare
from regard.tasks.translation.task_options import TranslationData
from regard.training.run import train_run

WORDS = ["sun", "moon", "star", "rain", "snow", "wind", "leaf", "tree"]
TOY = {word: word.upper()[::-1] for word in WORDS}
SMALL = {"tokenizer": "word", "width": 32, "dropout": 0.0, "batch_tokens": 300, "warmup": 10}
SMALL |= {"learning_rate": 0.005, "evaluate_every": 1000, "label_smoothing": 0.0, "average": 1}
LUONG = {"order": "luong", "input_feeding": True, "steps": 30}
TRANSFORMER = {"model": "transformer", "layers": 2, "heads": 2, "steps": 100}


def swapped(count):
    """Where the words of a sentence of this length come from."""
    return [i ^ 1 if i ^ 1 < count else i for i in range(count)]


def toy(pairs, seed):
    random.seed(seed)
    made = []
    for _ in range(pairs):
        source = random.choices(WORDS, k=random.randint(2, 6))
        target = [TOY[source[i]] for i in swapped(len(source))]
        links = " ".join(f"{s}-{t}" for t, s in enumerate(swapped(len(source))))
        made.append((" ".join(source), " ".join(target), links))
    return made


def write(folder, name, made):
    for ending, lines in zip(("aa", "bb", "gold"), zip(*made, strict=True), strict=True):
        (folder / f"{name}.{ending}").write_text("\n".join(lines) + "\n", "utf-8")


def files(folder, name):
    return [str(folder / f"{name}.{ending}") for ending in ("aa", "bb")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("toy")
    write(made, "train", toy(300, 1))
    write(made, "test", toy(40, 2))
    data = {"data": files(made, "train"), "valid": files(made, "test")}
    turned = {"source": "bb", "target": "aa"}
    guided = {"alignments": str(made / "train.gold"), "align_loss": 1.0}
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    for name, options in {
        "ahead": LUONG,
        "back": LUONG | turned,
        "guided": TRANSFORMER | guided,
        "free": TRANSFORMER,
    }.items():
        train_run("translation", SMALL | data | options, made / name)
    torch.set_num_threads(before)
    return made


@pytest.fixture(scope="module")
def runs(folder):
    return {name: load(folder / name) for name in ("ahead", "back", "guided", "free")}


PAIRS = [Pair(source, target) for source, target, _ in toy(40, 2)]
GOLD = [parse_pharaoh(links) for _, _, links in toy(40, 2)]


def error(run, place):
    return metric_value(alignment_error_rate([one.links for one in align(run, PAIRS, place)], GOLD))


def test_guidance_teaches_the_head(runs):
    guided = runs["guided"].task.guided
    assert guided == AttentionPlace(0, 0, 1)
    assert choose_head(runs["guided"], PAIRS) == guided
    assert error(runs["guided"], guided) < 0.25
    assert error(runs["free"], guided) > error(runs["guided"], guided) + 0.3


def test_recurrent_attention_is_read_where_it_writes(runs):
    assert choose_head(runs["ahead"], PAIRS) == AttentionPlace(0, 0, 0)
    ahead, back = choose_heads(runs["ahead"], runs["back"], PAIRS)
    assert ahead in attention_places(runs["ahead"])
    assert back in attention_places(runs["back"])


def test_the_choice_by_gold_has_the_lowest_error(runs):
    best = choose_head(runs["free"], PAIRS, GOLD)
    assert error(runs["free"], best) == min(
        error(runs["free"], p) for p in attention_places(runs["free"])
    )
    assert len(attention_places(runs["free"])) == 2 * 3 * 2


def test_erasure_names_the_cause(runs):
    found = [argmax(losses) for losses in erasure_losses(runs["guided"], PAIRS)]
    assert metric_value(alignment_error_rate(found, GOLD)) < 0.3


def test_weights_of_words_are_those_of_their_tokens(runs):
    """Source words sum over their tokens, target words average: by a loop over the model's own."""
    run = runs["free"]
    pair = Pair(" sun-moon  star", "NUS NOOM,RATS")
    source, target = run.task.source.encode(pair.source), run.task.target.encode(pair.target)
    assert source.tokens == ["sun", "-", "moon", "star"]
    assert target.tokens == ["NUS", "NOOM", ",", "RATS"]
    with torch.no_grad():
        output = run.model(
            torch.tensor([source.ids]),
            torch.tensor([4]),
            torch.tensor([[2, *target.ids]]),
            need_weights=True,
        )
    (found,) = pair_attention(run, [pair])
    for layer, weights in enumerate(source_attention(output.weights)):
        for head in range(2):
            for shift in (0, 1):
                rows = weights[0, head, shift : shift + 4]
                by_words = [
                    [rows[0, :3].sum(), rows[0, 3]],
                    [rows[1:, :3].sum() / 3, rows[1:, 3].sum() / 3],
                ]
                expected = np.array([[float(x) for x in row] for row in by_words])
                at = found.at(AttentionPlace(layer, head, shift))
                np.testing.assert_allclose(at, expected, atol=1e-6)
    mean = (found.at(AttentionPlace(1, 0, 0)) + found.at(AttentionPlace(1, 1, 0))) / 2
    np.testing.assert_allclose(found.at(AttentionPlace(1, None, 0)), mean)


def test_one_line_a_pair_whatever_comes(folder, tmp_path, capsys):
    (tmp_path / "in.aa").write_text("sun moon\n\n  \nstar\nsun\n")
    (tmp_path / "in.bb").write_text("NOOM NUS\n\nNUS\nRATS\n\n")
    command = ["align", str(folder / "guided"), "--data", *files(tmp_path, "in")]
    assert main(command) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines == ["0-1 1-0", "", "", "0-0", "", ""]
    assert main([*command, "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(records) == 5
    weights = np.array(records[0]["weights"])
    assert weights.shape == (2, 2)
    np.testing.assert_allclose(weights.sum(1), 1, atol=1e-4)
    assert [[int(row.argmax()), t] for t, row in enumerate(weights)] == [[1, 0], [0, 1]]


def test_both_directions_and_the_error_rate(folder, tmp_path, capsys):
    data = ["--shift", "0", "--data", *files(folder, "test")]
    out = {}
    for name in ("ahead", "back"):
        assert main(["align", str(folder / name), *data, "--extract", "argmax"]) == 0
        out[name] = [parse_pharaoh(line).sure for line in capsys.readouterr().out.splitlines()]
    both = ["align", str(folder / "ahead"), *data, "--both", str(folder / "back")]
    gold = ["--gold", str(folder / "test.gold")]
    path = tmp_path / "both.pharaoh"
    assert main([*both, *gold, "--output", str(path)]) == 0
    told = capsys.readouterr().err
    for line, one, other in zip(path.read_text().splitlines(), *out.values(), strict=True):
        back = {(s, t) for t, s in other}
        assert parse_pharaoh(line).sure == grow_diag_final_and(one, back)
    assert main(["align", "--hypothesis", str(path), *gold]) == 0
    measured = capsys.readouterr().out
    assert measured.splitlines()[0].startswith("AER")
    assert measured.splitlines()[0] in told
    found = [parse_pharaoh(line).sure for line in path.read_text().splitlines()]
    percent = 100 * metric_value(alignment_error_rate(found, GOLD))
    assert float(measured.split()[1]) == pytest.approx(percent, abs=0.051)


def test_weights_agree_before_links_are_made(folder, capsys):
    """Links are those of the product of both soft matrices, which one direction alone prints."""
    data = ["--shift", "0", "--data", *files(folder, "test"), "--json"]
    turned = ["--source", "bb", "--target", "aa"]
    records = {}
    both = ["--both", str(folder / "back"), "--symmetrize", "agree"]
    for name, options in {"ahead": [], "back": turned, "both": both}.items():
        run = str(folder / ("ahead" if name == "both" else name))
        assert main(["align", run, *data, *options]) == 0
        records[name] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    for one, other, joined in zip(*records.values(), strict=True):
        product = np.array(one["weights"]) * np.array(other["weights"]).T
        np.testing.assert_allclose(np.square(joined["weights"]), product, atol=1e-5)
        assert {tuple(link) for link in joined["links"]} == argmax(np.array(joined["weights"]))


def test_agreement_is_better_than_either_direction(runs):
    """Both directions have learnt little, and each is wrong elsewhere."""
    ahead, back = choose_heads(runs["ahead"], runs["back"], PAIRS)
    found = align(runs["ahead"], PAIRS, ahead, both=(runs["back"], back), symmetrize="agree")
    agreed = metric_value(alignment_error_rate([one.links for one in found], GOLD))
    turned = [Pair(pair.target, pair.source) for pair in PAIRS]
    backward = [{(s, t) for t, s in one.links} for one in align(runs["back"], turned, back)]
    assert agreed < error(runs["ahead"], ahead)
    assert agreed < metric_value(alignment_error_rate(backward, GOLD))


@pytest.mark.parametrize("tokenizer", ["word", "bpe", "character"])
def test_directions_are_told_by_known_words(tokenizer, runs, tmp_path):
    """Of runs on other data in the same languages, only the opposite direction passes."""
    write(tmp_path, "more", toy(60, 5))
    options = SMALL | LUONG | {"data": files(tmp_path, "more"), "tokenizer": tokenizer, "steps": 1}
    for name, ends in {"same": ("aa", "bb"), "turned": ("bb", "aa")}.items():
        given = options | dict(zip(("source", "target"), ends, strict=True))
        train_run("translation", given, tmp_path / name)
    same, turned = load(tmp_path / "same"), load(tmp_path / "turned")
    for pairs in (PAIRS, [Pair(pair.target, pair.source) for pair in PAIRS], []):
        check_opposite(runs["ahead"], turned, pairs)
        check_opposite(turned, runs["free"], pairs)
    with pytest.raises(RegardError, match=r"same: translates the same way .* on the same side"):
        check_opposite(runs["ahead"], same, PAIRS)
    with pytest.raises(RegardError, match="translates the same way"):
        check_opposite(runs["back"], turned, PAIRS)
    with pytest.raises(RegardError, match="on the same data, in the same order"):
        check_opposite(runs["ahead"], runs["free"], [])


def test_tags_go_around_the_translated_word(runs):
    """In each sentence one word has a tag; it counts where the model did translate that word."""
    plain = [pair.source for pair in PAIRS]
    tagged = [re.sub(r"\w+", r"<b>\g<0></b>", text, count=1) for text in plain]
    outputs = runs["guided"](plain)
    found = translate_markup(runs["guided"], tagged, "xml")
    assert [re.sub("<[^>]*>", "", line) for line in found] == outputs
    words = [TOY[text.split()[0]] for text in plain]
    known = [
        (word, line)
        for word, text, output, line in zip(words, plain, outputs, found, strict=True)
        if output.split().count(word) == text.split().count(text.split()[0]) == 1
    ]
    assert len(known) >= 8
    assert sum(f"<b>{word}</b>" in line for word, line in known) >= 0.7 * len(known)


def test_lines_of_markup_stay_in_step(runs):
    found = translate_markup(runs["guided"], ["<p>snow<br/></p>", "", "<i/>", "rain"], "xml")
    assert re.fullmatch("<p>.*</p>", found[0])
    assert found[0].count("<br/>") == 1
    assert found[1:3] == ["", "<i/>"]
    assert found[3] == runs["guided"](["rain"])[0]
    with pytest.raises(RegardError, match=r"in.html:3: <b> is not closed"):
        translate_markup(runs["guided"], ["sun", "moon", "<b>star"], "html", name="in.html")


def test_links_stay_with_their_lines(tmp_path):
    """Empty lines are left out of the pairs and pass by in the links; a part is set aside."""
    made = toy(30, 3)
    made[4] = ("", "NUS", "")
    made[7] = ("", "", "9-9")
    write(tmp_path, "train", made)
    data = TranslationData(
        files(tmp_path, "train"), tokenizer="word", alignments=str(tmp_path / "train.gold")
    )
    prepare(data, tmp_path, seed=0)
    expected = {source: links for source, _, links in made}
    count = 0
    for part in ("train", "valid"):
        corpus = Corpus(tmp_path / f"{part}.arrow")
        for source, links in zip(corpus.column("source_text"), corpus.column("links"), strict=True):
            flat = sorted(map(tuple, np.reshape(links, (-1, 2)).tolist()))
            assert flat == sorted(parse_pharaoh(expected[source]).sure)
            count += 1
    assert count == 28


@pytest.mark.parametrize(
    ("links", "words"),
    [
        (["0-0"] * 3, "links.txt has 3 lines but the data has 4 pairs"),
        (["0-0"] * 5, "links.txt has 5 lines but the data has 4 pairs"),
        (["0-0", "0-0", "0-2", ""], "links.txt:3: link 0-2: the target sentence has 1 words"),
        (["0-0", "3-0", "", ""], "links.txt:2: link 3-0: the source sentence has 1 words"),
        (["0-0", "0:0", "", ""], "links.txt:2: link 1 is '0:0'"),
    ],
)
def test_bad_links_to_train_with(links, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text("sun\tNUS\nrain\tNIAR\nstar\tRATS\nmoon\tNOOM\n")
    (tmp_path / "links.txt").write_text("".join(f"{line}\n" for line in links))
    command = "train translation --data pairs.tsv --alignments links.txt --steps 1 --out run"
    assert main(command.split()) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("align", "expected a run and --data, or --hypothesis and --gold"),
        ("align --hypothesis {gold}", "--hypothesis requires --gold"),
        ("align {ahead} --data {aa} {bb} --symmetrize union", "--symmetrize requires --both"),
        ("align {ahead} --data {aa} {bb} --layer 1", "has 1 layer, 0 to 0"),
        ("align {free} --data {aa} {bb} --head 2", "has 2 heads, 0 to 1"),
        ("align {free} --data {aa} {bb} --head all", "expected auto, mean or a number"),
        ("align {ahead} --data {aa} {bb} --gold {short}", "has links for 1 pairs but there are 40"),
        ("align --hypothesis {short} --gold {gold}", "links for 1 pairs but"),
        ("align --hypothesis {far} --gold {far}", "give --indexed-from 0 or --indexed-from 1"),
        (
            "align --hypothesis {far} --gold {out} --data {word} {word}",
            "out:1: link 7-1, counted from 1: the source sentence has 1 words",
        ),
        ("align {ahead} --data {aa} {bb} --dev {aa} {bb}", "--dev and --dev-gold: expected both"),
        (
            "align {ahead} --both {free} --data {aa} {bb}",
            "on the same data, in the same order): expected a run of the opposite direction",
        ),
        ("align --hypothesis {huge} --gold {huge}", "huge:2: sentence 99999999999: expected"),
        ("align {ahead} --data {aa} {bb} --erasure inf", "--erasure: expected a number"),
        ("align {ahead} --data {aa} {bb} --threshold -1", "--threshold -1.0: expected 0 or more"),
        ("align {ahead} --data {long} {aa}", "1 pairs of lines over 1 MiB: shorten them"),
    ],
)
def test_bad_use_is_one_line(command, words, folder, tmp_path, capsys):
    (tmp_path / "short").write_text("0-0\n")
    (tmp_path / "far").write_text("1-1\n")
    (tmp_path / "out").write_text("7-1\n")
    (tmp_path / "word").write_text("sun\n")
    (tmp_path / "huge").write_text("1 1 1\n99999999999 1 1\n")
    (tmp_path / "long").write_text("sun " * 300_000 + "\n" + "sun\n" * 39)
    names = {name: folder / name for name in ("ahead", "free")}
    names |= {ending: folder / f"test.{ending}" for ending in ("aa", "bb", "gold")}
    names |= {name: tmp_path / name for name in ("short", "far", "out", "word", "huge", "long")}
    assert main(command.format(**names).split()) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_alignment_targets_and_loss_by_hand():
    links = [np.array([0, 0, 1, 0, 2, 1]), np.array([], np.int32)]
    targets = alignment_targets(links, 3, 4, shift=1)
    expected = torch.zeros(2, 3, 4)
    expected[0, 1, :2] = 0.5
    expected[0, 2, 2] = 1
    torch.testing.assert_close(targets, expected)
    weights = torch.rand(2, 3, 4, dtype=torch.float64).softmax(-1).requires_grad_()
    by_hand = -(weights[0, 1, 0].log() / 2 + weights[0, 1, 1].log() / 2 + weights[0, 2, 2].log())
    loss = guided_alignment_loss(weights, targets.double())
    torch.testing.assert_close(loss, by_hand / 2)
    assert guided_alignment_loss(weights, torch.zeros(2, 3, 4, dtype=torch.float64)) == 0
    given, wanted = (torch.autograd.grad(x, weights, retain_graph=True)[0] for x in (loss, by_hand))
    torch.testing.assert_close(given, wanted / 2)


def test_pairs_that_an_naacl_file_leaves_out_have_no_links(tmp_path, capsys):
    (tmp_path / "gold").write_text("1 1 1 S\n2 1 1 S\n3 1 1 S\n")
    (tmp_path / "found").write_text("1 1 1\n")
    files = ["--hypothesis", str(tmp_path / "found"), "--gold", str(tmp_path / "gold")]
    assert main(["align", *files, "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["recall"]["value"] == pytest.approx(1 / 3)
    assert scores["precision"]["value"] == 1
