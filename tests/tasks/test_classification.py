"""Classification from the command line: words, vectors, several labels, experts, word vectors."""

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

import regard
from regard.cli import main
from regard.inference.explain.explanations import explain
from regard.tasks.registry import TASKS
from regard.training.run import make_configs
from regard.training.tensor_files import read_tensors
from tests.tasks.tasks_data import write

SMALL = ["--width", "8", "--steps", "2", "--average", "1", "--dropout", "0"]
LEARNT = ["--patience", "99", "--learning-rate", "0.03", "--warmup", "1"]
LEARNT += ["--schedule", "constant"]


def trained(folder: Path, data: list[str], *options: str) -> Path:
    out = folder / "run"
    assert main(["train", "classify", "--data", *data, *SMALL, *options, "--out", str(out)]) == 0
    return out


def predicted(run: Path, lines: list[str], folder: Path) -> list[dict]:
    (folder / "in.txt").write_text("\n".join(lines) + "\n", "utf-8")
    out = folder / "out.jsonl"
    command = ["predict", str(run), "--input", str(folder / "in.txt"), "--output", str(out)]
    assert main([*command, "--json"]) == 0
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def test_sequences_of_vectors_are_learnt_and_named_by_line(tmp_path, capsys):
    data = write(tmp_path, "classify vectors")
    learnt = [*LEARNT, "--steps", "90", "--batch-tokens", "20", "--valid", *data]
    run = trained(tmp_path, data, *learnt)
    assert "vectors of 3 numbers" in capsys.readouterr().err
    values = np.load(data[0])
    np.save(tmp_path / "one.npy", values[5])
    np.save(tmp_path / "single.npy", values[5, 0])
    names = [f"{data[0]}[5]", str(tmp_path / "one.npy"), str(tmp_path / "single.npy"), ""]
    found = predicted(run, names, tmp_path)
    assert found[0]["probabilities"] == pytest.approx(found[1]["probabilities"], abs=1e-6)
    assert found[2]["output"] in ("up", "down")
    assert found[3]["output"] == ""
    loaded = regard.load(run)
    task, model = loaded.task, loaded.model
    assert [p.output for p in task.predict(model, [values[5]])] == [found[0]["output"]]
    assert main(["evaluate", str(run), "--data", *data, "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert measured["metrics"]["accuracy"]["value"] >= 0.9
    gold = Path(data[1]).read_text().split()
    assert [line["label"] for line in measured["lines"]] == gold
    output = [line["predicted"] for line in measured["lines"]]
    labels = measured["report"]["confusion"]["labels"]
    assert measured["report"]["confusion"]["counts"] == [
        [list(zip(gold, output, strict=True)).count((row, column)) for column in labels]
        for row in labels
    ]
    picture = tmp_path / "confusion.svg"
    evaluate = ["evaluate", str(run), "--data", *data]
    assert main([*evaluate, "--picture", str(picture)]) == 0
    shown = capsys.readouterr().out
    assert "label  precision %  recall %" in shown
    assert "gold ↓  predicted →" in shown
    assert ">predicted</text>" in picture.read_text("utf-8")
    assert main([*evaluate, "--picture", str(tmp_path / "confusion.gif")]) == 2
    assert "expected a file that ends in one of .svg, .png, .pdf" in capsys.readouterr().err
    assert main(["evaluate", str(run), *evaluate[1:], "--picture", str(picture)]) == 2
    assert "expected one run, got 2" in capsys.readouterr().err
    shutil.copytree(run, tmp_path / "twin")
    assert main(["evaluate", str(tmp_path / "twin"), *evaluate[1:]]) == 0
    assert "F1 of down" in capsys.readouterr().out


def test_a_table_of_files_of_several_lengths_and_one_vector_a_text(tmp_path):
    for i in range(8):
        np.save(tmp_path / f"{i}.npy", np.full((1 + i % 3, 4), float(i % 2)))
    rows = "".join(f"{i}.npy\t{i % 2}\n" for i in range(8))
    (tmp_path / "clips.tsv").write_text("text\tlabel\n" + rows)
    trained(tmp_path, [str(tmp_path / "clips.tsv")])
    np.save(tmp_path / "flat.npy", np.eye(8))
    (tmp_path / "flat.txt").write_text("a\nb\n" * 4)
    (tmp_path / "other").mkdir()
    trained(tmp_path / "other", [str(tmp_path / "flat.npy"), str(tmp_path / "flat.txt")])


def test_words_vote_by_default_and_vectors_do_not(tmp_path, vector_run):
    _, run, _ = vector_run
    assert regard.load(run).model.naive_bayes is None
    voting = regard.load(trained(tmp_path, opinions(tmp_path)))
    assert voting.model.naive_bayes.evidence.longest == 2
    data, _, _ = make_configs(TASKS["classify"], {"pretrained": "elsewhere"})
    assert data.word_ngrams == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("the film", "this run reads vectors: expected the name of a .npy file"),
        ("{x}", "holds several sequences: name one of them, as in {x}[0]"),
        ("{x}[99]", "{x}[99]: no such sequence: shape [24, 5, 3]"),
        ("nowhere.npy", "nowhere.npy: no such file"),
        ("{wide}", "wide.npy: float64 of shape [2, 7]: expected numbers [t, 3] or [3]"),
        ("{nan}", "nan.npy: holds NaN or infinite values"),
    ],
)
def test_vectors_that_do_not_fit_are_named(line, words, vector_run, capsys):
    folder, run, data = vector_run
    names = {"x": data[0], "wide": folder / "wide.npy", "nan": folder / "nan.npy"}
    (folder / "bad.txt").write_text(line.format(**names) + "\n")
    assert main(["predict", str(run), "--input", str(folder / "bad.txt")]) == 2
    error = capsys.readouterr().err
    assert words.format(**names) in error
    assert error.count("\n") == 1


