"""The app with a model of a task that it has never heard of, served with traces of any shape."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.browser.screens import SCREENS

CARD = {
    "id": "riddles", "object": "model", "created": 0, "owned_by": "regard", "task": "riddle",
    "ready": True, "languages": None, "labels": None, "parameters": 12,
    "screens": ["self-attention", "gradient", "steps", "compare", "trust", "training", "length"],
    "examples": ["what has keys but no locks"], "config": {"model": {}, "training": {}},
}  # fmt: skip


def side(*words: str) -> dict[str, Any]:
    """A side of a trace, one token per word."""
    tokens, start = [], 0
    for number, word in enumerate(words):
        tokens.append({"text": word, "start": start, "end": start + len(word), "word": number})
        start += len(word) + 1
    return {"text": " ".join(words), "tokens": tokens}


def trace(looks: list[dict[str, Any]]) -> dict[str, Any]:
    """A trace whose sides have names that no screen knows."""
    return {
        "schema": "regard.trace/2",
        "version": None,
        "task": "riddle",
        "sides": {"puzzle": side("what", "has", "keys"), "clue": side("a", "piano")},
        "looks": looks,
        "output": "a piano",
        "prediction": {},
        "alternatives": [],
        "attributions": [],
        "alignment": None,
        "card": {},
    }


LOOK = {
    "name": "clue.puzzle",
    "query_side": "clue",
    "key_side": "puzzle",
    "weights": [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]],
}


def fulfill(body: str, route: Any) -> None:
    """Answer a request of the page in place of the server."""
    route.fulfill(body=body, content_type="application/json")


@pytest.fixture
def riddles(app: Callable[..., Any]) -> Callable[[list[dict[str, Any]]], Any]:
    """A window of an app that is served the foreign model alone."""

    def start(looks: list[dict[str, Any]]) -> Any:
        window = app()
        card = CARD | {"looks": [look["name"] for look in looks]}
        answers = {
            "**/v1/models": {"object": "list", "data": [card]},
            "**/v1/models/riddles/explain": trace(looks),
            "**/v1/runs/riddles/*": {"object": "list", "data": []},
        }
        for address, answer in answers.items():
            window.page.route(address, partial(fulfill, json.dumps(answer)))
        return window

    return start


def test_a_foreign_model_opens_with_its_first_screen_and_its_examples(riddles):
    window = riddles([LOOK]).open("")
    window.page.locator(".rg-card.model").click()
    window.ready()
    assert window.page.evaluate("location.pathname") == "/self-attention"
    assert window.page.locator(".rg-examples button").inner_text() == CARD["examples"][0]
    assert window.page.locator(".rg-output bdi").inner_text() == "a piano"
    title = window.page.locator(".rg-board-title").inner_text().lower()
    assert "rows: clue, columns: puzzle" in title
    assert window.status() == "‘a’ looks at ‘keys’: 0.70" or "keys" in window.status()
    assert window.colours("regard-matrix canvas") > 2


def test_a_trace_without_looks_is_shown_with_its_output(riddles):
    window = riddles([]).open("self-attention")
    assert window.page.locator(".rg-output bdi").inner_text() == "a piano"
    assert "no attention" in window.page.locator(".rg-empty").inner_text()


@pytest.mark.parametrize("looks", [[], [LOOK]])
@pytest.mark.parametrize("screen", SCREENS)
def test_every_screen_opens(riddles, screen, looks):
    window = riddles(looks)
    window.open(screen)
    assert "Something went wrong" not in window.page.locator("main").inner_text() or not looks
