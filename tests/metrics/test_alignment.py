"""Alignment error rate by hand and by brute force over pairs of words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.metrics import (
    GoldLinks,
    alignment_error_rate,
    alignment_metrics,
    metric_value,
    parse_pharaoh,
)

LINKS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 4)))


def test_by_hand():
    # Four links found: two sure, one more possible, one wrong; one sure link missed.
    gold = [parse_pharaoh("0-0 1-1 2-2 2p3")]
    tallies = alignment_metrics([{(0, 0), (1, 1), (2, 3), (3, 0)}], gold)
    assert metric_value(tallies["precision"]) == pytest.approx(3 / 4)
    assert metric_value(tallies["recall"]) == pytest.approx(2 / 3)
    assert metric_value(tallies["aer"]) == pytest.approx(1 - (2 + 3) / (4 + 3))


@given(st.lists(st.tuples(LINKS, LINKS, LINKS), min_size=1, max_size=5))
def test_by_brute_force(corpus):
    found_sure = found_possible = found = sure = 0
    for links, sure_links, possible_links in corpus:
        for link in [(i, j) for i in range(4) for j in range(5)]:
            found_sure += link in links and link in sure_links
            found_possible += link in links and (link in possible_links or link in sure_links)
            found += link in links
            sure += link in sure_links
    links = [list(one) for one, _, _ in corpus]
    gold = [GoldLinks(frozenset(s), frozenset(p)) for _, s, p in corpus]
    ours = {name: metric_value(tally) for name, tally in alignment_metrics(links, gold).items()}
    if found:
        assert ours["precision"] == pytest.approx(found_possible / found)
    if sure:
        assert ours["recall"] == pytest.approx(found_sure / sure)
    if found + sure:
        assert ours["aer"] == pytest.approx(1 - (found_sure + found_possible) / (found + sure))


def test_a_perfect_alignment_has_no_error():
    gold = [parse_pharaoh("0-0 1-2 1p1"), parse_pharaoh("")]
    assert metric_value(alignment_error_rate([gold[0].sure, set()], gold)) == 0
    assert metric_value(alignment_error_rate([gold[0].possible, set()], gold)) == 0


def test_pharaoh_lines():
    gold = parse_pharaoh("0-0  2?1 10p3 \n")
    assert gold.sure == {(0, 0)}
    assert gold.possible == {(0, 0), (2, 1), (10, 3)}
    assert parse_pharaoh("1-1 2p3", first=1) == parse_pharaoh("0-0 1p2")
    assert parse_pharaoh("") == (frozenset(), frozenset())


@pytest.mark.parametrize("link", ["0", "0-", "a-1", "-1-0", "0_1", "1-2-3", "٣-1"])
def test_bad_links(link):
    with pytest.raises(ValueError, match=r"link 2 is .*: expected i-j"):
        parse_pharaoh(f"0-0 {link}")


def test_bad_counts():
    with pytest.raises(ValueError, match="link 1 is '0-1': words are counted from 1"):
        parse_pharaoh("0-1", first=1)
    with pytest.raises(ValueError, match="predicted 1, gold 0"):
        alignment_error_rate([set()], [])
