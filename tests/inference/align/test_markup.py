"""Markup: parsed by hand-counted words, transferred around the words that are linked."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.inference.align.inline_tags import parse
from regard.inference.align.markup import transfer

LE_CHAT = {(0, 0), (1, 2), (2, 1)}


def moved(line, links, target, kind="xml"):
    return transfer(parse(line, kind)[1], links, target.split())


def test_a_tag_goes_around_the_aligned_word():
    assert moved("the <b>white</b> cat", LE_CHAT, "le chat blanc") == "le chat <b>blanc</b>"
    assert moved("<i>the white cat</i>", LE_CHAT, "le chat blanc") == "<i>le chat blanc</i>"


def test_other_words_between_two_pieces_stay_outside():
    links = {(0, 0), (2, 1), (2, 3), (3, 2)}
    found = moved('she does <a href="x" id="y">not</a> sleep', links, "elle ne dort pas")
    assert found == 'elle <a href="x" id="y">ne</a> dort <a href="x">pas</a>'


def test_unlinked_words_between_are_taken_in():
    assert moved("<b>x</b> y", {(0, 0), (0, 2), (1, 3)}, "a b c d") == "<b>a b c</b> d"


def test_nested_tags_stay_nested():
    line = "<p>the <b>very <i>white</i></b> cat</p>"
    links = {(0, 0), (1, 2), (2, 3), (3, 1)}
    assert moved(line, links, "le chat très blanc") == "<p>le chat <b>très <i>blanc</i></b></p>"


def test_empty_tags_keep_their_neighbour():
    assert moved("white<sup/> cat", {(0, 1), (1, 0)}, "chat blanc") == "chat blanc<sup/>"
    assert moved("white <img/>cat", {(0, 1), (1, 0)}, "chat blanc") == "<img/>chat blanc"
    assert moved("cat <br/>", {(0, 0)}, "chat") == "chat<br/>"
    assert moved("<b>cat<x/></b> x", {(0, 1)}, "y chat") == "y <b>chat<x/></b>"
    assert moved("a <b>b</b> c", {(0, 0), (2, 1)}, "x z") == "x <b></b>z"
    assert moved("<b><i/></b>", set(), "") == "<b><i/></b>"


def test_entities_and_void_elements():
    text, tags = parse("a &lt; b<BR>&eacute; <Em class=x>c</EM> &amp; 1 < 2", "html")
    assert text == "a < bé c & 1 < 2"
    assert [(tag.opening, tag.start, tag.end) for tag in tags] == [
        ("<BR>", 3, 3),
        ("<Em class=x>", 3, 4),
    ]
    assert transfer([], set(), ["a", "<", "b", "&"]) == "a &lt; b &amp;"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a <b>c", "in:7: <b> is not closed"),
        ("a c</b>", "in:7: </b> has no matching opening tag: no tag is open"),
        ("<i>a <b>c</i></b>", "in:7: </i> has no matching opening tag: expected </b>"),
        ("a < b", "in:7: < is not a whole tag"),
        ("a <b", "in:7: <b is not a whole tag"),
        ("a & b", "in:7: & is not an entity of XML"),
        ("a &nbsp; b", "in:7: &nbsp; is not an entity of XML"),
        ("a <br> b", "in:7: <br> is not closed"),
    ],
)
def test_what_is_not_well_formed(line, words):
    with pytest.raises(RegardError, match=re.escape(words)):
        parse(line, "xml", "in:7")


def test_unknown_kind():
    with pytest.raises(RegardError, match="unknown markup 'htm': did you mean 'html'"):
        parse("a", "htm")


@st.composite
def marked(draw, depth=3):
    pieces = []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from(["word", "empty", "element"] if depth else ["word", "empty"]))
        gap = draw(st.sampled_from(["", " "]))
        name = draw(st.sampled_from("abc"))
        if kind == "word":
            pieces.append(f" w{name} ")
        elif kind == "empty":
            pieces.append(f"{gap}<{name}/>")
        else:
            pieces.append(f"{gap}<{name}>{draw(marked(depth=depth - 1))}</{name}>")
    return "".join(pieces)


@given(marked(), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 4))), st.integers(0, 5))
def test_whatever_the_links_the_result_is_well_formed_and_whole(line, links, count):
    text, tags = parse(line, "xml")
    words = [f"t{i}" for i in range(count)]
    links = {(s, t) for s, t in links if s < len(text.split()) and t < count}
    found = transfer(tags, links, words)
    tree = ElementTree.fromstring(f"<line>{found}</line>")
    assert "".join(tree.itertext()).split() == words
    before = ElementTree.fromstring(f"<line>{line}</line>")
    # every kind of tag is still there; one in pieces may be there more often
    assert {one.tag for one in tree.iter()} == {one.tag for one in before.iter()}
    assert sum(1 for _ in tree.iter()) >= sum(1 for _ in before.iter())
