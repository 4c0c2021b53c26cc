"""Progress as it is printed: on a terminal, elsewhere, and by a process that is quiet."""

import io
from types import SimpleNamespace

from regard.commands.progress import Live


class Terminal(io.StringIO):
    def isatty(self):
        return True


def progress(step, speed=100.0, evaluation=None, share=0.25, note=""):
    position = SimpleNamespace(epoch=1, step=step, seconds=60.0)
    return SimpleNamespace(
        position=position,
        loss=2.5,
        tokens_per_second=speed,
        share=share,
        evaluation=evaluation,
        note=note,
    )


def evaluation():
    main = SimpleNamespace(name="BLEU", value=31.416, low=30.0, high=33.0)
    sample = SimpleNamespace(given="ein haus", expected="a house", predicted="a home")
    return SimpleNamespace(metrics={"bleu": main}, main="bleu", samples=(sample,))


def test_a_terminal_shows_epoch_loss_metric_speed_and_time_left():
    stream = Terminal()
    live = Live(stream)
    live.progress(progress(1))
    live.progress(progress(2, evaluation=evaluation()))
    live.progress(progress(3))
    last = stream.getvalue().rsplit("\r", 1)[1]
    assert "epoch 2, step 3, loss 2.500, BLEU 31.42, 100 tokens/s, 3 min left at most" in last


def test_the_speed_is_smooth():
    stream = Terminal()
    live = Live(stream)
    for speed in (1000.0, 1000.0, 0.0):
        live.progress(progress(1, speed=speed))
    assert "950 tokens/s" in stream.getvalue().rsplit("\r", 1)[1]


def test_elsewhere_only_validations_are_printed():
    stream = io.StringIO()
    live = Live(stream)
    live.progress(progress(1))
    assert stream.getvalue() == ""
    live.progress(progress(2, evaluation=evaluation()))
    assert stream.getvalue() == (
        "epoch 2, step 2: loss 2.500, BLEU 31.42 [30, 33]\n  ein haus → a home\n"
    )


def test_a_quiet_one_prints_nothing_but_knows_that_training_started():
    stream = Terminal()
    live = Live(stream, quiet=True)
    live.line("read 5 lines")
    live.progress(progress(1, note="careful"))
    live.progress(progress(2, evaluation=evaluation()))
    live.close()
    assert stream.getvalue() == ""
    assert live.started


def test_without_a_budget_no_time_is_promised():
    stream = Terminal()
    Live(stream).progress(progress(1, share=0.0))
    assert "left" not in stream.getvalue()
