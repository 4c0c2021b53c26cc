"""Progress as it is printed: on a terminal, elsewhere, and by a display that is quiet."""

import io
import re
import threading
from types import SimpleNamespace

import pytest

from regard.cli import main
from regard.commands.terminal import display
from regard.commands.terminal.display import Display
from regard.progress import reporting, stage, track


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(display, "DELAY", 0.0)
    monkeypatch.setattr(display, "REFRESH", 0.0)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")


def progress(step, speed=100.0, evaluation=None, share=0.25, note=""):
    position = SimpleNamespace(epoch=1, step=step, seconds=60.0)
    return SimpleNamespace(
        position=position,
        loss=2.5,
        tokens_per_second=speed,
        share=share,
        evaluation=evaluation,
        validation_loss=None if evaluation is None else 2.75,
        note=note,
    )


def evaluation():
    main = SimpleNamespace(name="BLEU", value=31.416, low=30.0, high=33.0, unit="points")
    sample = SimpleNamespace(given="ein haus", expected="a house", predicted="a home")
    return SimpleNamespace(metrics={"bleu": main}, main="bleu", samples=(sample,))


def drawn(stream):
    """What a terminal was sent, without its escape sequences."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())


@pytest.mark.parametrize(
    ("columns", "figures"),
    [
        (100, "loss 2.500 · 3 min left · BLEU 31.4 · 100 tokens/s"),
        (70, "loss 2.500 · 3 min left · BLEU 31.4"),
        (50, "loss 2.500"),
    ],
)
def test_a_terminal_shows_as_many_figures_as_it_has_room_for(monkeypatch, columns, figures):
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    shown = Display(stream)
    for step, validated in ((1, None), (2, evaluation()), (3, None)):
        shown.progress(progress(step, evaluation=validated))
    shown.close()
    text = drawn(stream)
    assert "epoch 2, step 2: loss 2.500 (validation 2.750), BLEU 31.4 [30.0, 33.0]\n" in text
    last = text[text.rindex("epoch 2, step 3") :]
    assert "25%" in last
    assert re.search(f"25% {re.escape(figures)} *\\S?$", last.splitlines()[0])


def test_the_speed_is_smooth():
    shown = Display(io.StringIO())
    for speed in (1000.0, 1000.0, 0.0):
        shown.progress(progress(1, speed=speed))
    assert round(shown.speed) == 950


def test_elsewhere_only_validations_are_printed():
    stream = io.StringIO()
    shown = Display(stream)
    shown.progress(progress(1))
    assert stream.getvalue() == ""
    shown.progress(progress(2, evaluation=evaluation()))
    assert stream.getvalue() == (
        "epoch 2, step 2: loss 2.500 (validation 2.750), BLEU 31.4 [30.0, 33.0]\n"
        "  ein haus → a home\n"
    )


def test_long_work_elsewhere_prints_a_plain_line_now_and_then(monkeypatch):
    monkeypatch.setattr(display, "PLAIN_INTERVAL", 0.0)
    stream = io.StringIO()
    with reporting(Display(stream)):
        list(track("ab", "reading data", unit="lines"))
    assert stream.getvalue() == "reading data: 1 of 2 lines, 0 s left\nreading data: 2 of 2 lines\n"


def test_a_stage_has_a_bar_on_a_terminal_that_is_gone_when_it_ends():
    stream = Terminal()
    shown = Display(stream)
    with reporting(shown):
        list(track("abcd", "tagging", unit="sentences"))
    assert re.search(r"tagging ━.* \d of 4 sentences", drawn(stream))
    assert shown._bars is None


def test_a_quiet_one_prints_nothing_but_knows_that_training_started():
    stream = Terminal()
    shown = Display(stream, quiet=True)
    shown.line("read 5 lines")
    shown.progress(progress(1, note="careful"))
    shown.progress(progress(2, evaluation=evaluation()))
    with reporting(shown):
        list(track("ab", "tagging"))
    shown.close()
    assert stream.getvalue() == ""
    assert shown.started


def test_without_a_budget_no_time_is_promised():
    stream = Terminal()
    shown = Display(stream)
    shown.progress(progress(1, share=0.0))
    shown.close()
    assert "left" not in drawn(stream)


def test_facts_are_folded_beside_their_names_on_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    stream, words = Terminal(), "one two three four five six seven eight nine"
    shown = Display(stream)
    shown.line(f"data        {words}")
    shown.line(f"next        {words}")  # a command: the terminal wraps it, and it can be copied
    folded, rest, command = stream.getvalue().splitlines()
    assert (folded, rest) == (
        "data        one two three four five six",
        " " * 12 + "seven eight nine",
    )
    assert command == f"next        {words}"


def test_a_stage_that_never_advances_is_shown_too():
    stream = Terminal()
    with reporting(Display(stream)), stage("learning the vocabulary"):
        for timer in threading.enumerate():
            if isinstance(timer, threading.Timer):
                timer.join(10)
    assert "learning the vocabulary" in drawn(stream)


def test_a_terminal_without_a_cursor_gets_plain_lines(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    shown = Display(stream)
    shown.progress(progress(1))
    shown.progress(progress(2, evaluation=evaluation()))
    assert "\x1b" not in stream.getvalue()


def test_data_commands_take_quiet(tmp_path, capsys):
    assert (
        main(["data", "make", "algorithm", "--size", "100", "--out", str(tmp_path), "--quiet"]) == 0
    )
    assert capsys.readouterr().err == ""
