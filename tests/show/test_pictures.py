"""Pictures of looks: what is in them, and what hostile words cannot do."""

import io
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from regard.errors import RegardError
from regard.show import (
    draw,
    draw_svg,
    head_grid,
    links,
    matrix,
    report,
    shaded_matrix,
    text_shading,
    top_keys,
    trace_from_looks,
)
from regard.show.colours import STOPS, colour, luminance, rgb, text_colour
from regard.show.curves import Curve, Panel, curves_svg
from regard.show.look_names import LOOK_NAMES
from regard.show.png import encode_png, png_from_svg
from regard.show.text_width import display_width, printable, truncate
from regard.trace.look import Look, from_arrays

HOSTILE = ["</script>", "\x1b[31mred", "\u202eright", "a&b<c", "x" * 10_000, "😀", "\ud800", ""]
NAMESPACE = "{http://www.w3.org/2000/svg}"


def square(words, seed=0, **more):
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(words)), len(words))
    return Look(weights, tuple(words), tuple(words), query_side="text", key_side="text", **more)


def heads(layers=2, count=3):
    words = ("the", "cat", "sleeps")
    looks = [
        square(words, 7 * layer + head, name="encoder.self", layer=layer, head=head)
        for layer in range(layers)
        for head in range(count)
    ]
    return trace_from_looks(*looks)


def texts(svg):
    return [node.text for node in ET.fromstring(svg).iter(f"{NAMESPACE}text") if node.text]


def test_terminal_shades_grow_with_the_weight():
    look = from_arrays([[0.0, 0.25, 0.5, 1.0]], ["q"], list("abcd"))
    row = shaded_matrix(look).splitlines()[1]
    shades = [c for c in row if c in "░▒▓█"]
    assert shades == ["░", "▒", "█"]


def test_terminal_says_what_does_not_fit():
    look = from_arrays(np.full((1, 60), 1 / 60), ["q"], [f"k{i}" for i in range(60)])
    text = shaded_matrix(look, width=60)
    assert all(len(line) <= 60 for line in text.splitlines())
    assert "more keys to the right" in text


@pytest.mark.parametrize(("width", "blocks"), [(100, 1), (80, 1), (60, 2), (40, 4)])
def test_terminal_shows_all_keys_of_a_sentence(width, blocks):
    keys = [
        "Paul",
        "will",
        "not",
        "photograph",
        "the",
        "boring",
        "book",
        "next",
        "week",
        ".",
        "<eos>",
    ]
    queries = ["Paul", "ne", "photographiera", "pas", "le", "livre", "ennuyeux"]
    weights = np.eye(len(queries), len(keys))
    text = shaded_matrix(from_arrays(weights, queries, keys), width)
    assert "more keys" not in text
    assert max(map(len, text.splitlines())) <= width
    heads = [line.split() for line in text.splitlines() if line.startswith(" " * 10)]
    assert len(heads) == blocks
    shown = [head for line in heads for head in line]
    assert len(shown) == len(keys)
    assert all(key.startswith(head.rstrip("…")) for key, head in zip(keys, shown, strict=True))
    assert text.count("█") == len(queries)


def test_terminal_report_has_no_empty_lines_for_sides_without_a_text():
    trace = trace_from_looks(from_arrays([[0.5, 0.5]], ["query 1"], ["good", "film"]))
    queries = trace.looks[0].query_side
    trace = replace(trace, sides=trace.sides | {queries: replace(trace.sides[queries], text="")})
    assert f"{queries}:" not in report(trace)
    assert "film" in report(trace)


@pytest.mark.parametrize("width", [40, 60, 100])
def test_terminal_lines_fit_wide_letters(width):
    words = ["猫が好きです", "e\u0301tude", "ordinary", "한국어"]
    for text in (shaded_matrix(square(words), width), top_keys(square(words), width)):
        assert max(display_width(line) for line in text.splitlines()) <= width


def test_terminal_columns_stand_under_their_names():
    head, row = shaded_matrix(from_arrays([[0.5, 0.5]], ["猫"], ["日本", "ab"])).splitlines()
    assert display_width(head) == display_width(row)


def test_terminal_colours_only_when_asked_for():
    look = square(["a", "b"])
    assert "\x1b" not in shaded_matrix(look)
    plain = re.sub(r"\x1b\[[\d;]*m", "", shaded_matrix(look, colour=True))
    assert [line.split() for line in plain.splitlines()[1:]] == [
        [part for part in line.split() if part not in "░▒▓█"]
        for line in shaded_matrix(look).splitlines()[1:]
    ]


