"""The official clients of other services work with this server."""

import re

import openai
import pytest
from libretranslatepy import LibreTranslateAPI

from regard.serve import Server


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


def test_libretranslatepy_translates(server, runs):
    client = LibreTranslateAPI(server.url)
    for text in ("the film was great", "“naïve” & 100 % + ✓", "a\nb", ""):
        assert client.translate(text, "aa", "bb") == runs["translation"]([text])[0]
        assert client.translate(text, "auto", "bb") == runs["translation"]([text])[0]
    assert {"code": "aa", "name": "aa", "targets": ["bb"]} in client.languages()
    assert client.detect("the film") == [{"confidence": 100.0, "language": "aa"}]


def test_libretranslatepy_sends_the_token_as_its_key(runs):
    with Server([runs["translation"].folder.path], token="correct horse") as server:
        client = LibreTranslateAPI(server.url, api_key="correct horse")
        assert client.translate("the film", "aa", "bb") == runs["translation"](["the film"])[0]
        assert client.languages()
        assert client.detect("the film")
        with pytest.raises(OSError, match="401"):
            LibreTranslateAPI(server.url, api_key="wrong").translate("the film", "aa", "bb")
        with pytest.raises(OSError, match="401"):
            LibreTranslateAPI(server.url).languages()


def test_openai_lists_models(client):
    models = client.models.list().data
    assert [model.id for model in models] == [
        "my-translation",
        "my-language",
        "my-classify",
        "my-tag",
    ]
    assert client.models.retrieve("my-language").owned_by == "regard"


def test_openai_completes(client, runs):
    options = {"max_tokens": 9, "temperature": 0.8, "seed": 5}
    completion = client.completions.create(model="my-language", prompt="the film", **options)
    run = runs["language"]
    own = run(["the film"], tokens=9, temperature=0.8, seed=5)[0]
    assert own == "the film" + completion.choices[0].text
    assert completion.usage.prompt_tokens == len(run.task.tokenizer.ids(["the film"])[0])
    assert completion.usage.completion_tokens <= 9
    assert completion.choices[0].finish_reason in ("stop", "length")
    same = client.completions.create(model="my-language", prompt="the film", echo=True, **options)
    assert same.choices[0].text == "the film" + completion.choices[0].text
    several = client.completions.create(
        model="my-language", prompt=["the film", "", "naïve ✓"], n=2, **options
    )
    assert [choice.index for choice in several.choices] == list(range(6))
    assert several.choices[0].text == completion.choices[0].text
    assert several.choices[0].text != several.choices[1].text


@pytest.mark.parametrize("prompt", ["the film", "", "naïve ✓ 🦜", "the " * 700])
def test_openai_streams_what_it_completes(prompt, client):
    options = {"model": "my-language", "prompt": prompt, "max_tokens": 30, "seed": 1, "n": 2}
    whole = client.completions.create(**options)
    parts = list(
        client.completions.create(stream=True, stream_options={"include_usage": True}, **options)
    )
    for choice in whole.choices:
        mine = [c for part in parts for c in part.choices if c.index == choice.index]
        assert "".join(c.text for c in mine) == choice.text
        assert [c.finish_reason for c in mine if c.finish_reason] == [choice.finish_reason]
    assert len(parts) > 12
    assert parts[-1].usage == whole.usage


def test_openai_stops_at_stop_sequences(client):
    options = {"model": "my-language", "prompt": "the film", "max_tokens": 60, "seed": 2}
    whole = client.completions.create(**options).choices[0].text
    # incomplete bytes of a character may become one with the next token: stop at ASCII only
    first, second, third, *_ = re.findall("[!-~]{2}", whole)
    for stop in (second, [third, first]):
        cut = min(whole.index(one) for one in ([stop] if isinstance(stop, str) else stop))
        completion = client.completions.create(stop=stop, **options).choices[0]
        assert (completion.text, completion.finish_reason) == (whole[:cut], "stop")
        parts = client.completions.create(stop=stop, stream=True, **options)
        assert "".join(part.choices[0].text for part in parts) == whole[:cut]


def test_openai_understands_problems(client):
    with pytest.raises(openai.UnprocessableEntityError, match="max_tokens") as caught:
        client.completions.create(model="my-language", prompt="x", max_tokens=10**6)
    assert caught.value.type == "invalid_request_error"
    with pytest.raises(openai.UnprocessableEntityError, match="model must be one of: my-language"):
        client.completions.create(model="gpt", prompt="x")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt")


def test_openai_reports_a_model_that_fails(client, server, monkeypatch):
    from regard.serve.api.completions import CompletionRequest

    def fail(*given):
        raise ArithmeticError("the secret text")

    monkeypatch.setattr(CompletionRequest, "generate", fail)
    with pytest.raises(openai.APIError, match="the model failed while it generated text"):
        list(client.completions.create(model="my-language", prompt="the", stream=True))


def test_generation_ends_when_the_client_disconnects(client, server):
    worker = server.state.models["my-language"].worker
    before = worker.counts.seconds
    stream = client.completions.create(
        model="my-language", prompt="the", max_tokens=1000, n=8, stream=True, temperature=2
    )
    next(iter(stream))
    stream.close()
    completion = client.completions.create(model="my-language", prompt="the", max_tokens=1)
    assert completion.choices
    assert worker.counts.seconds - before < 20
