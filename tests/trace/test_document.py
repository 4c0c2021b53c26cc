"""The trace as a document: what is written is read, by us and by its schema, and nothing else."""

import base64
import gzip
import json
import struct
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from regard.errors import RegardError
from regard.trace import Alternative, Attribution, Side, Token, Trace
from regard.trace.look import Look
from regard.trace.weight_codec import pack, unpack

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/trace.schema.json").read_text("utf-8"))
WORDS = ("the", "</script>", "\u202eright", "猫", "😀", "x" * 10_000, "\ud800")


def a_trace(weights=None) -> Trace:
    source = Side("the cat", (Token("the", 0, 3, word=0), Token("cat", 4, 7, word=1)))
    target = Side("chat", (Token("chat", 0, 4, word=0), Token("</s>", 4, 4, special=True)))
    weights = np.array([[0.25, 0.75], [0.5, 0.5]]) if weights is None else weights
    looks = (
        Look(weights, ("chat", "</s>"), ("the", "cat"), "source", 0, 2, "target", "source"),
        Look(np.eye(1), ("query 1",), ("one",), "pooling", notes={"kind": "fixed"}),
    )
    return Trace(
        "translation",
        {"source": source, "target": target},
        looks,
        "chat",
        {"score": np.float32(-0.5), "probabilities": {"a": 0.5}, "ranks": (1, 2)},
        ((Alternative("chat", 0.9), Alternative("chien", 0.1)),),
        (Attribution("gradient", "source", np.array([-0.5, 1.5]), 0),),
        ((1, 0),),
        {"name": "tiny"},
    )


def same(one: Trace, other: Trace, error: float = 0.0) -> bool:
    plain = [
        (t.task, t.sides, t.output, t.alternatives, t.alignment, dict(t.card)) for t in (one, other)
    ]
    looks = all(
        (a.queries, a.keys, a.name, a.layer, a.head, a.query_side, a.key_side, a.notes)
        == (b.queries, b.keys, b.name, b.layer, b.head, b.query_side, b.key_side, b.notes)
        and np.abs(a.weights - b.weights).max(initial=0) <= error
        for a, b in zip(one.looks, other.looks, strict=True)
    )
    return plain[0] == plain[1] and looks


def test_traces_are_compared_by_every_value():
    one, other = a_trace(), a_trace()
    assert one == other
    assert one.looks == other.looks
    assert one.attributions[0] == other.attributions[0]
    assert Trace.from_json(one.to_json()) == Trace.from_json(other.to_json())
    touched = np.array([[0.25, 0.75], [0.5, 0.4]])
    for changed in (
        a_trace(touched),
        replace(one, output="chien"),
        replace(one, looks=one.looks[:1]),
        replace(one, prediction={**one.prediction, "score": -0.6}),
        replace(one, prediction={"score": np.zeros(2)}),
        replace(one, attributions=(Attribution("gradient", "source", np.array([0.0, 1.5]), 0),)),
    ):
        assert one != changed
        assert changed == changed
    assert one != "a trace"
    assert one.looks[0] != replace(one.looks[0], head=1)


@pytest.mark.parametrize(("pack_threshold", "error"), [(1024, 0.0), (0, 0.5 / 65535 + 1e-12)])
def test_what_is_written_is_read(pack_threshold, error):
    trace = a_trace()
    text = trace.to_json(pack_threshold)
    jsonschema.validate(json.loads(text), SCHEMA)
    read = Trace.from_json(text)
    assert same(trace, read, error)
    assert read.prediction == {"score": -0.5, "probabilities": {"a": 0.5}, "ranks": [1, 2]}
    assert read.attributions[0].values.tolist() == [-0.5, 1.5]
    assert read.attributions[0].output == 0


def test_words_of_a_side_are_written_once():
    looks = json.loads(a_trace().to_json())["looks"]
    assert "queries" not in looks[0]
    assert looks[1]["queries"] == ["query 1"]


@settings(max_examples=40, deadline=None)
@given(words=st.lists(st.sampled_from(WORDS) | st.text(max_size=8), min_size=1, max_size=5))
def test_any_words_come_through(words):
    tokens = tuple(Token(word) for word in words)
    weights = np.full((len(words), len(words)), 1 / len(words))
    look = Look(weights, tuple(words), tuple(words), query_side="text", key_side="text")
    trace = Trace("tag", {"text": Side("".join(words), tokens)}, (look,), "")
    document = trace.to_json()
    jsonschema.validate(json.loads(document), SCHEMA)
    assert same(trace, Trace.from_json(document))


@settings(max_examples=60, deadline=None)
@given(
    weights=arrays.arrays(
        np.float64,
        arrays.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=7),
        elements=st.floats(-1e6, 1e6),
    ),
    bits=st.integers(2, 16),
)
def test_packing_stays_within_its_error(weights, bits):
    record = json.loads(json.dumps(pack(weights, bits)))
    allowed = (record["high"] - record["low"]) / 131070 * 2 ** (16 - bits)
    found = unpack(record)
    assert found.shape == weights.shape
    assert np.abs(found - weights).max(initial=0) <= allowed * (1 + 1e-6) + 1e-12


