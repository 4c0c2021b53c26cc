"""Help, completion and mistakes of the command line."""

import argparse
import re
import shlex
import subprocess

import pytest

from regard.cli import COMMANDS, main, make_parser


def all_parsers(parser):
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from all_parsers(command)


PARSERS = list(all_parsers(make_parser(None)))


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)
def test_every_help_has_two_examples_that_parse(parser):
    assert len(parser.examples) >= 2
    shown = parser.format_help()
    for example in parser.examples:
        assert f"\n  {example}\n" in shown
        words = shlex.split(example)[1:]
        chosen, rest = make_parser(words).parse_known_args(words)
        assert callable(chosen.run)
        assert not rest or chosen.parser.rest


def test_no_command_at_all_shows_the_help(capsys):
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: regard")
    assert all(f"\n    {name}" in shown for name in COMMANDS)
    # every description begins beside its command, in one column
    lines = [line for line in shown.splitlines() if line[4:].split(" ")[0] in COMMANDS]
    assert all(re.fullmatch(r" {4}\w[\w-]+ +\w.*", line) for line in lines)
    assert len({line.index(line.split(maxsplit=1)[1], 6) for line in lines}) == 1


def test_help_is_a_command_too(capsys):
    with pytest.raises(SystemExit):
        main(["help", "steps"])
    assert capsys.readouterr().out.startswith("usage: regard steps")


def test_common_options_come_first_and_usage_is_short():
    train = next(parser for parser in PARSERS if parser.prog == "regard train translation")
    shown = train.format_help()
    assert shown.splitlines()[0] == "usage: regard train translation [options]"
    places = [shown.index(name) for name in ("--out", "--data", "--minutes", "--label-smoothing")]
    assert places == sorted(places)
    assert "{dot,scaled_dot," in shown  # choices are listed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["translate"], "`regard train translation` trains such a model, `regard predict RUN`"),
        (["tag"], "`regard train tag` trains such a model"),
        (["--nowhere"], "unknown option '--nowhere'. See regard --help"),
        (["list"], "unknown command 'list': did you mean 'runs'?"),
        (["predct"], "unknown command 'predct': did you mean 'predict'?"),
        (["show", "x", "--layer", "top"], "--layer: expected a whole number, got 'top'"),
        (["align", "--extract", "all"], "--extract: expected argmax, mutual, cover or above, got"),
        (
            ["explain", "x", "--text", "a", "--input", "b"],
            "--input: cannot be combined with --text",
        ),
        (["serve", "--port", "x"], "--port: expected a port from 0 to 65535, got 'x'"),
        (["predict", "x", "--force", "2"], "--force: expected pins such as"),
        (["predict", "x", "one", "--text", "two"], "--text: cannot be combined with texts on"),
        (["show", "x", "one", "--text", "two"], "--text: cannot be combined with a text on"),
        (["show", "x", "a", "cat"], 'expected one text, in quotation marks, such as "a cat"'),
        (["explain", "x", "a", "cat"], 'expected one text, in quotation marks, such as "a cat"'),
        (["evaluate", "--data", "x", "run"], "folders missing: expected before the options, as"),
        (["score", "x"], "--data missing, as in `regard score"),
        (["resume"], "unknown command 'resume': did you mean 'train --resume'?"),
        (["tests", "predict"], "unknown command 'tests'"),
        ([".", "predict"], "'.' is a folder: the command comes first, as in `regard predict .`"),
        (["steps", "bird"], "unexpected argument 'bird'. See regard steps --help"),
    ],
)
def test_mistakes_have_one_style(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("regard: ")
    assert error.count("\n") == 1


def test_similar_run_folders_are_suggested(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "runs" / "reviews"
    run.mkdir(parents=True)
    (run / "config.json").write_text('{"task": "classify"}')
    for given in ("runs/revews", "revews"):
        assert main(["predict", given, "--text", "good"]) == 2
        assert "no such run folder: did you mean runs/reviews?" in capsys.readouterr().err
    assert main(["predict", "runs", "--text", "good"]) == 2
    assert "not a run folder (no config.json): did you mean runs/reviews?" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_commands_options_and_values(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    words = ("predict", "translation", "inverse_root", "doctor")
    assert all(word in script for word in words)
    assert "learning-rate" in script


def test_completion_works_in_bash(tmp_path, capsys):
    main(["completion", "bash"])
    script = tmp_path / "regard.bash"
    script.write_text(capsys.readouterr().out)
    ask = (
        f"source {script}; COMP_WORDS=(regard train translation --sched); COMP_CWORD=3; "
        "$(complete -p regard | sed 's/.*-F \\([^ ]*\\) .*/\\1/'); echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["--schedule"], done.stderr
