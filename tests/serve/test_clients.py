"""The real clients of other services, unchanged."""

import re

import openai
import pytest
from libretranslatepy import LibreTranslateAPI

from regard.serve import Server


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def test_libretranslatepy_translates(server, runs):
    client = LibreTranslateAPI(server.url)
    for text in ("the film was great", "“naïve” & 100 % + ✓", "a\nb", ""):
        assert client.translate(text, "aa", "bb") == runs["translation"]([text])[0]
        assert client.translate(text, "auto", "bb") == runs["translation"]([text])[0]
    assert {"code": "aa", "name": "aa", "targets": ["bb"]} in client.languages()
    assert client.detect("the film") == [{"confidence": 100.0, "language": "aa"}]


def test_libretranslatepy_brings_the_token_as_its_key(runs):
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
    found = client.models.list().data
    assert [one.id for one in found] == ["my-translation", "my-language", "my-classify", "my-tag"]
    assert client.models.retrieve("my-language").owned_by == "regard"


def test_openai_completes(client, runs):
    options = {"max_tokens": 9, "temperature": 0.8, "seed": 5}
    made = client.completions.create(model="my-language", prompt="the film", **options)
    run = runs["language"]
    own = run(["the film"], limit=9, temperature=0.8, seed=5)[0]
    assert own == "the film" + made.choices[0].text
    assert made.usage.prompt_tokens == len(run.task.tokenizer.ids(["the film"])[0])
    assert made.usage.completion_tokens <= 9
    assert made.choices[0].finish_reason in ("stop", "length")
    same = client.completions.create(model="my-language", prompt="the film", echo=True, **options)
    assert same.choices[0].text == "the film" + made.choices[0].text
    several = client.completions.create(
        model="my-language", prompt=["the film", "", "naïve ✓"], n=2, **options
    )
    assert [choice.index for choice in several.choices] == list(range(6))
    assert several.choices[0].text == made.choices[0].text
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


def test_openai_stops_where_it_is_told_to(client):
    options = {"model": "my-language", "prompt": "the film", "max_tokens": 60, "seed": 2}
    whole = client.completions.create(**options).choices[0].text
    # bytes that make no character may become one with what follows: stop at whole ones
    first, second, third, *_ = re.findall("[!-~]{2}", whole)
    for stop in (second, [third, first]):
        cut = min(whole.index(one) for one in ([stop] if isinstance(stop, str) else stop))
        made = client.completions.create(stop=stop, **options).choices[0]
        assert (made.text, made.finish_reason) == (whole[:cut], "stop")
        parts = client.completions.create(stop=stop, stream=True, **options)
        assert "".join(part.choices[0].text for part in parts) == whole[:cut]


def test_openai_reads_our_problems(client):
    with pytest.raises(openai.UnprocessableEntityError, match="max_tokens") as caught:
        client.completions.create(model="my-language", prompt="x", max_tokens=10**6)
    assert caught.value.type == "invalid_request_error"
    with pytest.raises(openai.UnprocessableEntityError, match="expected one of my-language"):
        client.completions.create(model="gpt", prompt="x")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("gpt")


def test_openai_hears_of_a_model_that_fails(client, server, monkeypatch):
    from regard.serve.completions import Wanted

    def fail(*given):
        raise ArithmeticError("the secret text")

    monkeypatch.setattr(Wanted, "write", fail)
    with pytest.raises(openai.APIError, match="the model could not go on"):
        list(client.completions.create(model="my-language", prompt="the", stream=True))


def test_a_stream_that_nobody_reads_any_more_ends(client, server):
    worker = server.desk.shelf["my-language"].worker
    before = worker.count.seconds
    stream = client.completions.create(
        model="my-language", prompt="the", max_tokens=1000, n=8, stream=True, temperature=2
    )
    next(iter(stream))
    stream.close()
    made = client.completions.create(model="my-language", prompt="the", max_tokens=1)
    assert made.choices
    assert worker.count.seconds - before < 20
