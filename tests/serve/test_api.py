"""Responses over HTTP are the predictions, traces and files of the runs themselves."""

import http.client
import json
import shutil
import threading

import pytest

from regard.inference.explain import faithfulness_reports as reports
from regard.inference.explain.faithfulness import faithfulness
from regard.serve import Limits, Server
from regard.serve.api import run_history
from regard.serve.worker import Failure, Worker
from regard.trace import Trace
from regard.training import RunFolder
from regard.training.metrics_log import saved_weights
from tests.serve.requests import TASKS, Client

TEXTS = [
    "the film was great",
    "not",
    "",
    "very bad plot is the film 🦜 \u200b",
    "  film\u2028plot  ",
]


def test_models_are_listed_and_described(ask, runs):
    response = ask("GET", "/v1/models").json
    assert response["object"] == "list"
    assert [(one["id"], one["task"]) for one in response["data"]] == [(f"my-{t}", t) for t in TASKS]
    one = ask("GET", "/v1/models/my-classify").json
    assert one == response["data"][2]
    assert one["labels"] == ["0", "1"]
    assert one["ready"] is True
    network = runs["classify"].model
    assert one["parameters"] == sum(p.numel() for p in network.parameters())
    assert response["data"][0]["languages"] == ["aa", "bb"]


def test_examples_are_of_the_data_that_a_run_was_trained_on(ask, runs, server, monkeypatch):
    for task in TASKS:
        *_, last = run_history.json_lines(runs[task].folder, runs[task].folder.metrics)
        offered = ask("GET", f"/v1/models/my-{task}").json["examples"]
        assert offered == [sample["given"] for sample in last["samples"]]
        assert offered
        model = server.state.models[f"my-{task}"]
        monkeypatch.setitem(model.config, "data", {"data": None})
        assert model.example_texts() == model.spec.example_texts


def test_words_nearest_to_queries_are_for_models_that_have_any(ask):
    assert ask("GET", "/v1/models/my-translation/words").json == {"queries": []}
    for words in ask("GET", "/v1/models/my-classify/words").json["queries"]:
        angles = [near["degrees"] for near in words]
        assert angles == sorted(angles)
        assert 0 <= angles[0] <= angles[-1] <= 180


def test_translations_have_the_shape_of_a_pipeline(ask, runs):
    expected = runs["translation"](TEXTS)
    response = ask("POST", "/v1/models/my-translation/predict", {"inputs": TEXTS}).json
    assert response == [{"translation_text": one} for one in expected]
    alone = ask("POST", "/v1/models/my-translation/predict", {"inputs": TEXTS[0]}).json
    assert alone == response[:1]
    narrow = {"inputs": TEXTS[0], "parameters": {"beam": 1}}
    response = ask("POST", "/v1/models/my-translation/predict", narrow).json
    assert response == [{"translation_text": runs["translation"](TEXTS[:1], beam=1)[0]}]


def test_labels_have_the_shape_of_a_pipeline(ask, runs):
    path = "/v1/models/my-classify/predict"
    own = [one.details.get("probabilities") for one in runs["classify"].predict(TEXTS)]
    best = [None if one is None else max(one, key=one.get) for one in own]
    response = ask("POST", path, {"inputs": TEXTS}).json
    assert [one.get("label") for one in response] == best
    assert response[2] == {"error": "an empty text has no label"}
    assert ask("POST", path, {"inputs": TEXTS[0]}).json == response[:1]
    every = ask("POST", path, {"inputs": TEXTS[:2], "parameters": {"top_k": 9}}).json
    assert [{one["label"] for one in row} for row in every] == [{"0", "1"}] * 2
    for row, right in zip(every, own, strict=False):
        assert row[0]["score"] >= row[1]["score"]
        assert {one["label"]: pytest.approx(one["score"], abs=1e-6) for one in row} == right


def test_entities_point_into_the_text(ask, runs):
    path = "/v1/models/my-tag/predict"
    own = runs["tag"].predict(TEXTS)
    response = ask("POST", path, {"inputs": TEXTS}).json
    for text, entities, right in zip(TEXTS, response, own, strict=True):
        marked = [i for i, tag in enumerate(right.details.get("tags", [])) if tag != "O"]
        assert bool(entities) == bool(marked)
        for one in entities:
            assert text[one["start"] : one["end"]] == one["word"]
            assert one["entity_group"] == "X"
            place = len(text[: one["start"]].split())
            assert one["score"] == pytest.approx(right.details["probabilities"][place], abs=1e-6)
    assert any(response)
    alone = ask("POST", path, {"inputs": TEXTS[0]}).json
    assert alone == [{**one, "score": pytest.approx(one["score"], abs=1e-6)} for one in response[0]]


