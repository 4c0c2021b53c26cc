"""The demo is the commands that it prints, in order, and stops where one fails."""

import argparse
from pathlib import Path

from regard.cli import make_parser
from regard.commands import demo


def test_every_command_of_the_demo_is_one_that_the_command_line_takes() -> None:
    for words in demo.lines(Path("out"), 1.0):
        chosen = make_parser(words).parse_args(words)
        assert isinstance(chosen, argparse.Namespace)


def test_it_stops_at_the_first_failure(tmp_path: Path, capsys) -> None:
    given: list[list[str]] = []

    def main(words) -> int:
        given.append(list(words))
        return 2 if words[0] == "train" else 0

    chosen = argparse.Namespace(out=tmp_path / "demo", minutes=0.1, main=main, quiet=False)
    assert demo._demo(chosen) == 2
    assert [words[0] for words in given] == ["data", "train"]
    assert "$ regard data make translation" in capsys.readouterr().out
