"""Surfaces: files by their endings, the page, the notebook, the command line."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from regard.cli import main
from regard.errors import RegardError
from regard.show import fit_page, render_page, show, trace_from_looks
from regard.show.colours import STOPS
from regard.show.html_page import MODULES, asset, bundle
from regard.trace import Trace
from regard.trace.look import Look, from_arrays

HOSTILE = ("</script><script>alert(1)</script>", "<!--", "\u202eevil", "]]>", "😀", "\ud800")


def hostile_look():
    size = len(HOSTILE)
    return from_arrays(np.eye(size), HOSTILE, HOSTILE, name="</style><b>")


def many(layers, size=60, heads=2):
    rng = np.random.default_rng(0)
    words = tuple(f"w{i}" for i in range(size))
    return trace_from_looks(
        *(
            Look(rng.dirichlet(np.ones(size), size), words, words, "self", layer, head, "t", "t")
            for layer in range(layers)
            for head in range(heads)
        )
    )


class Reader(HTMLParser):
    """What a browser would find: elements, their attributes, and the text of each."""

    def __init__(self):
        super().__init__()
        self.found, self.inside, self.open = [], {}, False

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.inside.setdefault(len(self.found) - 1, "")
        self.open = True

    def handle_endtag(self, tag):
        self.open = False

    def handle_data(self, data):
        if self.open:
            self.inside[len(self.found) - 1] += data


def read(text):
    reader = Reader()
    reader.feed(text)
    return reader


def scripts(reader):
    return [
        (attributes, reader.inside[i])
        for i, (tag, attributes) in enumerate(reader.found)
        if tag == "script"
    ]


def test_a_page_runs_its_own_script_and_no_other():
    reader = read(render_page(trace_from_looks(hostile_look()), title="</title><script>"))
    (kind, data), (module, code) = scripts(reader)
    assert kind == {"type": "application/json", "id": "trace"}
    assert module == {"type": "module"}
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = next(a["content"] for t, a in reader.found if "http-equiv" in a)
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<" not in data
    found = json.loads(data)["trace"]
    assert found["sides"]["queries"]["tokens"][0]["text"] == HOSTILE[0]
    assert not any(tag == "b" for tag, _ in reader.found)


def test_a_page_asks_nobody():
    text = render_page(many(1))
    code = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://", code)
    assert "innerHTML" not in text
    assert "eval(" not in text


def test_the_document_in_a_page_is_a_trace():
    trace = many(2)
    (_, data), _ = scripts(read(render_page(trace)))
    found = Trace.from_json(json.dumps(json.loads(data)["trace"]))
    for one, other in zip(trace.looks, found.looks, strict=True):
        assert np.abs(one.weights - other.weights).max() < 1e-5


def test_weights_of_a_large_page_are_rounded_before_anything_is_left_out():
    trace = many(6, size=100)
    whole = fit_page(trace, None)
    assert (whole.bits, whole.left_out, whole.notes()) == (16, (), [])
    for bits, share in ((12, 0.85), (10, 0.7)):
        page = fit_page(trace, round(share * len(whole.text)))
        assert len(page.text) <= share * len(whole.text)
        assert (page.bits, page.left_out) == (bits, ())
        assert page.notes() == [f"weights rounded to 1/{2**bits:,}"]
        (_, data), _ = scripts(read(page.text))
        held = json.loads(data)
        assert held["rounded"] == 2**bits
        found = Trace.from_json(json.dumps(held["trace"]))
        for one, other in zip(trace.looks, found.looks, strict=True):
            assert np.abs(one.weights - other.weights).max() < 0.51 / 2**bits


def test_layers_that_do_not_fit_are_left_out_and_named():
    self_attention = many(6, size=100)
    source = [
        Look(look.weights, look.queries, look.keys, "source", look.layer, look.head, "t", "t")
        for look in self_attention.looks[:4]
    ]
    trace = trace_from_looks(*source, *self_attention.looks)
    budget = len(fit_page(trace, None).text) // 2
    page = fit_page(trace, budget)
    assert 0.8 * budget < len(page.text) <= budget
    (_, data), _ = scripts(read(page.text))
    held = json.loads(data)
    kept = [(look["name"], look["layer"]) for look in held["trace"]["looks"]]
    assert [one for one in kept if one[0] == "source"] == [("source", n) for n in (0, 0, 1, 1)]
    layers = sorted({layer for name, layer in kept if name == "self"})
    assert layers
    assert layers[-1] == 5
    assert held["left_out"] == [f"self layer {n}" for n in range(6) if n not in layers]
    assert page.left_out == tuple(held["left_out"])
    with pytest.raises(RegardError, match=r"one layer alone is more than the 0\.1 MB"):
        render_page(many(2), max_bytes=100_000)


def test_the_command_says_what_a_page_leaves_out(tmp_path, capsys):
    file = tmp_path / "trace.json"
    file.write_text(many(5, size=400).to_json(), "utf-8")
    pages = []
    for megabytes in ("5", "1"):
        page = tmp_path / f"page-{megabytes}.html"
        assert main(["show", str(file), "--to", str(page), "--budget", megabytes]) == 0
        pages.append((page.stat().st_size, capsys.readouterr()))
    (large, whole), (small, less) = pages
    assert small <= 1e6 < large
    assert "rounded" not in whole.out + whole.err
    assert "weights rounded to 1/1,024" in less.out
    assert "left out to keep the page small: self layer 0" in less.out
    assert less.err == "regard: note: --budget 2 allows a larger page\n"


def test_many_numbers_keep_fourteen_bits():
    words = tuple(f"w{i}" for i in range(200))
    weights = np.random.default_rng(0).dirichlet(np.ones(200), 200)
    looks = [Look(weights, words, words, "self", 0, head, "t", "t") for head in range(26)]
    (_, data), _ = scripts(read(render_page(trace_from_looks(*looks))))
    found = Trace.from_json(json.dumps(json.loads(data)["trace"]))
    assert 1e-5 < np.abs(found.looks[3].weights - weights).max() < 3.2e-5


def test_all_modules_are_in_the_bundle():
    code = bundle()
    assert not re.search(r"^(import|export)\b", code, flags=re.M)
    names = {f"{name}.js" for name in MODULES} | {"start.js", "page.css"}
    folder = __import__("importlib.resources").resources.files("regard.show") / "page"
    assert names == {entry.name for entry in folder.iterdir()}
    for name in MODULES:
        for needed in re.findall(r'^import\b[^;]*"\./(\w+)\.js";', asset(f"{name}.js"), flags=re.M):
            assert MODULES.index(needed) < MODULES.index(name)


def test_the_page_has_the_colours_of_the_pictures():
    assert str(list(STOPS)).replace("'", '"') in asset("colours.js")


def test_a_notebook_keeps_a_table_where_scripts_are_taken_away():
    look = from_arrays([[0.81, 0.19]], ["chat"], ["<b>cat", "the"])
    text = look._repr_html_()
    assert text.index("<table>") < text.index("<iframe")
    without = re.sub(r"<iframe.*</iframe>", "", text, flags=re.S)
    assert "0.81" in without
    assert "&lt;b&gt;cat" in without
    reader = read(text)
    frame = next(attributes for tag, attributes in reader.found if tag == "iframe")
    assert frame["sandbox"] == "allow-scripts allow-downloads"
    assert frame["srcdoc"].startswith("<!doctype html>")
    assert not any(tag == "script" for tag, _ in reader.found)


def test_a_long_look_is_a_picture_in_a_notebook():
    text = many(1)._repr_html_()
    assert text.index("data:image/png;base64,") < text.index("<iframe")


def test_a_look_shows_itself_in_the_terminal():
    drawn = from_arrays([[0.81, 0.19]], ["chat"], ["cat", "the"]).show()
    assert "█ .81" in repr(drawn)


@pytest.mark.parametrize(
    ("ending", "begins"),
    [("html", b"<!doctype"), ("svg", b"<svg"), ("png", b"\x89PNG"), ("json", b'{"schema"')],
)
def test_the_ending_says_what_a_file_becomes(tmp_path, ending, begins):
    path = tmp_path / f"out.{ending}"
    assert str(path) in repr(show(hostile_look(), path))
    assert path.read_bytes().startswith(begins)


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(RegardError, match="unknown file format 'jpg'"):
        show(hostile_look(), tmp_path / "out.jpg")


def test_the_command_draws_a_saved_trace(tmp_path, capsys, monkeypatch):
    saved = tmp_path / "trace.json"
    look = from_arrays([[0.81, 0.19]], ["chat\x1b[31m"], ["cat", "the"])
    saved.write_text(trace_from_looks(look).to_json())
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["show", str(saved)]) == 0
    printed = capsys.readouterr().out
    assert ".81" in printed
    assert "\x1b" not in printed
    assert main(["show", str(saved), "--to", str(tmp_path / "page.html")]) == 0
    assert main(["show", str(saved), "--to", str(tmp_path / "a.svg"), "--picture", "links"]) == 0
    assert (tmp_path / "a.svg").read_text().startswith("<svg")
    paper = ["--to", str(tmp_path / "a.pdf"), "--no-title", "--font-size", "9"]
    assert main(["show", str(saved), *paper]) == 0
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.json"], "none.json: no such run folder or trace file"),
        (["none.json", "--to", "a.gif"], "--to a.gif: expected terminal, or a file that ends in"),
        (["none.json", "--text", "x"], "none.json: no such run folder or trace file"),
        (["."], ".: not a run folder (no config.json)"),
        ([".", "--text", "x"], "not a run folder"),
        (["none.json", "--picture", "link"], "did you mean 'links'"),
        (["none.json", "--font-size", "2"], "expected a number from 4 to 100, got '2'"),
        (
            ["none.json", "--title", "A", "--no-title"],
            "--no-title: cannot be combined with --title",
        ),
    ],
)
def test_the_command_says_what_is_wrong(arguments, message, capsys):
    assert main(["show", *arguments]) == 2
    assert message in capsys.readouterr().err
