"""Standard streams that are closed, full or of a reader that is gone; names that are too long."""

import subprocess
import sys
from pathlib import Path

import pytest

FULL = "standard input or output: No space left on device"
CLOSED = "standard output is closed"


def run_in_shell(command: str, redirection: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command whose streams the shell has redirected."""
    line = f'"{sys.executable}" -m regard {command} {redirection}'
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "redirection", "code", "message"),
    [
        ("steps", ">&-", 2, CLOSED),
        ("--help", ">&-", 2, CLOSED),
        ("steps", ">&- 2>&-", 2, ""),
        ("--version", "<&- 2>&-", 0, ""),
        ("completion bash", ">/dev/full", 2, FULL),
        ("nothing", "2>/dev/full", 2, ""),
        ("completion bash", ">/dev/full 2>&1", 2, ""),
        ("completion bash", "| true; exit ${PIPESTATUS[0]}", 1, ""),
        (f"info {'x' * 300}", "", 2, "File name too long"),
        (f"runs {'x' * 300}", "", 2, "File name too long"),
    ],
)
def test_streams_that_cannot_be_used_are_one_line(command, redirection, code, message):
    if "/dev/full" in redirection and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    returned, _, errors = run_in_shell(command, redirection)
    assert message in errors
    assert errors.count("\n") == (1 if message else 0), errors
    assert returned == code or ("| true" in redirection and returned == 0)  # it may be slow


def test_closed_input_has_no_lines(translator):
    assert run_in_shell(f"predict '{translator}'", "<&-") == (0, "", "")


def test_a_file_that_is_opened_is_never_a_closed_stream(translator, tmp_path):
    """What libraries print on a closed standard error must not end up in the output file."""
    out = tmp_path / "out.txt"
    program = f"""
import os, sys
import regard.commands.predict as predict
from regard.cli import main

write_lines = predict.write_lines

def write_noisily(name, write):
    return write_lines(name, lambda stream: os.write(2, b"noise") and write(stream))

predict.write_lines = write_noisily
sys.exit(main(["predict", "{translator}", "the film", "--output", "{out}"]))
"""
    words = ["bash", "-c", '"$0" -c "$1" <&- 2>&-', sys.executable, program]
    assert subprocess.run(words, check=False, timeout=120).returncode == 0
    assert b"noise" not in out.read_bytes()