def test_continuations_are_those_of_the_run(ask, runs):
    path = "/v1/models/my-language/predict"
    options = {"max_new_tokens": 7, "temperature": 0.9, "seed": 3, "top_k": 5}
    response = ask("POST", path, {"inputs": TEXTS, "parameters": options}).json
    own = runs["language"](TEXTS, tokens=7, temperature=0.9, seed=3, top_k=5)
    assert response == [[{"generated_text": one}] for one in own]


def test_truncated_texts_are_marked(ask):
    long = {"inputs": "film " * 200}
    response = ask("POST", "/v1/models/my-translation/predict", long).json
    assert response[0]["truncated"] is True


@pytest.mark.parametrize("task", TASKS)
def test_explanations_are_traces(task, ask, runs):
    answer = ask("POST", f"/v1/models/my-{task}/explain", {"text": "the film was bad"})
    assert answer.status == 200, answer.raw
    response = Trace.from_json(answer.raw)
    own = runs[task].trace("the film was bad")
    assert response.output == own.output
    assert response.sides == own.sides
    assert len(response.looks) == len(own.looks)
    empty = ask("POST", f"/v1/models/my-{task}/explain", {"text": " "})
    assert Trace.from_json(empty.raw).looks == ()


@pytest.mark.parametrize("task", TASKS)
def test_explanations_have_attributions_on_request(task, ask):
    body = {"text": "the film was bad", "attributions": True}
    answer = ask("POST", f"/v1/models/my-{task}/explain", body)
    assert answer.status == 200, answer.raw
    methods = {one["method"] for one in answer.json["attributions"]}
    assert {"leave-one-out", "integrated gradients"} <= methods


def test_a_translation_can_be_forced_and_its_attention_pinned(ask):
    path = "/v1/models/my-translation/explain"
    response = ask("POST", path, {"text": "the film", "target": "plot is"}).json
    assert response["output"] == "plot is"
    response = ask("POST", path, {"text": "the film was", "pins": {"0": [1]}, "beam": 2})
    assert response.status == 200, response.raw
    look = Trace.from_json(response.raw).looks[-1]
    assert look.weights[0].argmax() == 1
    assert look.weights[0, 1] == pytest.approx(1, abs=1e-4)
    wrong = ask("POST", path, {"text": "the film", "pins": {"0": [77]}})
    assert wrong.status == 422
    assert "77" in wrong.json["detail"]


def test_explanations_replay_checkpoints(ask, runs):
    listed = ask("GET", "/v1/runs/my-classify/checkpoints").json["data"]
    assert [one["step"] for one in listed] == sorted(one["step"] for one in listed)
    assert len(listed) == 2
    path = "/v1/models/my-classify/explain"
    predictions = [
        ask("POST", path, {"text": "the film", "checkpoint": one["id"]}).json["prediction"]
        for one in listed
    ]
    assert predictions[0] != predictions[1]
    gone = ask("POST", path, {"text": "the film", "checkpoint": "../../model"})
    assert gone.status == 404