def test_long_looks_become_their_largest_numbers():
    words = [f"w{i}" for i in range(300)]
    text = report(trace_from_looks(square(words)), 80)
    assert all(display_width(line) <= 80 for line in text.splitlines())
    row = int(np.argmax(square(words).weights[17]))
    assert f"w{row} " in next(line for line in text.splitlines() if line.startswith("w17 "))


def test_words_are_cut_by_columns():
    assert truncate("日本語です", 5) == "日本…"
    assert printable("a\u202eb\x07\u2066c\u2028") == "abc"


@settings(max_examples=20, deadline=None)
@given(st.text(st.characters(), min_size=1))
@example("\ufffe\uffff")
@example("\ud800\ufdd0\x00")
def test_pictures_of_any_text_are_well_formed(word):
    look = square([word, "a"])
    for drawing in (matrix, links, text_shading):
        ET.fromstring(drawing(look, title=word))
    ET.fromstring(curves_svg([Panel(word, [Curve(word, [1.0], [2.0])])], word))


@pytest.mark.parametrize("drawing", [matrix, links, text_shading])
def test_hostile_words_are_only_text(drawing):
    look = square(HOSTILE)
    assert "\x1b" not in shaded_matrix(look)
    assert "\u202e" not in shaded_matrix(look)
    found = texts(drawing(look, title="</title><script>alert(1)</script>"))
    assert "</script>" in found
    assert "a&b<c" in found
    assert not any("\u202e" in text or "\x1b" in text for text in found)
    tags = {node.tag.removeprefix(NAMESPACE) for node in ET.fromstring(drawing(look)).iter()}
    assert tags <= {"svg", "title", "desc", "rect", "text", "path", "g", "image"}


def test_colours_darken_all_the_way():
    shades = [luminance(rgb(share / 50)) for share in range(51)]
    assert shades == sorted(shades, reverse=True)
    assert len(set(shades)) == 51
    assert colour(0.0) == STOPS[0]
    assert colour(1.0) == STOPS[-1]


