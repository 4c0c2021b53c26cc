"""Files of links: both formats, both ways of counting, and what is wrong with them."""

import re

import pytest

from regard.errors import RegardError
from regard.metrics import alignment_metrics, metric_value, parse_pharaoh
from regard.metrics.gold import parse_links, zero_based_links

PHARAOH = ["1-1 2p2", "", "2-1"]
NAACL = ["0001 1 1 S", "0001 2 2 P 0.5", "3 2 1"]


def test_both_formats_say_the_same():
    lengths = [(2, 2), (3, 1), (2, 1)]
    pharaoh, naacl = (
        zero_based_links(parse_links(rows, "gold"), lengths) for rows in (PHARAOH, NAACL)
    )
    assert pharaoh == naacl
    assert pharaoh[0].sure == {(0, 0)}
    assert pharaoh[0].possible == {(0, 0), (1, 1)}
    assert pharaoh[1].possible == set()
    assert pharaoh[2].sure == {(1, 0)}


def test_a_zero_proves_counting_from_0():
    found = zero_based_links(parse_links(["0-1", "2-2"], "gold"), [(2, 2), (3, 3)])
    assert [links.sure for links in found] == [{(0, 1)}, {(2, 2)}]
    assert zero_based_links(parse_links(["0-1", "2-2"], "gold")) == found


def test_a_full_length_proves_counting_from_1():
    found = zero_based_links(parse_links(["1-2", "2-2"], "gold"), [(5, 5), (3, 2)])
    assert [links.sure for links in found] == [{(0, 1)}, {(1, 1)}]


def test_what_nothing_proves_is_asked_for():
    gold = parse_links(["1-2"], "test.gold")
    with pytest.raises(
        RegardError, match=r"test.gold: .* give --indexed-from 0 or --indexed-from 1"
    ):
        zero_based_links(gold, [(5, 5)])
    assert zero_based_links(gold, [(5, 5)], first=0)[0].sure == {(1, 2)}
    assert zero_based_links(gold, [(5, 5)], first=1)[0].sure == {(0, 1)}
    assert zero_based_links(parse_links(["1 1 2"], "naacl"), [(5, 5)])[0].sure == {(0, 1)}


def test_target_first():
    found = zero_based_links(parse_links(["0-3"], "gold"), [(4, 1)], target_first=True)
    assert found[0].sure == {(3, 0)}


def test_sentences_without_links_at_the_end_of_naacl():
    assert len(zero_based_links(parse_links(NAACL, "gold"), [(2, 2), (3, 1), (2, 1), (4, 4)])) == 4


@pytest.mark.parametrize(
    ("rows", "lengths", "first", "words"),
    [
        (["0-0", "0-0"], [(1, 1)], None, "gold has links for 2 pairs but there are 1"),
        (["0-0"], [(1, 1), (1, 1)], None, "gold has links for 1 pairs but there are 2"),
        (["0-0", "0-x"], None, None, "gold:2: link 1 is '0-x'"),
        (["1 1 1", "1 1"], None, None, "gold:2: '1 1': expected sentence, source word"),
        (["0 1 1"], None, None, "gold:1: sentence 0"),
        (["0-0", "1-1"], [(2, 2), (1, 2)], None, "some links count words from 0, others from 1"),
        (["0-0", "1-1"], [(2, 2), (1, 2)], 0, "gold:2: link 1-1, counted from 0: the source"),
        (["0-0"], [(2, 2)], 1, "gold:1: link 0-0: words are counted from 1"),
        (
            ["0-0 0-7"],
            [(2, 2)],
            None,
            "gold:1: link 0-7, counted from 0: the target sentence has 2",
        ),
    ],
)
def test_what_is_wrong_is_named(rows, lengths, first, words):
    with pytest.raises(RegardError, match=re.escape(words)):
        zero_based_links(parse_links(rows, "gold"), lengths, first=first)


def test_error_rate_by_hand_from_a_file():
    gold = zero_based_links(parse_links(["1-1 2-2 3p2"], "gold"), [(3, 2)])
    found = [parse_pharaoh("0-0 2-1 1-0").sure]
    tallies = alignment_metrics(found, gold)
    # of 3 links found 1 is sure, 2 are possible; 2 are sure in all
    assert metric_value(tallies["aer"]) == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert metric_value(tallies["precision"]) == pytest.approx(2 / 3)
    assert metric_value(tallies["recall"]) == pytest.approx(1 / 2)