def test_metrics_events_and_evaluations_come_from_the_folder(ask, runs):
    folder = runs["translation"].folder
    lines = [json.loads(line) for line in folder.metrics.read_text("utf-8").split("\n")[:-1]]
    assert ask("GET", "/v1/runs/my-translation/metrics").json["data"] == lines
    stream = ask("GET", "/v1/runs/my-translation/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    events = stream.raw.decode().split("\n\n")
    sent = [json.loads(e.split("data: ", 1)[1]) for e in events if "event: metrics" in e]
    assert sent == lines
    assert "event: end" in stream.raw.decode()
    later = ask("GET", "/v1/runs/my-translation/events", last_event_id="1").raw.decode()
    assert later.count("event: metrics") == len(lines) - 1
    response = ask("GET", "/v1/runs/my-translation/evaluations").json["data"]
    assert response[0]["name"] == "validation"
    assert response[0]["metrics"] == saved_weights(lines)["metrics"]


def test_evaluations_of_files_have_their_sentences(runs, tmp_path):
    run = tmp_path / "again"
    shutil.copytree(runs["classify"].folder.path, run)
    (run / "evaluations").mkdir()
    (run / "evaluations/test.json").write_text('{"metrics": {"accuracy": {"value": 1}}}')
    (run / "evaluations/test.jsonl").write_text('{"text": "a"}\n{"text": "b"}\nhalf')
    (run / "evaluations/broken.json").write_text("{")
    with Server([run]) as server:
        ask = Client(server.url)
        response = ask("GET", "/v1/runs/again/evaluations").json["data"]
        assert [one["name"] for one in response] == ["validation", "test"]
        lines = ask("GET", "/v1/runs/again/evaluations/test").json["data"]
        assert lines == [{"text": "a"}, {"text": "b"}]
        assert ask("GET", "/v1/runs/again/evaluations/..%2Fconfig").status == 404


def test_reports_of_faithfulness_are_listed(runs, tmp_path):
    run = tmp_path / "again"
    shutil.copytree(runs["classify"].folder.path, run)
    with Server([run]) as server:
        ask = Client(server.url)
        assert ask("GET", "/v1/runs/again/faithfulness").json["data"] == []
        texts = ["the film was great", "not very bad"]
        report = faithfulness(runs["classify"], texts, shuffles=2)
        reports.save_report(RunFolder(run), "some", report, limit=2)
        (response,) = ask("GET", "/v1/runs/again/faithfulness").json["data"]
        assert (response["name"], response["current"]) == ("some", True)
        assert response["verdict"] == report.verdict
        assert response["options"] == {"limit": 2}
        (run / "model.safetensors").write_bytes(b"others")
        (response,) = ask("GET", "/v1/runs/again/faithfulness").json["data"]
        assert not response["current"]


def test_a_model_survives_the_deletion_of_its_folder(runs, tmp_path):
    run = tmp_path / "short-lived"
    shutil.copytree(runs["classify"].folder.path, run)
    with Server([run]) as server:
        ask = Client(server.url)
        before = ask("POST", "/v1/models/short-lived/explain", {"text": TEXTS[0]}).json
        shutil.rmtree(run)
        assert ask("POST", "/v1/models/short-lived/explain", {"text": TEXTS[0]}).json == before
        assert ask("POST", "/v1/models/short-lived/predict", {"inputs": TEXTS[0]}).status == 200
        for what in ("metrics", "evaluations", "faithfulness", "checkpoints"):
            assert ask("GET", f"/v1/runs/short-lived/{what}").json["data"] == []


def test_a_run_in_training_is_served_for_its_metrics(runs, tmp_path):
    run = tmp_path / "growing"
    shutil.copytree(runs["classify"].folder.path, run)
    weights = (run / "model.safetensors").read_bytes()
    (run / "model.safetensors").unlink()
    shutil.rmtree(run / "state")
    lines = (run / "metrics.jsonl").read_bytes().split(b"\n")
    (run / "metrics.jsonl").write_bytes(lines[0] + b"\n" + lines[1][:20])
    with Server([run]) as server:
        ask = Client(server.url)
        assert ask("GET", "/v1/models/growing").json["ready"] is False
        early = ask("POST", "/v1/models/growing/predict", {"inputs": "film"})
        assert early.status == 409
        assert "no weights yet" in early.json["detail"]
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
        connection.request("GET", "/v1/runs/growing/events")
        stream = connection.getresponse()

        def event() -> str:
            lines = ""
            while not lines.endswith("\n\n"):
                lines += stream.readline().decode()
            return lines

        assert event().startswith("retry")
        assert event().startswith("id: 1\nevent: metrics")
        with open(run / "metrics.jsonl", "ab") as file:
            file.write(lines[1][20:] + b"\n")
        assert event().startswith("id: 2\nevent: metrics")
        (run / "metrics.jsonl").write_bytes(b"")
        assert event().startswith("event: reset")
        (run / "model.safetensors").write_bytes(weights)
        later = ask("POST", "/v1/models/growing/predict", {"inputs": "film"})
        assert later.json[0].keys() == {"label", "score"}
        server.stop()  # an open event stream does not prevent it
        assert stream.read() == b""
        connection.close()


def test_texts_of_several_requests_are_predicted_in_one_batch_and_keep_their_order():
    batches, hold = [], threading.Event()

    def predict(texts, shout=False):
        hold.wait(10)
        batches.append(list(texts))
        if "bad" in texts:
            raise ValueError("bad")
        return [text.upper() if shout else text for text in texts]

    worker = Worker(predict, Limits(batch_texts=8, waiting_texts=20, batch_window=0.05))
    first = worker.submit(["first"], {})
    while worker.counts.waiting:
        pass
    jobs = [worker.submit([f"{i}", f"{i}b"], {}) for i in range(3)]
    other = worker.submit(["x"], {"shout": True})
    wrong = worker.submit(["fine", "bad"], {})
    late = worker.submit(["never"], {})
    late.abandon()
    hold.set()
    assert [job.future.result(5) for job in jobs] == [[f"{i}", f"{i}b"] for i in range(3)]
    assert first.future.result(5) == ["first"]
    assert other.future.result(5) == ["X"]
    fine, failed = wrong.future.result(5)
    assert fine == "fine"
    assert failed == Failure("the model cannot read this text (ValueError)")
    worker.close()
    assert batches[1] == ["0", "0b", "1", "1b", "2", "2b", "fine", "bad"]
    assert all("never" not in batch for batch in batches)