def test_numbers_on_cells_can_be_read():
    for share in np.linspace(0, 1, 101):
        letters = np.array(
            [int(text_colour(share)[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.uint8
        )
        light, dark = sorted((luminance(rgb(share)), luminance(letters)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_matrix_has_its_numbers_and_range():
    look = from_arrays([[0.81, 0.19]], ["chat"], ["cat", "the"])
    found = texts(matrix(look, "A title"))
    assert {"A title", "chat", "cat", "the", "0.81", "0.19", "0", "each row sums to 1"} <= set(
        found
    )
    fills = [n.get("fill") for n in ET.fromstring(matrix(look)).iter(f"{NAMESPACE}rect")]
    assert colour(1.0) in fills
    assert colour(0.19 / 0.81) in fills


def test_the_axes_of_pictures_have_names_and_zeros_are_blank():
    look = from_arrays([[0.996, 0.004], [0.5, 0.5]], ["chat", "le"], ["cat", "the"])
    look = replace(look, query_side="target", key_side="source")
    found = texts(matrix(look))
    assert {"target (queries)", "source (keys)"} <= set(found)
    assert "0.00" not in found
    assert "each row sums to 1; cells without a number: below 0.005" in " ".join(found)
    assert {"target", "source"} <= set(texts(links(look)))


def test_labels_of_many_words_are_thinned_and_never_overlap():
    for count in (12, 30, 48, 90, 400):
        words = tuple(f"w{i}" for i in range(count))
        labels = [
            node
            for node in ET.fromstring(matrix(square(words))).iter(f"{NAMESPACE}text")
            if "rotate(-45" in (node.get("transform") or "")
        ]
        places = [float(node.get("x")) for node in labels]
        size = float(labels[0].get("font-size", 14))
        # the distance between lines of text that are turned by 45°
        assert min(np.diff(places)) * np.sin(np.pi / 4) >= size
        assert size >= 10
        assert len(labels) == count if count <= 48 else 12 < len(labels) < count


def test_a_picture_for_a_paper_has_no_title_and_its_own_font_size():
    trace = heads()
    plain, paper = (
        ET.fromstring(draw(trace, "svg", picture="links", title="Mine", **options))
        for options in ({}, {"show_title": False, "font_size": 7})
    )
    written = [[node.text for node in svg.iter(f"{NAMESPACE}text")] for svg in (plain, paper)]
    assert "Mine" in written[0]
    assert "Mine" not in written[1]
    assert paper.find(f"{NAMESPACE}title").text == "Mine"  # for readers who cannot see it
    assert float(paper.get("width")) == pytest.approx(float(plain.get("width")) / 2)
    assert float(paper.get("height")) < float(plain.get("height")) / 2
    assert draw(trace, "pdf", show_title=False, font_size=9).startswith(b"%PDF")


def test_the_app_calls_looks_as_pictures_do():
    script = Path("regard/show/page/look-names.js").read_text("utf-8")
    table = script.split("const LOOKS = {")[1].split("};")[0]
    assert dict(re.findall(r'"?([\w.]+)"?: "([^"]+)",', table)) == LOOK_NAMES


def test_the_note_of_links_does_not_widen_the_picture():
    look = from_arrays([[0.9, 0.1]], ["a"], ["x", "y"])
    right = max(
        float(node.get("x")) for node in ET.fromstring(links(look)).iter(f"{NAMESPACE}text")
    )
    assert float(ET.fromstring(links(look)).get("width")) < right + 120


def test_links_are_as_many_as_weights_above_the_threshold():
    look = from_arrays([[0.9, 0.1, 0.0], [0.0, 0.5, 0.5]], ["a", "b"], ["x", "y", "z"])
    paths = list(ET.fromstring(links(look, threshold=0.2)).iter(f"{NAMESPACE}path"))
    assert len(paths) == 3
    widths = [float(path.get("stroke-width")) for path in paths]
    assert widths == sorted(widths)


def test_a_long_matrix_is_small():
    words = [f"w{i}" for i in range(400)]
    assert len(matrix(square(words))) < 700_000


def test_head_grid_has_one_picture_a_head():
    svg = head_grid(heads())
    # each head has its own scale, so that a number would be wrong for all but one of them
    assert "its largest weight" in texts(svg)
    assert not any(re.fullmatch(r"\d\.\d\d", text) for text in texts(svg))
    assert len(list(ET.fromstring(svg).iter(f"{NAMESPACE}image"))) == 6
    assert {"layer 0", "layer 1", "head 0", "head 2"} <= set(texts(svg))


def test_encoded_pixels_are_read_by_pillow():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(encode_png(pixels)))), pixels)


@pytest.mark.parametrize("picture", ["matrix", "links", "text", "heads"])
def test_png_has_the_colours_and_letters_of_the_svg(picture):
    trace = heads()
    svg = draw_svg(trace, picture)
    image = Image.open(io.BytesIO(draw(trace, "png", picture=picture))).convert("RGB")
    root = ET.fromstring(svg)
    assert image.size == (2 * int(root.get("width")), 2 * int(root.get("height")))
    assert len(image.getcolors(2**24)) > 12
    lettered = np.asarray(image)[20:70, 40:300]
    assert (lettered.sum(axis=-1) < 200).sum() > 100


def test_png_without_fonts_is_refused(monkeypatch):
    import resvg_py

    draw_plain = resvg_py.svg_to_bytes
    monkeypatch.setattr(
        resvg_py, "svg_to_bytes", lambda **o: draw_plain(**o, skip_system_fonts=True)
    )
    with pytest.raises(RegardError, match="no font is installed"):
        png_from_svg(matrix(square(["a", "b"])))


def test_looks_are_chosen_by_name_layer_and_head():
    trace = heads()
    last = [look.weights for look in trace.looks if look.layer == 1]
    found = texts(draw_svg(trace, "matrix"))
    assert "Encoder self-attention · layer 1 · mean of 3 heads" in found
    assert f"{np.mean(last, axis=0)[0, 0]:.2f}" in found
    largest = texts(draw_svg(trace, aggregate="max", layer=0))
    assert "Encoder self-attention · layer 0 · max of 3 heads" in largest
    with pytest.raises(RegardError, match=r"did you mean 'encoder\.self'"):
        draw_svg(trace, name="encoder.sefl")
    with pytest.raises(RegardError, match=r"has no layer 7: expected one of \[0, 1\]"):
        draw_svg(trace, layer=7)
    with pytest.raises(RegardError, match="has no head 5"):
        draw_svg(trace, head=5)
    with pytest.raises(RegardError, match="did you mean 'links'"):
        draw_svg(trace, "link")


def test_sizes_must_fit():
    with pytest.raises(ValueError, match=r"weights of shape \[2, 2\] do not fit 1 queries and 2"):
        from_arrays(np.eye(2), ["a"], ["b", "c"])
