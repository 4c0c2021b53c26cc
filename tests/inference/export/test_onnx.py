"""Exported graphs in onnxruntime, held against the models that they were written from."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import regard
from regard.attention import normalizers
from regard.cli import main
from regard.inference.export import graphs_of
from regard.models import AlgorithmConfig, AlgorithmModel
from tests.models import catalogue
from tests.tasks.tasks_data import write
from tests.training.tiny import OPTIONS, write_data

TOLERANCE = 1e-4
SHAPES = ([7, 4, 1], [5], [3, 11], [2, 2, 2, 2, 2])
"""Lengths of the sentences of a batch."""


def opened(graph):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph.bytes("graph"), options)


def run(session, given):
    named = {port.name: torch.as_tensor(given[port.name]).numpy() for port in session.get_inputs()}
    return dict(
        zip([port.name for port in session.get_outputs()], session.run(None, named), strict=True)
    )


def following(found):
    return {f"state.{name[5:]}": value for name, value in found.items() if name[:5] == "next."}


def assert_same(found, expected, weights, name="logits"):
    """The same numbers and the same weights, none more and none less."""
    close = {"atol": TOLERANCE, "rtol": 1e-3}  # a sum of scores may nearly cancel
    np.testing.assert_allclose(found[name], expected.numpy(), **close)
    got = {name[8:]: value for name, value in found.items() if name.startswith("weights.")}
    assert got.keys() == weights.keys()
    for name, value in weights.items():
        np.testing.assert_allclose(got[name], value.numpy(), err_msg=name, **close)


def stirred(model):
    """With biases and first states that are not zero, so that leaving one out is seen.

    Words are short, so that no look is a tie that rounding decides.
    """
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1 or not parameter.any():
            torch.nn.init.normal_(parameter, std=0.3)
        if name.endswith("words.weight"):
            parameter.data *= 0.3
    return model.eval()


def batch(lengths):
    longest = max(lengths)  # no word twice: a tie between two of its places is decided by rounding
    places = torch.rand(len(lengths), catalogue.SOURCE_WORDS - 1).argsort(1)
    words = 1 + places[:, :longest]
    characters = catalogue.ids(catalogue.CHARACTERS, len(lengths), longest, 4)
    characters[:, :, 2:] *= torch.rand(len(lengths), longest, 2).round().long()
    return {"words": words, "source": words, "lengths": torch.tensor(lengths)} | {
        "characters": characters,
        "target": catalogue.ids(catalogue.TARGET_WORDS, len(lengths), 4),
        "label": torch.arange(len(lengths)) % 3,
        "vector": torch.randn(len(lengths), catalogue.FEATURES),
    }


@torch.no_grad()
def check_whole(model, shapes=SHAPES):
    (session,) = [opened(graph) for graph in graphs_of(model).values()]
    for lengths in shapes:
        given = batch(lengths)
        output = catalogue.run(model, given, need_weights=True)
        assert_same(run(session, given), output.logits, output.weights)


@torch.no_grad()
def check_language(model, pieces=(3, 1, 4)):
    start, session = (opened(graph) for graph in graphs_of(model).values())
    for lengths in SHAPES[:2]:
        given = batch(lengths)
        state = model.start(len(lengths), label=given["label"], vector=given["vector"])
        passed = run(start, given)
        for size in pieces:
            tokens = catalogue.ids(catalogue.TARGET_WORDS, len(lengths), size)
            output, state = model(tokens, state, need_weights=True)
            found = run(session, passed | {"tokens": tokens})
            assert_same(found, output.logits, output.weights)
            passed = following(found)


@torch.no_grad()
def check_translator(model):
    encoder, step = (opened(graph) for graph in graphs_of(model).values())
    for lengths in SHAPES:
        given = batch(lengths)
        context = model.encode(given["source"], given["lengths"], need_weights=True)
        state, passed = model.start(context), run(encoder, given)
        assert_same(passed, context.lengths, context.weights, "source.lengths")
        for words in given["target"].unbind(1):
            chances, state, weights = model.step(words, state)
            found = run(step, passed | {"token": words})
            assert_same(found, chances, weights, "log_probabilities")
            passed |= following(found)


CHECKS = {"classifier": check_whole, "tagger": check_whole} | {
    "language": check_language,
    "translator": check_translator,
}


@pytest.mark.parametrize(("task", "name"), catalogue.ALL)
def test_every_model_has_the_same_outputs_and_weights(task, name):
    CHECKS[task](stirred(catalogue.make(task, name)))


@pytest.mark.parametrize("score", catalogue.SCORES)
def test_every_score(score):
    check_translator(stirred(catalogue.translator(attention=score)))
    check_whole(stirred(catalogue.classifier(attention=score, encoder="self")), SHAPES[:1])


@pytest.mark.parametrize("normalize", [*normalizers.NORMALIZERS, "top_k(2)"])
def test_every_normalizer(normalize):
    check_whole(stirred(catalogue.classifier(normalize=normalize, encoder="self")))


@pytest.mark.parametrize("encoder", ["none", "self", "recurrent", "transformer"])
def test_an_empty_sentence_reads_zeros(encoder):
    check_whole(stirred(catalogue.classifier(encoder=encoder)), [[5, 0, 3]])


def test_a_text_longer_than_a_transformer_reaches():
    check_language(stirred(catalogue.language(model="transformer", layers=1)), (20, 15, 1, 2))
    check_language(stirred(catalogue.language(model="transformer", max_length=1)), (3, 1))


@pytest.mark.parametrize("kind", ["recurrent", "transformer", "self", "none"])
def test_algorithm_models(kind):
    model = stirred(AlgorithmModel(AlgorithmConfig(model=kind, width=12, layers=1), 7))
    session = opened(graphs_of(model)["model"])
    for shape in ((3, 5), (1, 9)):
        symbols = torch.randint(7, shape)
        with torch.no_grad():
            output = model(symbols, need_weights=True)
        assert_same(run(session, {"symbols": symbols}), output.logits, output.weights)


@pytest.mark.parametrize("addressing", ["ntm", "dnc"])
@pytest.mark.parametrize("controller", ["feed_forward", "elman", "gru", "lstm"])
def test_algorithm_models_with_a_memory(addressing, controller):
    write_heads = 2 if addressing == "ntm" else 1
    check_memory(
        addressing=addressing, controller=controller, read_heads=3, write_heads=write_heads
    )


@pytest.mark.parametrize("score", ["additive", "bilinear", "cosine", "location"])
def test_a_memory_that_is_searched_by_any_score(score):
    check_memory(attention=score)


@pytest.mark.parametrize("slots", [1, 2])
def test_a_memory_with_hardly_a_slot(slots):
    check_memory(slots=slots)
    check_memory(slots=slots, addressing="dnc")


def check_memory(**options):
    """Step by step from an empty memory: what is said, and where the heads are.

    Of slots that a DNC uses equally, rounding decides which is taken first: there weights are
    compared whichever slot has them.
    """
    config = AlgorithmConfig(**{"width": 12, "slots": 6, "slot_width": 5} | options)
    model = stirred(AlgorithmModel(config, 7))
    graphs = graphs_of(model)
    start, step = opened(graphs["start"]), opened(graphs["model"])
    for batch, steps in ((3, 9), (1, 4)):
        symbols = torch.randint(7, (batch, steps))
        with torch.no_grad():
            output = model(symbols, need_weights=True)
        state = run(start, {"batch": [batch]})
        for number in range(steps):
            found = run(step, {"symbol": symbols[:, number]} | state)
            weights = {name: look[:, :, number] for name, look in output.weights.items()}
            state = following(found)
            if config.addressing == "dnc":
                weights = {name: look.sort(-1).values for name, look in weights.items()}
                for name in weights:
                    found[f"weights.{name}"].sort(-1)
            assert_same(found, output.logits[:, number], weights)


def test_what_has_no_graph_is_refused():
    with pytest.raises(regard.errors.RegardError, match="the score own_score cannot be exported"):
        graphs_of(catalogue.classifier(score=catalogue.own_score))


@pytest.fixture(scope="module")
def documented():
    """The functions that the page on exports shows."""
    page = (Path(__file__).parents[3] / "docs/export.md").read_text("utf-8")
    names = {}
    for code in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(code, names)
    return names


MODELS = {
    "translation": {"recurrent": {}, "transformer": {"model": "transformer", "heads": 2}},
    "language": {  # without n-grams, which are not exported
        "recurrent": {"ngrams": 0},
        "transformer": {
            "model": "transformer",
            "heads": 2,
            "attention": "scaled_dot",
            "ngrams": 0,
        },
    },
    "classify": {"recurrent": {}, "transformer": {"encoder": "transformer", "heads": 2}},
    "tag": {"recurrent": {}, "transformer": {"encoder": "transformer", "heads": 2}},
}


@pytest.fixture(
    scope="module", params=[(task, kind) for task in MODELS for kind in MODELS[task]], ids="-".join
)
def exported(request, tmp_path_factory):
    """A tiny trained run, and the folder of its export from the command line."""
    task, kind = request.param
    folder = tmp_path_factory.mktemp(task)
    options = OPTIONS[task] | {"steps": 6, "average": 1} | MODELS[task][kind]
    made = regard.train(task, write_data(folder, task), out=folder / "run", **options)
    assert main(["export", str(folder / "run"), "--to", "onnx", "--out", str(folder / "out")]) == 0
    return task, made, folder / "out"


def test_a_run_elsewhere_says_the_same(exported, documented):
    """By the code of the documentation; a classifier and a tagger get their ids from the run."""
    task, made, folder = exported
    texts = ["the film was great", "not", "very bad plot is the film naïve"]
    if task == "translation":
        found = [documented["translate"](folder, text) for text in texts]
        assert [text for text, _ in found] == made(texts, beam=1)
        assert all(
            np.allclose(w.sum(-1), 1) for _, looks in found for s in looks for w in s.values()
        )
    elif task == "language":
        found = [documented["continue_text"](folder, text) for text in texts]
        assert found == made(texts, temperature=0.0, tokens=20)
    else:
        session = documented["open_graph"](folder, "model.onnx")
        labels = json.loads((folder / "labels.json").read_text("utf-8"))
        if task == "classify":
            words, lengths = made.task._pad(made.task._read(texts))
            given = {"words": words.numpy(), "lengths": lengths.numpy()}
            best = documented["run"](session, **given)["logits"].argmax(-1)
            assert [labels[n] for n in best] == made(texts)
        else:
            tensors = made.task.inputs([text.split() for text in texts])
            names = ("words", "lengths", "characters")
            given = {n: tensor.numpy() for n, tensor in zip(names, tensors, strict=True)}
            logits = documented["run"](session, **given)["logits"]
            field = np.load(folder / "crf.npz")
            for text, row in zip(texts, logits, strict=True):
                path = documented["viterbi"](row[: len(text.split())], **field)
                assert " ".join(labels[n] for n in path) == made([text])[0]


@pytest.mark.parametrize("kind", ["recurrent", "transformer"])
@pytest.mark.parametrize("task", ["classify", "tag"])
def test_a_run_on_vectors_elsewhere_says_the_same(task, kind, tmp_path, documented):
    """Sequences of several lengths, padded with what no one may look at."""
    options = OPTIONS[task] | {"steps": 6, "average": 1} | MODELS[task][kind]
    made = regard.train(task, write(tmp_path, f"{task} vectors"), out=tmp_path / "run", **options)
    folder = tmp_path / "out"
    assert main(["export", str(tmp_path / "run"), "--to", "onnx", "--out", str(folder)]) == 0
    draw = np.random.default_rng(4)
    sequences = [draw.normal(size=(n, 3)).astype(np.float32) for n in (5, 1, 7)]
    padded = np.full((3, 7, 3), 9.0, np.float32)
    for row, one in zip(padded, sequences, strict=True):
        row[: len(one)] = one
    session = documented["open_graph"](folder, "model.onnx")
    found = documented["run"](session, vectors=padded, lengths=np.array([5, 1, 7]))
    labels = json.loads((folder / "labels.json").read_text("utf-8"))
    expected = made.predict(sequences)
    if task == "classify":
        assert [labels[n] for n in found["logits"].argmax(-1)] == [one.output for one in expected]
        return
    field = np.load(folder / "crf.npz")
    for row, one, told in zip(found["logits"], sequences, expected, strict=True):
        path = documented["viterbi"](row[: len(one)], **field)
        assert " ".join(labels[n] for n in path) == told.output


@pytest.mark.parametrize("addressing", ["ntm", "dnc"])
def test_an_algorithm_model_elsewhere_says_the_same(addressing, tmp_path, documented):
    """By the code of the documentation, on problems of several lengths."""
    options = {"kind": "copy", "longest": 4, "symbols": 5, "steps": 150, "average": 1}
    options |= {"batch_tokens": 128, "learning_rate": 0.01}
    options |= {"addressing": addressing, "slots": 8, "slot_width": 6, "width": 16}
    made = regard.train("algorithm", out=tmp_path / "run", **options)
    folder = tmp_path / "out"
    assert main(["export", str(tmp_path / "run"), "--out", str(folder)]) == 0
    problems = ["3", "0 1 2 3", "4 4 2", "1 2 3 4 0 1"]
    answers = made(problems)
    assert len(set(answers)) > 1
    for problem, answer in zip(problems, answers, strict=True):
        found = documented["solve"](folder, problem, limit=len(problem.split()) + 1)
        assert found == answer
    record = json.loads((folder / "export.json").read_text("utf-8"))
    assert {path.name for path in folder.iterdir()} == {*record["files"], "export.json"}


def test_words_come_out_without_their_glue(tmp_path, documented):
    (tmp_path / "text.txt").write_text("Hello, world. It's (very) nice.\n" * 20)
    options = OPTIONS["language"] | {"tokenizer": "word", "steps": 40}
    options |= {"dropout": 0.0, "ngrams": 0}
    made = regard.train("language", tmp_path / "text.txt", out=tmp_path / "run", **options)
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 0
    found = documented["continue_text"](tmp_path / "out", "Hello,")
    assert [found] == made(["Hello,"], temperature=0.0, tokens=20)
    assert "\uffed" not in found


def test_nothing_of_another_run_is_left(tmp_path):
    data, out = write_data(tmp_path, "tag"), tmp_path / "out"
    for name, crf in (("a", True), ("b", False)):
        options = OPTIONS["tag"] | {"steps": 2, "average": 1, "crf": crf}
        regard.train("tag", data, out=tmp_path / name, **options)
        assert main(["export", str(tmp_path / name), "--out", str(out)]) == 0
        assert (out / "crf.npz").exists() == crf
    (out / "export.json").unlink()  # as if it had been killed
    (out / "model.onnx.7.part").write_text("")
    assert main(["export", str(tmp_path / "b"), "--out", str(out)]) == 0
    assert not list(out.glob("*.part"))


def test_foreign_files_are_named_and_kept_unless_they_are_to_be_overwritten(
    exported, tmp_path, capsys
):
    _, made, folder = exported
    out = tmp_path / "out"
    out.mkdir()
    for name in ("config.json", "export.json", "notes.txt"):
        (out / name).write_text('{"files": ["mine"]}')
    command = ["export", str(made.folder.path), "--out", str(out)]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "out: config.json, export.json were not written by an export" in error
    assert "--overwrite" in error
    assert len(list(out.iterdir())) == 3
    assert main([*command, "--overwrite"]) == 0
    assert (out / "notes.txt").read_text() == '{"files": ["mine"]}'
    assert {path.name for path in out.iterdir()} == {
        "notes.txt",
        *(path.name for path in folder.iterdir()),
    }
    assert main(command) == 0  # over its own files
    (out / "config.json").write_text("edited by hand")
    capsys.readouterr()
    assert main(command) == 2
    assert "out: config.json was not written by an export, or changed" in capsys.readouterr().err
    assert (out / "config.json").read_text() == "edited by hand"


def test_the_folder_describes_itself(exported):
    task, _, folder = exported
    record = json.loads((folder / "export.json").read_text("utf-8"))
    assert record["task"] == task
    assert {path.name for path in folder.iterdir()} == {*record["files"], "export.json"}
    for name, graph in record["graphs"].items():
        onnx.checker.check_model(str(folder / name), full_check=True)
        session = onnxruntime.InferenceSession(folder / name)
        assert [port["name"] for port in graph["inputs"]] == [p.name for p in session.get_inputs()]
        assert {node.domain for node in onnx.load(folder / name).graph.node} == {""}


def test_viterbi_of_the_documentation_is_that_of_the_field(documented):
    field = regard.layers.CRF(4, allowed=torch.rand(4, 4) > 0.3)
    for parameter in field.parameters():
        torch.nn.init.normal_(parameter)
    emissions = torch.randn(5, 6, 4)
    tables = [field.transitions, field.start, field.end]
    transitions, start, end = (table.detach().numpy() for table in tables)
    transitions = np.where(field.allowed.numpy(), transitions, -np.inf)
    found = [documented["viterbi"](row.numpy(), transitions, start, end) for row in emissions]
    assert found == field.decode(emissions).tags


def test_bad_exports_are_one_line(exported, tmp_path, capsys, monkeypatch):
    _, made, _ = exported
    run = str(made.folder.path)
    (tmp_path / "file").write_text("")
    for command, words in (
        (["export", run, "--to", "onx"], "did you mean 'onnx'?"),
        (["export", run, "--out", run], "choose another --out"),
        (["export", run, "--out", str(tmp_path / "file")], "is not a folder"),
        (["export", "nowhere"], "no such run folder"),
    ):
        assert main(command) == 2
        assert words in capsys.readouterr().err
    monkeypatch.setattr("regard.inference.export.onnx.find_spec", lambda name: None)
    assert main(["export", run, "--out", str(tmp_path / "out")]) == 2
    assert "pip install onnx" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