def test_packed_weights_can_be_read_by_hand():
    record = pack(np.array([[0.0, 0.2], [0.8, 1.0], [0.5, 0.1]]))
    raw = gzip.decompress(base64.b64decode(record["data"]))
    codes = [low + 256 * high for low, high in zip(raw[:6], raw[6:], strict=True)]
    assert codes == [round(w * 65535) for w in (0.0, 0.2, 0.8, 1.0, 0.5, 0.1)]


def test_what_is_not_finite_is_not_written():
    with pytest.raises(ValueError, match="must be finite"):
        a_trace(np.array([[np.nan, 0], [0, 0]])).to_json(pack_threshold=0)
    with pytest.raises(ValueError, match="not JSON compliant"):
        a_trace(np.array([[np.inf, 0], [0, 0]])).to_json()


def changed(change) -> str:
    document = json.loads(a_trace().to_json())
    change(document)
    return json.dumps(document)


def put(path, value):
    def change(document):
        *way, last = path
        for step in way:
            document = document[step]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            put(["schema"], "other/2"),
            "not a trace: expected schema 'regard.trace/2', got 'other/2'",
        ),
        (
            put(["schema"], "regard.trace/1"),
            r"a trace of schema 'regard.trace/1', which this version does not read",
        ),
        (put(["looks"], {}), r"t.json: looks: expected a list, got an object"),
        (put(["looks", 0, "hed"], 1), r"looks\[0\]: unknown field 'hed': did you mean 'head'"),
        (put(["looks", 0, "layer"], True), r"looks\[0\].layer: expected a whole number, got True"),
        (put(["looks", 0, "layer"], -1), r"looks\[0\].layer: expected a whole number from 0"),
        (put(["looks", 0, "weights"], [[1.0]]), r"looks\[0\].weights: expected 2 rows of 2, got 1"),
        (put(["looks", 0, "weights", 0, 0], "x"), r"weights\[0\]\[0\]: expected a number, got 'x'"),
        (
            put(["looks", 0, "query_side"], "nobody"),
            r"has no 'queries', nor is there a side 'nobody'",
        ),
        (
            put(["sides", "source", "tokens", 0], "the"),
            r"tokens\[0\]: expected an object, got 'the'",
        ),
        (put(["attributions", 0, "values"], [1.0]), r"1 values do not fit side 'source'"),
        (put(["alignment"], [[1]]), r"alignment\[0\]: expected two whole numbers"),
        (put(["alternatives", 0, 0, "probability"], 10**400), r"expected a finite number"),
        (put(["card"], []), r"card: expected an object, got a list"),
    ],
)
def test_a_wrong_document_says_what_is_wrong(change, message):
    with pytest.raises(RegardError, match=message) as caught:
        Trace.from_json(changed(change), "t.json")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"t:1: not JSON"),
        ("[]", "not a trace"),
        ('{"schema": "regard.trace/2", "task": NaN}', "holds NaN"),
        ('{"schema": "regard.trace/2"}', "document: has no 'sides'"),
        ("[" * 200_000, "not readable as JSON"),
        (b"\xff\xfe\xfa", "not readable as JSON"),
    ],
)
def test_what_is_no_trace_is_refused(text, message):
    with pytest.raises(RegardError, match=message):
        Trace.from_json(text, "t")


def packed_document(shape, raw, **more):
    names = ("low", "high")
    data = base64.b64encode(gzip.compress(raw)).decode()
    weights = {"encoding": "uint16-planes-gzip-base64", "shape": shape, "data": data}
    weights |= dict(zip(names, (0.0, 1.0), strict=True)) | more
    return changed(put(["looks", 0, "weights"], weights))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (packed_document([2, 2], b"\0" * 5_000_000), "not exactly 2 × 2 numbers"),
        (packed_document([2, 2], b"\0" * 7), "not exactly 2 × 2 numbers"),
        (packed_document([65536, 65536], b""), "expected 2 rows of 2, got 65536 × 65536"),
        (packed_document([2, 2], b"\0" * 8, data="!!"), "not uint16-planes-gzip-base64"),
        (packed_document([2, 2], b"\0" * 8, encoding="zip"), "encoding: expected 'uint16"),
    ],
)
def test_hostile_sizes_are_bounded(document, message):
    with pytest.raises(RegardError, match=message):
        Trace.from_json(document)


def test_many_large_looks_are_refused_before_they_are_unpacked():
    side = {"text": "", "tokens": [{"text": ""}] * 20_000}
    data = base64.b64encode(gzip.compress(struct.pack("<H", 0))).decode()
    look = {"name": "a", "query_side": "s", "key_side": "s"}
    look["weights"] = {"encoding": "x", "shape": [20_000] * 2, "low": 0, "high": 1, "data": data}
    document = {"schema": "regard.trace/2", "task": "t", "sides": {"s": side}, "output": ""}
    with pytest.raises(RegardError, match="more than 67108864 weights in all"):
        Trace.from_json(json.dumps({**document, "looks": [look]}))


@settings(max_examples=80, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=6,
    ),
    st.sampled_from(sorted(json.loads(a_trace().to_json()))),
)
def test_any_value_in_any_field_is_read_or_refused(value, name):
    document = {**json.loads(a_trace().to_json()), name: value}
    try:
        Trace.from_json(json.dumps(document))
    except RegardError:
        return


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(RegardError, match="cannot be read"):
        Trace.read(tmp_path / "none.json")
