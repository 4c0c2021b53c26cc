"""Imported runs of every task are served: predictions, looks and attributions over HTTP."""

import json
import urllib.request
from typing import Any

import pytest

from regard.inference.import_run import import_run
from regard.serve import Server
from tests.pretrained.checkpoints import write_checkpoint
from tests.pretrained.translator_checkpoints import write_translator

pytestmark = pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
TEXT = "The unhappy cats are not sleeping ."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("served")
    write_checkpoint(folder / "bert", "bert", id2label={0: "bad", 1: "good"})
    tags = {0: "O", 1: "B-PER", 2: "I-PER"}
    write_checkpoint(folder / "roberta", "roberta", "ForTokenClassification", id2label=tags)
    write_checkpoint(folder / "gpt2", "gpt2", "LMHeadModel")
    write_checkpoint(folder / "llama", "llama", "ForCausalLM")
    for kind in ("marian", "t5"):
        write_translator(folder / kind, kind)
    runs = [import_run(path, folder / f"{path.name}-run").path for path in sorted(folder.iterdir())]
    with Server(runs) as served:
        yield served


def call(server: Server, path: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{server.url}{path}", data, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        assert response.status == 200
        return json.load(response)


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "llama", "marian", "t5"])
def test_it_answers_and_explains(name: str, server: Server) -> None:
    at = f"/v1/models/{name}-run"
    assert call(server, f"{at}/predict", {"inputs": TEXT})
    translates = name in ("marian", "t5")  # attributions of each of its words take long
    more = {} if translates else {"attributions": True}
    trace = call(server, f"{at}/explain", {"text": TEXT, **more})
    assert trace["looks"]
    assert translates or trace["attributions"]
    sides = trace["sides"]
    for look in trace["looks"]:
        assert look["query_side"] in sides
        assert look["key_side"] in sides
    card = dict(call(server, f"{at}/card")["rows"])
    assert card["pretrained"].startswith(f"{name} ({name}, ")
