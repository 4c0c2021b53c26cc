"""The homework: a blank fails with a message that helps, wrong answers fail, a right one passes."""

import os
import time
from pathlib import Path

import pytest

from regard.check import checked_file
from regard.check.checked_file import Grade, check_here
from regard.cli import main
from regard.errors import RegardError
from tests.docs.code_blocks import ROOT

HOMEWORK = ROOT / "docs/guide/homework"
SCORE = (
    "e = self.score(torch.cat([state[:, None].expand_as(source), source], -1))[..., 0]\n        "
)
AVERAGE = "\n        return (a[:, None] @ source)[:, 0], a"
RIGHT = {
    "score": "return (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)",
    "mask": "t = torch.arange(size); "
    "return (t[None, None] <= t[None, :, None]) & (t[None, None] < lengths[:, None, None])",
    "step": SCORE
    + "empty = ~mask.any(-1, keepdim=True)\n        "
    + "a = e.masked_fill(~mask & ~empty, -torch.inf).softmax(-1).masked_fill(empty, 0.0)"
    + AVERAGE,
}
WRONG = [
    ("score", "return (query @ key.mT).softmax(-1)", "square root of d"),
    ("score", "return (query @ key.mT / query.shape[-1] ** 0.5).softmax(-2)", "over the last axis"),
    ("score", "return query @ key.mT / query.shape[-1] ** 0.5", "sum"),
    ("score", "return query @ key", "score.py:16: RuntimeError"),
    ("mask", "return torch.ones(len(lengths), size, size).bool()", "query i see key j only if"),
    ("mask", "return torch.ones(size, size).tril().bool()", "expected shape [1, 3, 3]"),
    (
        "mask",
        "t = torch.arange(size); return (t < lengths[:, None])[:, None].expand(-1, size, size)",
        "query i see key j only if",
    ),
    (
        "mask",
        "t = torch.arange(size); "
        "return (t[None, None] < t[None, :, None]) & (t[None, None] < lengths[:, None, None])",
        "for a length of 2 of 3, expected [[1, 0, 0]",
    ),
    ("step", SCORE + "a = e.softmax(-1)" + AVERAGE, "hide padding before the softmax"),
    ("step", SCORE + "a = e.softmax(-1) * mask" + AVERAGE, "sum"),
    ("step", SCORE + "a = e.masked_fill(~mask, -torch.inf).softmax(-1)" + AVERAGE, "NaN"),
    ("step", SCORE + "a = e.masked_fill(~mask, -1e9).softmax(-1)" + AVERAGE, "empty"),
]


def answered(name: str, answer: str | None, folder: Path) -> Path:
    """A copy of a homework with the blank filled in."""
    lines = (HOMEWORK / f"{name}.py").read_text("utf-8").splitlines()
    blank = next(n for n, line in enumerate(lines) if "raise NotImplementedError" in line)
    if answer is not None:
        indent = lines[blank][: len(lines[blank]) - len(lines[blank].lstrip())]
        lines[blank] = indent + answer
    file = folder / f"{name}.py"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return file


def grade_or_error(file: Path) -> Grade:
    try:
        return check_here(file)
    except RegardError as error:
        return Grade(str(error), False)


@pytest.mark.parametrize("name", RIGHT)
def test_a_blank_fails_and_says_what_to_fill_in(name: str, tmp_path: Path) -> None:
    grade = check_here(answered(name, None, tmp_path))
    assert not grade.passed
    assert "not written yet: fill in" in grade.report


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_answer_passes(name: str, tmp_path: Path) -> None:
    grade = check_here(answered(name, RIGHT[name], tmp_path))
    assert grade.passed, grade.report
    assert "everything passed" in grade.report


