"""Progress is silent unless a reporter is set, and knows every stage to its end."""

import pytest

from regard.progress import reporting, stage, track


def collect(calls):
    return lambda stage: calls.append((stage.label, stage.done, stage.total, stage.ended))


def test_without_a_reporter_items_pass_through():
    assert list(track(iter("abc"), "reading")) == ["a", "b", "c"]


def test_a_reporter_is_called_for_every_item_and_at_the_end():
    calls = []
    with reporting(collect(calls)):
        list(track([[1, 2], [3]], "reading", 3, weight=len))
    assert calls == [
        ("reading", 0, 3, False),
        ("reading", 2, 3, False),
        ("reading", 3, 3, False),
        ("reading", 3, 3, True),
    ]


def test_an_error_ends_the_stage_and_the_reporter_is_gone_afterwards():
    calls = []
    with pytest.raises(ZeroDivisionError), reporting(collect(calls)), stage("dividing"):
        raise ZeroDivisionError
    assert calls[-1] == ("dividing", 0, None, True)
    list(track("ab", "silent"))
    assert len(calls) == 2


def test_none_silences_what_is_within():
    calls = []
    with reporting(collect(calls)), reporting(None):
        list(track("ab", "silent"))
    assert calls == []
