"""From files to predictions, for every task: in Python and on the command line."""

import io
import json
import math
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sacrebleu import corpus_bleu, corpus_chrf
from seqeval.metrics import f1_score as seqeval_f1
from sklearn.metrics import accuracy_score
from sklearn.metrics import f1_score as sklearn_f1

import regard
from regard.cli import main
from regard.inference.evaluations import evaluation_name, saved_evaluations, summary
from regard.inference.run import clean_texts
from tests.training.tiny import OPTIONS, write_data

TASKS = ("translation", "language", "classify", "tag")
STRANGE = ["ein haus", "", "  \t ", "x\u2028y", "a\rb", "tab\tbed", "🦜 ﷽ \u200b", "\u200b", "\x85"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A tiny trained run of each task, and the files that it was trained on."""
    made = {}
    for task in TASKS:
        folder = tmp_path_factory.mktemp(task)
        data = write_data(folder, task)
        options = OPTIONS[task] | {"steps": 3, "average": 1}
        made[task] = (regard.train(task, data, out=folder / "run", **options), data)
    return made


@pytest.mark.parametrize("task", TASKS)
def test_python_trains_loads_predicts_and_evaluates(task, runs):
    run, data = runs[task]
    again = regard.load(run.folder.path)
    texts = ["the film was great", "not bad"]
    assert again(texts) == run(texts)
    evaluation = run.evaluate(data if len(data) > 1 else data[0])
    values = {name: metric.value for name, metric in evaluation.metrics.items()}
    expected = BY_HAND[task](again, values, *(Path(path).read_text("utf-8") for path in data))
    assert evaluation.main in expected
    for name, value in expected.items():
        assert values[name] == pytest.approx(value, rel=1e-5), name
    assert run("the film") == run(["the film"])[0]
    assert run.predict("the film").output == run("the film")
    assert run("") == ""


@pytest.mark.parametrize("task", TASKS)
def test_a_run_says_what_it_is_in_a_line_and_on_a_card(task, runs):
    run, data = runs[task]
    assert repr(run).startswith(f"Run({str(run.folder.path)!r}: {task}, ")
    evaluation, trace = run.evaluate(data), run.trace("the film was great")
    for shown in (run, evaluation, run.predict("the film was great"), trace, run.history):
        assert len(repr(shown)) < 1000
        assert "\n" not in repr(shown)
    for shown in (run, evaluation, run.predict("the film was <b>great"), run.history):
        html = shown._repr_html_()
        assert html.count("<tr>") < 40
        assert "<b>great" not in html
    assert run.config["task"] == task
    history = run.history
    lines = (run.folder.metrics).read_text("utf-8").splitlines()
    single = [json.loads(line) for line in lines if "averaged" not in line]
    assert [record["step"] for record in history] == [line["step"] for line in single]
    main = evaluation.main
    frame = history.to_pandas()
    assert list(frame[main]) == [line["metrics"][main]["value"] for line in single]
    assert {"validation_loss", "learning_rate", "average"} <= set(frame.columns)


def test_labels_and_their_probabilities(runs):
    run, _ = runs["classify"]
    texts = ["the film", "", "not bad"]
    rows = run.predict_proba(texts)
    assert run.labels == ("0", "1")
    assert rows.shape == (3, 2)
    assert np.isnan(rows[1]).all()
    by_label = run.predict("not bad").details["probabilities"]
    assert rows[2] == pytest.approx([by_label[name] for name in run.labels])
    assert run.predict_proba("not bad") == pytest.approx(rows[2])
    run, _ = runs["tag"]
    first, empty, last = run.predict_proba(["the film was", "", "film"])
    assert (first.shape, empty.shape) == ((3, len(run.labels)), (0, len(run.labels)))
    assert first.sum(1) == pytest.approx(np.ones(3), abs=1e-5)
    details = run.predict("film").details
    tag = run.labels.index(details["tags"][0])
    assert last[0, tag] == pytest.approx(details["probabilities"][0], rel=1e-5)
    run, _ = runs["translation"]
    with pytest.raises(regard.RegardError, match="labels does not apply to translation runs"):
        _ = run.labels


def test_explain_align_and_faithfulness_are_methods(runs):
    run, files = runs["translation"]
    explained = run.explain("the film was great")
    assert {row.method for row in explained.attributions} >= {"attention", "gradient"}
    pairs = [("the film was", "was film the"), ("", "x"), ("not bad", "bad not")]
    alignments = run.align(pairs)
    assert [one.source for one in alignments] == [["the", "film", "was"], [], ["not", "bad"]]
    assert [one.links for one in run.align(files)][:1] != [()]
    texts = ["the film was great", "not bad at all"]
    of_texts = run.faithfulness(texts, shuffles=1)
    of_pairs = run.faithfulness([(text, text) for text in texts], shuffles=1)
    assert of_texts.comprehensiveness == of_pairs.comprehensiveness
    assert of_texts.texts == 2
    assert "2 texts are not enough" in repr(of_texts)
    assert "\n" not in repr(of_texts)
    assert "comprehensiveness" in of_texts._repr_html_()


@pytest.mark.parametrize("texts", [None, 3, b"text"])
def test_what_is_no_text_is_refused_in_a_line(texts):
    with pytest.raises(ValueError, match=r"^expected a text or a list of texts, got "):
        clean_texts(texts)


def test_no_examples_are_refused_in_the_words_of_python(runs, tmp_path):
    run, _ = runs["classify"]
    with pytest.raises(regard.RegardError, match="option data: no examples were given"):
        run.evaluate([])
    with pytest.raises(regard.RegardError, match=r"option data: .* has no test data of its own"):
        run.evaluate()
    with pytest.raises(regard.RegardError, match="option data: no examples were given"):
        regard.train("classify", data=[], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_notebook_shows_an_error_of_ours_in_one_line(tmp_path):
    with pytest.raises(regard.RegardError) as caught:
        regard.load(tmp_path / "nothing")
    (line,) = caught.value._render_traceback_()
    assert line.startswith("RegardError: ")
    assert "\n" not in line


def translation_by_hand(run, values, sources, targets):
    outputs, references = run(sources.splitlines()), [targets.splitlines()]
    return {
        "bleu": corpus_bleu(outputs, references, force=True).score,
        "chrf": corpus_chrf(outputs, references).score,
    }


def classify_by_hand(run, values, table):
    texts, labels = zip(*(line.split("\t") for line in table.splitlines()[1:]), strict=True)
    outputs = run(list(texts))
    return {
        "accuracy": accuracy_score(labels, outputs),
        "macro_f1": sklearn_f1(labels, outputs, average="macro"),
    }


def tag_by_hand(run, values, conll):
    rows = [[line.split() for line in block.split("\n")] for block in conll.strip().split("\n\n")]
    gold = [[tag for _, tag in row] for row in rows]
    outputs = [line.split() for line in run([" ".join(word for word, _ in row) for row in rows])]
    return {
        "accuracy": accuracy_score([*chain(*gold)], [*chain(*outputs)]),
        "f1": seqeval_f1(gold, outputs),
    }


def language_by_hand(run, values, text):
    """All perplexities are of one text: their totals agree; the end of a line is a word too."""
    lines, total = text.splitlines(), len(text.encode()) * math.log(values["perplexity_per_byte"])
    tokens = sum(len(ids) + 1 for ids in run.task.tokenizer.ids(lines))
    return {
        "perplexity_per_word": math.exp(total / (len(text.split()) + len(lines))),
        "perplexity_per_token": math.exp(total / tokens),
    }


BY_HAND = {
    "translation": translation_by_hand,
    "language": language_by_hand,
    "classify": classify_by_hand,
    "tag": tag_by_hand,
}


@pytest.mark.parametrize("task", TASKS)
def test_one_line_comes_out_for_each_that_goes_in(task, runs):
    run, _ = runs[task]
    texts = [*STRANGE, "word " * 3000, "x" * 20000]
    outputs = run(texts)
    assert len(outputs) == len(texts)
    for text, output in zip(texts, outputs, strict=True):
        assert len(output.splitlines()) <= 1
        if not text.strip():
            assert output == ""
    if task == "tag":
        assert [len(o.split()) for o in outputs] == [len(t.split()) for t in texts]
    if task == "classify":
        assert set(outputs) <= {"", "0", "1"}


@pytest.mark.parametrize("task", TASKS)
@settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(st.text(max_size=12) | st.sampled_from(STRANGE), max_size=5))
def test_no_text_breaks_a_run(task, texts, runs):
    run, _ = runs[task]
    options = {"language": {"tokens": 5}, "translation": {"beam": 2}}.get(task, {})
    outputs = run(texts, **options)
    assert len(outputs) == len(texts)
    assert all(len(output.splitlines()) <= 1 for output in outputs)


@pytest.mark.parametrize("task", ["classify", "tag", "translation"])
def test_a_text_has_the_same_output_alone_and_in_company(task, runs):
    run, _ = runs[task]
    texts = ["the film was great", "not", "very bad plot is the film", *STRANGE]
    assert run(texts) == [run([text])[0] for text in texts]


@pytest.mark.parametrize("task", TASKS)
def test_predict_reads_and_writes_lines(task, runs, tmp_path, capfdbinary, monkeypatch):
    run, _ = runs[task]
    folder = str(run.folder.path)
    given = "the film\r\n\nnot\rbad\nx\u2028y\nlast".encode()
    expected = run(["the film", "", "not", "bad", "x\u2028y", "last"])
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given)))
    assert main(["predict", folder]) == 0
    assert capfdbinary.readouterr().out.decode().split("\n") == [*expected, ""]
    (tmp_path / "in.txt").write_bytes(given)
    command = ["predict", folder, "--input", str(tmp_path / "in.txt"), "--json"]
    assert main([*command, "--output", str(tmp_path / "out.jsonl")]) == 0
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_bytes().splitlines()]
    assert [record["output"] for record in records] == expected
    assert [record["input"] for record in records][1] == ""
    if task == "classify":
        assert sum(records[0]["probabilities"].values()) == pytest.approx(1)
        assert records[0]["probabilities"].keys() == {"0", "1"}
    if task == "translation":
        assert records[0]["score"] <= 0


@pytest.mark.parametrize("task", TASKS)
def test_evaluate_prints_what_it_measured(task, runs, capsys):
    run, data = runs[task]
    command = ["evaluate", str(run.folder.path), "--data", *data]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("30 read, 30 kept")
    found = run.evaluate(data)
    for metric in found.metrics.values():
        assert f"{metric.name} " in printed.out
    assert main([*command, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["metrics"][found.main]["value"] == found.metrics[found.main].value


def test_evaluate_takes_the_columns_of_other_files(runs, tmp_path, capsys):
    run, (data,) = runs["classify"]
    examples = Path(data).read_text("utf-8").splitlines()[1:]
    rows = [f"{i}\t{row}\tx" for i, row in enumerate(examples)]
    other = tmp_path / "other.tsv"
    other.write_text("\n".join(["Nr\tZitat\tStimmung\tArt", *rows]) + "\n", "utf-8")
    command = ["evaluate", str(run.folder.path), "--data", str(other)]
    assert main(command) == 2
    assert "(Nr, Zitat, Stimmung, Art): choose with --text and --label" in capsys.readouterr().err
    columns = {"text": "Zitat", "label": "Stimmung"}
    assert main([*command, "--json", "--text", "Zitat", "--label", "Stimmung"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("30 read, 30 kept")
    assert json.loads(printed.out)["metrics"] == summary(run.evaluate(data))["metrics"]
    saved = saved_evaluations(run.folder)[evaluation_name([str(other)])]
    assert saved["options"] == columns
    assert run.evaluate(str(other), **columns).metrics == run.evaluate(data).metrics
    with pytest.raises(regard.RegardError, match="option source: does not apply to classify runs"):
        run.evaluate(data, source="1")
    with pytest.raises(regard.RegardError, match="option text: requires data"):
        run.evaluate(text="1")
    language, _ = runs["language"]
    condition = ["evaluate", str(language.folder.path), "--data", str(other), "--text", "Zitat"]
    assert main([*condition, "--condition", "Stimmung"]) == 2
    assert "--condition: this model was trained without conditions" in capsys.readouterr().err
    assert main([*condition, "--label", "Stimmung"]) == 2
    assert "--label does not apply to language runs" in capsys.readouterr().err


def test_what_is_too_long_is_truncated_and_reported(runs, tmp_path, capsys):
    run, _ = runs["translation"]
    (tmp_path / "in.txt").write_text("the film\n" + "very " * 500 + "\n")
    out = tmp_path / "out.txt"
    given = ["--input", str(tmp_path / "in.txt"), "--output", str(out), "--beam", "1"]
    assert main(["predict", str(run.folder.path), *given]) == 3
    assert "1 line is longer than this model reads: truncated" in capsys.readouterr().err
    assert out.read_text("utf-8").count("\n") == 2


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("predict nowhere", "nowhere: no such run folder"),
        ("predict {data}", "a file, not a run folder"),
        ("predict {run} --input nothing.txt", "nothing.txt: cannot be read"),
        ("predict {run} --input {latin}", "latin.txt:1:4: byte 0xe9 is not UTF-8"),
        ("predict {run} --batch-size 0", "--batch-size: expected a whole number"),
        ("predict {run} --beam 2", "--beam does not apply to classify runs"),
        ("predict {run} --input {one} --output /nowhere/at/all", "cannot be written"),
        ("evaluate {run} --data nothing.tsv", "nothing.tsv: no such file"),
        ("evaluate {run} --data {empty}", "empty.tsv"),
        ("evaluate {run} --data {unseen}", "unseen.tsv:2: unknown label 'maybe'"),
        ("evaluate {bare} --data {data}", "has no weights yet"),
        ("evaluate {broken} --data {data}", "model.safetensors: cannot be read"),
        ("evaluate {foreign} --data {data}", "(its width is 8, not 16): restore config.json"),
        ("evaluate {strange} --data {data}", "unknown option 'colour'"),
        ("train classify --data {empty}", "empty.tsv"),
        ("train classify --data {one}", "one.tsv"),
        ("train translation --data {three} {four}", "3 lines"),
        ("predit {run}", "unknown command 'predit': did you mean 'predict'?"),
        ("data describe {data} --task classfy", "did you mean 'classify'?"),
        ("data split {data} --task classify --out {run}", "already contains other files"),
        ("data make classifi --out x", "did you mean 'classify'?"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command, words, runs, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run, data = runs["classify"]
    names = {"run": run.folder.path, "data": data[0]}
    for name, text in {
        "empty.tsv": b"",
        "one.tsv": b"text\tlabel\nfine\t1\n",
        "unseen.tsv": b"text\tlabel\nfine\tmaybe\n",
        "latin.txt": b"caf\xe9\n",
        "three.txt": b"a\nb\nc\n",
        "four.txt": b"a\nb\nc\nd\n",
    }.items():
        (tmp_path / name).write_bytes(text)
        names[name.split(".")[0]] = tmp_path / name
    for name in ("bare", "broken", "foreign", "strange"):
        names[name] = tmp_path / name
        shutil.copytree(run.folder.path, names[name])
    (names["bare"] / "model.safetensors").unlink()
    (names["broken"] / "model.safetensors").write_bytes(b"nonsense")
    config = json.loads((names["foreign"] / "config.json").read_text())
    config["model"]["width"] = 16
    (names["foreign"] / "config.json").write_text(json.dumps(config))
    config["model"]["colour"] = "red"
    (names["strange"] / "config.json").write_text(json.dumps(config))
    before = {path: path.read_bytes() for path in run.folder.path.rglob("*") if path.is_file()}
    assert main(command.format(**names).split()) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("regard: ")
    assert error.count("\n") == 1
    assert {p: p.read_bytes() for p in run.folder.path.rglob("*") if p.is_file()} == before


def test_describe_and_split(runs, tmp_path, capsys):
    _, data = runs["classify"]
    assert main(["data", "describe", "--data", *data, "--task", "classify"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][:2] == ["examples", "30"]
    assert any(words[:2] == ["columns", "text"] for words in lines)
    assert any(words[0] == "per" and "median" in words for words in lines)
    start = next(i for i, words in enumerate(lines) if words[0] == "labels")
    assert sum(int(words[1]) for words in lines[start + 1 :]) == 30
    out = tmp_path / "parts"
    command = ["data", "split", *data, "--task", "classify", "--out", str(out)]
    assert main([*command, "--valid", "0.2", "--test", "0.1"]) == 0
    written = {path.name: path.read_text().splitlines() for path in out.iterdir()}
    assert {name: len(text) - 1 for name, text in written.items()} == {
        "train.tsv": 21,
        "valid.tsv": 6,
        "test.tsv": 3,
    }


def test_importing_the_package_brings_no_more_than_its_heart():
    """Tasks, readers and training come when they are called."""
    code = "import sys, regard; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {f"regard.{name}" for name in ("tasks", "training", "data", "models", "inference")}
    assert not {*packages, "pyarrow", "tokenizers", "sacrebleu"} & set(done.stdout.split())