@pytest.mark.parametrize(("name", "answer", "advice"), WRONG)
def test_a_wrong_answer_fails_with_advice(
    name: str, answer: str, advice: str, tmp_path: Path
) -> None:
    grade = grade_or_error(answered(name, answer, tmp_path))
    assert not grade.passed
    assert advice in grade.report, grade.report


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "defines no 'module'"),
        ("module = 1\n", "defines no 'module'"),
        ("import\n", "1: SyntaxError"),
        ("a = 1\nb = a / 0\n", "2: ZeroDivisionError"),
        ("raise SystemExit(0)\n", "1: SystemExit"),
        ("def module(x): return x.nothing\ndef make_inputs(b, g):\n import torch\n"
         " return {'x': torch.randn(b, 5, 3, generator=g)}\n", "AttributeError"),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text, "utf-8")
    with pytest.raises(RegardError) as error:
        check_here(file)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def run_command(file: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    code = main(["check", str(file), *options])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_the_command_grades(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed = run_command(answered("mask", RIGHT["mask"], tmp_path), capsys)
    assert (code, "everything passed" in printed) == (0, True)
    code, printed = run_command(answered("mask", None, tmp_path), capsys)
    assert (code, "fill in `allowed`" in printed) == (1, True)
    code, printed = run_command(answered("mask", "return (", tmp_path), capsys)
    assert (code, printed.count("\n"), "SyntaxError" in printed) == (2, 1, True)


def test_a_file_cannot_pass_by_ending_the_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import os\nos._exit(0)\n", "utf-8")
    code, printed = run_command(file, capsys)
    assert (code, printed) == (1, f"{file}: ended before it was checked, with exit code 0\n")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_a_loop_is_stopped_with_what_it_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, started = tmp_path / "mine.py", tmp_path / "started"
    file.write_text(
        "import pathlib, subprocess\n"
        f"child = subprocess.Popen(['sleep', '600'])\n"
        f"pathlib.Path({str(started)!r}).write_text(str(child.pid))\n"
        "while True: pass\n",
        "utf-8",
    )
    code, printed = run_command(file, capsys, "--seconds", "12")
    assert (code, printed) == (
        1,
        f"{file}: stopped after 12 seconds: does a loop never end?\n",
    )
    state = Path("/proc", started.read_text(), "stat")
    for _ in range(50):  # until init has collected it
        if not state.exists() or state.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("the process that the file started still runs")


FORKING = """
import os
import torch
for _ in range(3):
    os.fork()
def module(x, mask):
    return x
def make_inputs(batch, generator):
    return {"x": torch.randn(batch, 5, 3, generator=generator)}
"""
RESULT = "import os, sys\npath = sys.argv[2]\n"


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("while True: print('\\x1b' * 1000)\n", "stopped after it printed 20,000 bytes"),
        ("import os\nwhile True: os.write(2, b'x' * 1000)\n", "stopped after it printed 20,000"),
        (RESULT + "open(path, 'w').write('[]'); os._exit(0)\n", "ended before it was checked"),
        (RESULT + "open(path, 'w').truncate(2**34); os._exit(0)\n", "ended before it was checked"),
        (RESULT + "os.mkfifo(path); os._exit(0)\n", "ended before it was checked"),
    ],
)  # fmt: skip
def test_what_is_read_from_a_file_is_bounded(
    text: str,
    reason: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(checked_file, "MAX_OUTPUT", 20_000)
    file = tmp_path / "mine.py"
    file.write_text(text, "utf-8")
    code = main(["check", str(file)])
    captured = capsys.readouterr()
    assert (code, captured.out.count("\n"), reason in captured.out) == (1, 1, True)
    assert "\x1b" not in captured.err
    assert len(captured.err) <= 20_000 * len(r"\x1b")


def test_a_file_that_takes_all_memory_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = []\nwhile True: x.append(bytearray(2**24))\n", "utf-8")
    with pytest.raises(RegardError) as error:
        checked_file.check_file(file, memory=2**29)
    assert str(error.value) == f"{file}:2: MemoryError"


def test_a_file_that_forks_has_one_grade(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FORKING, "utf-8")
    grade = checked_file.check_file(file)
    assert grade.passed, grade.report
    assert grade.report.endswith("everything passed")


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(Path("nowhere.py"), capsys) == (
        2,
        "regard: nowhere.py: no such file: give a Python file\n",
    )
    file = answered("mask", None, tmp_path)
    message = "regard: --seconds: expected more than 0, got 0\n"
    assert run_command(file, capsys, "--seconds", "0") == (2, message)
