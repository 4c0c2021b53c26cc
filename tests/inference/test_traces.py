"""Traces of every task: sides, words, looks and alternatives that belong together."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.data.tokenizers.tokenizer import Tokenizer
from regard.models import Translator
from regard.models.native.native_decoder import NativeDecoder
from regard.tasks.shared.trace_sides import decode_with_spans
from regard.tasks.translation import decode
from regard.tasks.translation.native_translation import search_natively
from tests.training.tiny import OPTIONS, write_data

SMALL = {"model": "transformer", "layers": 2, "heads": 2}
VARIANTS = {
    "translation": [{}, SMALL | {"experts": 3, "top_k": 2}, {"attention": "none"}],
    "language": [{}, {"attention": "none"}, SMALL],
    "classify": [
        {"pooling": "fixed", "queries": 3},
        {"pooling": "self", "heads": 2},
        {"encoder": "transformer", "heads": 2, "experts": 2},
    ],
    "tag": [{}, {"encoder": "transformer", "heads": 2}, {"encoder": "recurrent"}],
}
LOOKS = {
    ("translation", 0): {"source": 1},
    ("translation", 1): {
        "encoder.self": 4,
        "encoder.experts": 2,
        "decoder.self": 4,
        "decoder.source": 4,
        "decoder.experts": 2,
    },
    ("translation", 2): {},
    ("language", 0): {"past": 1},
    ("language", 1): {},
    ("language", 2): {"decoder.self": 4},
    ("classify", 0): {"pooling": 1},
    ("classify", 1): {"pooling.self": 2, "pooling": 1},
    ("classify", 2): {"encoder.self": 2, "encoder.experts": 1, "experts": 1, "pooling": 1},
    ("tag", 0): {"encoder.self": 4},
    ("tag", 1): {"encoder.self": 4},
    ("tag", 2): {},
}
CASES = list(LOOKS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    made = {}
    for task, number in CASES:
        folder = tmp_path_factory.mktemp(task)
        options = OPTIONS[task] | {"steps": 2, "average": 1} | VARIANTS[task][number]
        made[task, number] = regard.train(
            task, write_data(folder, task), out=folder / "run", **options
        )
    return made


@pytest.mark.parametrize("case", CASES, ids=str)
def test_looks_belong_to_their_sides(case, runs):
    run = runs[case]
    text = "the  film was naïve\u2003✓"
    trace = run.trace(text)
    assert trace.task == case[0]
    assert trace.card["parameters"] == sum(p.numel() for p in run.model.parameters())
    counts: dict[str, int] = {}
    for look in trace.looks:
        counts[look.name] = counts.get(look.name, 0) + 1
        for names, name in ((look.queries, look.query_side), (look.keys, look.key_side)):
            assert names == tuple(token.text for token in trace.sides[name].tokens)
        sums = look.weights.sum(1)
        assert np.all(np.isclose(sums, 1, atol=1e-5) | (sums == 0))
    assert counts == LOOKS[case]
    # a model that does not attend says with which options one does
    assert ("attend_with" in trace.card) == (not counts)
    for side in trace.sides.values():
        for token in side.tokens:
            if not token.special:
                assert side.text[token.start : token.end] == token.text
                word = "" if token.word is None else side.text.split()[token.word]
                assert token.text.strip() in word
    if case[0] in ("classify", "tag"):
        assert trace.output == run([text])[0]
    if case[0] == "translation":
        assert trace.output == run([text])[0]
        assert len(trace.prediction["nbest"]) == 5
        for one in trace.prediction["nbest"]:
            words = "".join(one["tokens"]).removesuffix("<eos>")
            assert " ".join(words.splitlines()) == one["output"]
            total = sum(one["token_log_probabilities"])
            assert total == pytest.approx(one["log_probability"], abs=1e-4)
        told = run.trace(text, "film the")
        assert [t.word for t in told.sides["target"].tokens][-1] is None
        assert told.output == "film the"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_strange_texts_have_traces(case, runs):
    options = {"beam": 1} if case[0] == "translation" else {}
    for text in ("", " \t", "\u200b", "\x00", "\ud800", "word " * 600, "y" * 3000):
        trace = runs[case].trace(text, **options)
        assert trace.prediction.get("truncated") or text != "word " * 600
        for look in trace.looks:
            assert np.isfinite(look.weights).all()


@pytest.mark.parametrize("case", [("language", 0), ("language", 2)], ids=str)
def test_a_row_of_a_language_model_is_about_the_next_token(case, runs):
    run = runs[case]
    trace = run.trace("the film was")
    texts = [token.text for token in trace.sides["text"].tokens]
    following = [token.text for token in trace.sides["next"].tokens]
    assert texts == ["<eos>", "the", "film", "was"]
    assert following == ["the", "film", "was", "…"]
    for look in trace.looks:
        assert np.allclose(np.triu(look.weights, 1), 0)
    ids = run.task.tokenizer.ids(["the film was"])[0]
    with torch.no_grad():
        output, _ = run.model(torch.tensor([[3, *ids]]), run.model.start(1))
    chances = output.logits[0].softmax(-1)
    names = run.task.tokenizer.vocabulary()
    for row, alternatives in zip(chances, trace.alternatives, strict=True):
        assert names[int(row.argmax())] == alternatives[0].text
        assert alternatives[0].probability == pytest.approx(float(row.max()), abs=1e-6)
    expected = [float(row[i].log()) for row, i in zip(chances, ids, strict=False)]
    np.testing.assert_allclose(trace.prediction["token_log_probabilities"], expected, atol=1e-5)


def test_alternatives_of_a_translation_are_the_models(runs):
    run = runs["translation", 1]
    trace = run.trace("the film was", "was film")
    source, target = run.task.source.ids(["the film was"]), run.task.target.ids(["was film"])[0]
    with torch.no_grad():
        logits = run.model(
            torch.tensor(source), torch.tensor([len(source[0])]), torch.tensor([[2, *target]])
        ).logits[0]
    names = run.task.target.vocabulary()
    assert [row[0].text for row in trace.alternatives] == [names[i] for i in logits.argmax(-1)]


@pytest.mark.parametrize("case", [("translation", 0), ("translation", 1)], ids=str)
def test_a_trace_encodes_once_and_decodes_once_more_with_weights(case, runs, monkeypatch):
    run = runs[case]
    encodings, steps = [], []

    def spy(owner, name, calls):
        method = getattr(owner, name)

        def call(*arguments, need_weights, **options):
            calls.append(need_weights)
            return method(*arguments, need_weights=need_weights, **options)

        monkeypatch.setattr(owner, name, call)

    for owner in (Translator, NativeDecoder):  # which decodes what it can
        spy(owner, "encode", encodings)
        spy(owner, "step", steps)

    def search_at_once(*arguments, need_weights=False, **options):
        hypotheses = search_natively(*arguments, need_weights=need_weights, **options)
        if hypotheses is not None:  # all steps of a search in one call
            steps.append(need_weights)
        return hypotheses

    monkeypatch.setattr(decode, "search_natively", search_at_once)
    run.predict(["the film was"], beam=3, nbest=3)
    assert (encodings, set(steps)) == ([False], {False})
    searched = len(steps)
    encodings.clear()
    steps.clear()
    trace = run.trace("the film was", beam=3)
    tokens = len(trace.prediction["token_log_probabilities"])
    assert encodings == [True]
    assert steps == [False] * searched + [True] * tokens
    encodings.clear()
    steps.clear()
    run.trace("the film was", "was film")
    assert encodings == [True]
    target = run.task.target.ids(["was film"])[0]
    assert steps == [True] * (len(target) + 1)  # and the end token


def test_a_target_is_for_translation_alone(runs):
    with pytest.raises(ValueError, match="a target does not apply to tag runs"):
        runs["tag", 0].trace("the film", "O O")


@pytest.fixture(
    scope="module", params=["word", "whitespace", "bpe", "unigram", "character", "bytes"]
)
def tokenizer(request):
    texts = ["the (cat) sat.", "l'homme naïve, 東京 ✓ the dog sat.", "hello 🦜 you"] * 3
    return Tokenizer.train(request.param, texts, 300)


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_written_tokens_stand_in_their_text(tokenizer, data):
    """Any tokens that a model may write, sense or nonsense."""
    size = tokenizer.size
    ids = data.draw(st.lists(st.integers(0, size - 1), max_size=12))
    text, spans = decode_with_spans(tokenizer, ids)
    assert text == tokenizer.decode(ids)
    assert len(spans) == len(ids)
    for start, end in spans:
        assert 0 <= start <= end <= len(text)
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)


@settings(deadline=None, max_examples=30)
@given(words=st.lists(st.sampled_from(["the", "(cat)", "naïve", "東京", "🦜", "sat."]), min_size=1))
def test_written_places_are_those_of_reading(tokenizer, words):
    text = " ".join(words)
    encoded = tokenizer.encode(text)
    again, spans = decode_with_spans(tokenizer, encoded.ids)
    if again == text:
        assert spans == encoded.offsets
