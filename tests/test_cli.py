"""The command line from the outside."""

import builtins
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from regard.__main__ import main as start
from regard.cli import main


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "regard", *arguments], capture_output=True, text=True, check=False
    )


def test_steps_prints_numbers_and_draws(tmp_path):
    picture = tmp_path / "bird.svg"
    done = run("steps", "--picture", str(picture))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    weights = next(line for line in done.stdout.splitlines() if line.startswith("4. softmax"))
    numbers = [float(word) for word in weights.split()[3:9]]
    assert sum(numbers) == pytest.approx(1.0, abs=2e-3)
    assert max(numbers) == numbers[1]
    root = ET.parse(picture).getroot()
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("bird") == 2
    assert sum(text == "0.34" for text in texts) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["steps", "--word", "brid"], "unknown word 'brid': did you mean 'bird'?"),
        (
            ["steps", "--picture", "/nowhere/bird.svg"],
            "bird.svg: cannot be written (no folder",
        ),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, words, capsys):
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_a_stop_while_importing_is_one_line(monkeypatch, capsys):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "regard.cli")
    monkeypatch.setattr(builtins, "__import__", stop)
    code = start()
    monkeypatch.undo()
    assert code == 130
    assert capsys.readouterr().err == "regard: stopped\n"


def test_a_folder_without_permission_is_one_line(tmp_path, monkeypatch, capsys):
    def denied(path: Path, **_: object) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", denied)
    assert main(["show", str(tmp_path / "trace.json")]) == 2
    error = capsys.readouterr().err
    assert error == f"regard: {tmp_path / 'trace.json'}: Permission denied\n"