def test_data_of_another_kind_are_refused(vector_run, tmp_path, capsys):
    _, run, data = vector_run
    np.save(tmp_path / "wide.npy", np.zeros((24, 2, 7)))
    assert main(["evaluate", str(run), "--data", str(tmp_path / "wide.npy"), data[1]]) == 2
    assert "x.txt:1: vectors of 7 numbers, but those of the training data have 3" in (
        capsys.readouterr().err
    )
    texts = write(tmp_path, "classify")
    assert main(["evaluate", str(run), "--data", *texts]) == 2
    assert "words where the training data has vectors" in capsys.readouterr().err
    both = ["--data", *data, "--valid", str(tmp_path / "wide.npy"), data[1]]
    out = tmp_path / "mixed"
    assert main(["train", "classify", *both, *SMALL, "--out", str(out)]) == 2
    assert "vectors of 7 numbers" in capsys.readouterr().err
    assert not out.exists()


@pytest.fixture(scope="module")
def vector_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    data = write(folder, "classify vectors")
    np.save(folder / "wide.npy", np.zeros((2, 7)))
    np.save(folder / "nan.npy", np.full((2, 3), np.nan))
    return folder, trained(folder, data), data


def test_several_labels(tmp_path, capsys):
    data = write(tmp_path, "several")
    learnt = [*LEARNT, "--steps", "90", "--batch-tokens", "30", "--valid", *data]
    run = trained(tmp_path, data, "--several", *learnt)
    texts = [line.split("\t") for line in Path(data[0]).read_text().splitlines()[1:]]
    found = predicted(run, [text for text, _ in texts], tmp_path)
    names = ["long", "neg", "pos", "short"]
    assert list(found[0]["probabilities"]) == names
    for one in found:
        likely = [name for name, chance in one["probabilities"].items() if chance > 0.5]
        assert one["output"] == ",".join(likely)
    capsys.readouterr()
    assert main(["evaluate", str(run), "--data", *data, "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)["metrics"]

    def hot(labels: str) -> list[int]:
        return [int(name in labels.split(",")) for name in names]

    gold, ours = [hot(labels) for _, labels in texts], [hot(one["output"]) for one in found]
    for name in ("micro", "macro"):
        expected = f1_score(gold, ours, average=name)
        assert measured[f"{name}_f1"]["value"] == pytest.approx(expected)
    exact = np.mean([g == o for g, o in zip(gold, ours, strict=True)])
    assert measured["accuracy"]["value"] == pytest.approx(exact)
    assert measured["micro_f1"]["value"] > 0.8


def test_several_labels_in_fasttext_lines_lists_and_with_another_separator(tmp_path):
    (tmp_path / "a.txt").write_text("__label__x __label__y good\n__label__x bad\n" * 6)
    run = trained(tmp_path, [str(tmp_path / "a.txt")], "--several", "--separator", " + ")
    assert regard.load(run).task._join(("x", "y")) == "x + y"
    rows = [{"text": f"t {i}", "labels": ["x", "y"][: i % 3]} for i in range(9)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "none").mkdir()
    trained(tmp_path / "none", [str(tmp_path / "a.jsonl")], "--several")


def test_the_loss_of_several_labels_is_that_of_each(tmp_path):
    run = regard.load(
        trained(tmp_path, write(tmp_path, "several"), "--several", "--word-dropout", "0")
    )
    from regard.tasks.shared.splits import with_corpora

    task = with_corpora(run.task, run.folder.data)
    batch = task.batch(np.arange(5))
    logits = run.model(batch.words, batch.lengths).logits.double()
    for smoothing in (0.0, 0.2):
        wanted = batch.labels.double() * (1 - smoothing) + smoothing / 2
        chances = logits.sigmoid()
        by_hand = -(wanted * chances.log() + (1 - wanted) * (1 - chances).log()).sum()
        loss, _ = task.loss(run.model, batch, smoothing, [])
        torch.testing.assert_close(loss.total.double(), by_hand, rtol=1e-5, atol=1e-5)


def test_several_labels_need_the_option(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("__label__x __label__y good\n__label__x bad\n" * 6)
    assert main(["train", "classify", "--data", str(tmp_path / "a.txt"), *SMALL]) == 2
    assert "a.txt:1: 2 labels: expected one per text, or --several" in (capsys.readouterr().err)


@pytest.mark.parametrize("encoder", ["recurrent", "transformer"])
def test_experts_share_the_decision_and_their_gate_is_seen(encoder, tmp_path):
    run = trained(tmp_path, write(tmp_path, "classify"), "--experts", "3", "--encoder", encoder)
    (found,) = predicted(run, ["the film is good"], tmp_path)
    assert len(found["experts"]) == 3
    assert sum(found["experts"]) == pytest.approx(1)
    loaded = regard.load(run)
    ids = torch.tensor(loaded.task.tokenizer.ids(["the film is good"]))
    weights = loaded.model(ids, torch.tensor([4]), need_weights=True).weights
    assert weights["experts"].flatten().tolist() == pytest.approx(found["experts"])
    assert ("encoder.0.experts" in weights) == (encoder == "transformer")


@pytest.mark.parametrize(("name", "frozen"), [("g.txt", True), ("g.vec", False), ("g.gz", True)])
def test_word_vectors_from_a_file(name, frozen, tmp_path, capsys):
    data = write(tmp_path, "classify")
    text = ("3 4\n" if name == "g.vec" else "") + "good 1 2 3 4\nbad 5 6 7 8\nelse 0 0 0 1\n"
    raw = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name == "g.gz" else raw)
    options = ["--vectors", str(tmp_path / name), *(["--freeze"] if frozen else [])]
    run = trained(tmp_path, data, *options, "--warmup", "1")
    assert "2 of 11 words have vectors of 4 numbers" in capsys.readouterr().err
    (tmp_path / name).unlink()
    task = regard.load(run).task
    good = task.tokenizer.ids(["good"])[0][0]
    table = read_tensors(run / "model.safetensors")[0]["inputs.words.weight"]
    assert table.shape[1] == 4
    assert torch.equal(table[good] * 2, torch.tensor([1.0, 2.0, 3.0, 4.0])) == frozen
    # the same command goes on without the file
    assert trained(tmp_path, data, *options, "--warmup", "1") == run


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--freeze"], "--freeze: requires vectors"),
        (
            ["--vectors", "{v}", "--tokenizer", "bpe"],
            "--vectors: requires tokenizer word",
        ),
        (["--vectors", "nowhere.txt"], "nowhere.txt: no such file"),
        (["--vectors", "{other}"], "other.txt: has none of the 11 words of the data"),
        (["--vectors", "{v}", "--word-size", "7"], "have 4 numbers, not 7"),
        (["--separator", ""], "--separator: expected a text"),
        (["--pooling", "sum", "--normalize", "sparsmax"], "did you mean 'sparsemax'"),
        (["--pooling", "sum", "--encoder", "none", "--cell", "gruu"], "did you mean 'gru'"),
        (["--pooling", "sum", "--attention", "adittive"], "did you mean 'additive'"),
    ],
)
def test_options_that_do_not_go_together(options, words, tmp_path, capsys):
    names = {"v": tmp_path / "v.txt", "other": tmp_path / "other.txt"}
    names["v"].write_text("good 1 2 3 4\n")
    names["other"].write_text("gut 1 2 3 4\n")
    given = [option.format(**names) for option in options]
    data = ["--data", *write(tmp_path, "classify")]
    out = tmp_path / "run"
    assert main(["train", "classify", *data, *SMALL, *given, "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert words in error.splitlines()[-1]


def test_a_first_line_that_may_name_columns_is_said(tmp_path, capsys):
    rows = [f"text number {i}\t{'good' if i % 2 else 'bad'}" for i in range(20)]
    path = tmp_path / "tweets.tsv"
    path.write_text("\n".join(["Zitat\tStimmung", *rows]) + "\n")
    trained(tmp_path, [str(path)])
    said = capsys.readouterr().err
    assert "21 read, 21 kept" in said
    assert f"{path}:1 counts as an example, though no other has its label" in said
    assert "name the column with --label 'Stimmung'" in said
    command = ["train", "classify", "--data", str(path), *SMALL, "--out", str(tmp_path / "named")]
    assert main([*command, "--label", "Stimmung"]) == 0
    said = capsys.readouterr().err
    assert "20 read, 20 kept" in said
    assert "counts as an example" not in said
    path.write_text("\n".join(rows) + "\n")
    assert main([*command[:-1], str(tmp_path / "bare")]) == 0
    assert "counts as an example" not in capsys.readouterr().err


def opinions(folder: Path) -> list[str]:
    random = np.random.default_rng(3)
    rows = []
    for i in range(60):
        words = random.choice(["film", "plot", "it", "was", "never", "quite"], 5).tolist()
        words.insert(i % 5, ["dull", "bright", "odd"][i % 3])
        rows.append(f"{' '.join(words)}\t{['no', 'yes', 'who'][i % 3]}")
    (folder / "opinions.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    return [str(folder / "opinions.tsv")]


@pytest.mark.parametrize("several", [False, True])
def test_ngrams_vote_alike_in_batches_packed_runs_traces_and_explanations(several, tmp_path):
    options = ["--word-ngrams", "2", *(["--several"] if several else [])]
    run = regard.load(trained(tmp_path, opinions(tmp_path), *options))
    texts = ["a dull plot", "it was never quite bright it was", "xyzzy", "film"]
    together = run.task.probabilities(run.model, texts)
    alone = [run.task.probabilities(run.model, [text])[0] for text in texts]
    np.testing.assert_allclose(alone, together, atol=1e-6)
    assert run.task.labels.names[together[0].argmax()] == "no"
    assert main(["pack", str(tmp_path / "run"), "--to", str(tmp_path / "packed")]) == 0
    packed = regard.load(tmp_path / "packed")
    np.testing.assert_array_equal(packed.task.probabilities(packed.model, texts), together)

    trace = run.trace("a dull plot")
    share = run.model.naive_bayes.network_weight
    assert trace.prediction["network_weight"] == pytest.approx(float(share))
    votes = {v["ngram"]: v["logits"] for v in trace.prediction["votes"]}
    assert max(votes["dull"], key=votes["dull"].get) == "no"
    explained = explain(run, "a dull plot")
    rows = [a.values for a in explained.attributions if a.method == "n-gram votes"]
    assert len(rows) == (3 if several else 1)
    by_label = {name: sum(v[name] for v in votes.values()) for name in run.task.labels.names}
    if several:
        outputs = explained.prediction["explained"]["outputs"]
        signs = [-1 if name.startswith("not ") else 1 for name in outputs]
        expected = [s * by_label[n] for s, n in zip(signs, run.task.labels.names, strict=True)]
    else:
        own = by_label.pop(explained.output)
        expected = [own - sum(by_label.values()) / 2]
    np.testing.assert_allclose([sum(row) for row in rows], expected, atol=1e-5)


def test_training_judges_a_text_without_its_own_ngrams(tmp_path):
    run = regard.load(
        trained(tmp_path, opinions(tmp_path), "--word-dropout", "0", "--word-ngrams", "2")
    )
    from regard.tasks.shared.splits import with_corpora

    task = with_corpora(run.task, run.folder.data)
    batch = task.batch(np.arange(9))
    model = run.model.train()
    hot = torch.nn.functional.one_hot(batch.labels, 3).float()
    with torch.no_grad():
        (loss, _), _ = task.loss(model, batch, 0.0, [])
        network = model(batch.words, batch.lengths, votes=False).logits
        votes = model.naive_bayes(batch.words, batch.lengths, hot)
        seen = model(batch.words, batch.lengths).logits
        (validated, _), _ = task.loss(model.eval(), batch, 0.0, [])
    entropy = torch.nn.functional.cross_entropy
    apart = [entropy(part, batch.labels, reduction="sum") for part in (network, votes)]
    assert float(loss) == pytest.approx(float(sum(apart)) / 2)
    assert float(validated) == pytest.approx(float(entropy(seen, batch.labels, reduction="sum")))
    share = model.naive_bayes.network_weight
    assert float(entropy(votes, batch.labels)) > float(
        entropy(seen - share * network, batch.labels)
    )


def test_a_run_that_was_made_before_ngrams_voted_has_none_and_resumes(tmp_path, capsys):
    run = trained(tmp_path, opinions(tmp_path), "--word-ngrams", "0")
    config = json.loads((run / "config.json").read_text())
    assert config["data"].pop("word_ngrams") == 0
    (run / "config.json").write_text(json.dumps(config))
    assert regard.load(run).model.naive_bayes is None
    assert main(["train", "--resume", str(run), "--steps", "3"]) == 0
    assert "finished after 2 updates; extending" in capsys.readouterr().err
    assert regard.load(run).model.naive_bayes is None


@pytest.fixture
def voters(tmp_path):
    """A task with its corpora, a classifier with votes, and all validation texts."""
    from regard.tasks.shared.splits import with_corpora

    data = opinions(tmp_path)
    run = regard.load(trained(tmp_path, data, "--word-ngrams", "2", "--valid", *data))
    task = with_corpora(run.task, run.folder.data)
    return task, run.model, task.batch_of(task.valid, np.arange(60))


def likelihoods(model, batch, weight):
    """The log-probability of each label by the network with this weight, and votes."""
    with torch.no_grad():
        alone = model(batch.words, batch.lengths, votes=False).logits.double()
        votes = model.naive_bayes(batch.words, batch.lengths).double()
    chances = (alone * weight + votes).log_softmax(-1)
    return chances.gather(1, batch.labels[:, None])[:, 0].numpy()


@pytest.mark.parametrize("sharpness", [3, 40])
def test_the_network_is_weighed_by_what_it_surely_adds_to_the_likelihood(voters, sharpness):
    from scipy.optimize import minimize_scalar

    from regard.tasks.classification.task import fit_network_weight

    task, model, batch = voters
    with torch.no_grad():
        model.decision.weight *= sharpness
        merit = fit_network_weight(task, model, model.naive_bayes)
    without = likelihoods(model, batch, 0.0)

    def surely(exponent):
        gain = likelihoods(model, batch, 2**exponent) - without
        return gain.sum() - gain.std() * len(gain) ** 0.5

    best = minimize_scalar(lambda x: -surely(x), bounds=(-4, 1), method="bounded").x
    weight = float(model.naive_bayes.network_weight)
    if surely(best) <= 0.01:
        assert weight == 0
        assert merit == pytest.approx(without.mean(), rel=1e-4)
    else:
        assert np.log2(weight) == pytest.approx(best, abs=0.26)
        assert merit == pytest.approx((without.sum() + surely(np.log2(weight))) / 60, rel=1e-4)


def test_a_network_that_adds_nothing_has_no_weight(voters):
    from regard.tasks.classification.task import fit_network_weight

    task, model, _ = voters
    with torch.no_grad():
        model.decision.weight.normal_(std=3, generator=torch.Generator().manual_seed(5))
        fit_network_weight(task, model, model.naive_bayes)
    assert float(model.naive_bayes.network_weight) == 0


def test_votes_begin_with_the_likeliest_weights_for_texts_that_were_left_out(voters):
    from scipy.optimize import minimize

    from regard.layers.naive_bayes import GAIN

    task, _, _ = voters
    votes = task.build().naive_bayes
    batch = task.batch(np.arange(60))
    with torch.no_grad():
        evidence = votes.evidence_of_texts(batch.words, batch.lengths, task.hot(batch.labels))

    def loss(weight):
        logits = torch.einsum("bnc,n->bc", evidence.double(), torch.from_numpy(weight))
        entropy = torch.nn.functional.cross_entropy(logits, batch.labels, reduction="sum")
        return float(entropy) + float((weight**2).sum()) / 8

    best = minimize(loss, np.ones(2), method="Nelder-Mead").x
    np.testing.assert_allclose(votes.weight.detach().numpy() * GAIN, best, atol=0.01)


def test_votes_that_mislead_begin_without_weight(tmp_path):
    """Labels by chance: texts that are left out are judged wrong as often as right."""
    random = np.random.default_rng(4)
    rows = ["text\tlabel"]
    for i in range(300):
        rows.append(" ".join(random.choice(list("abcdefgh"), 6)) + f"\t{['x', 'y'][i % 2]}")
    (tmp_path / "data.tsv").write_text("\n".join(rows) + "\n")
    run = regard.load(trained(tmp_path, [str(tmp_path / "data.tsv")]))
    chances = run.predict_proba([row.split("\t")[0] for row in rows[1:]])
    assert np.abs(chances - 0.5).max() < 0.35
