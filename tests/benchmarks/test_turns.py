"""Scripts in processes of their own take turns at the same jobs."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.code_blocks import ROOT

PEERS = ROOT / "benchmarks" / "peers"
SCRIPT = """
import sys
sys.path.insert(0, {peers!r})
from turns import answer

calls = []

def work():
    print("a library talks")
    calls.append(1)
    sum(range({amount}))
    return [len(calls), {result}]

answer({{"job": work{more}}})
"""


@pytest.fixture(scope="module")
def turns() -> ModuleType:
    spec = importlib.util.spec_from_file_location("turns", PEERS / "turns.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _script(folder: Path, name: str, **fields: object) -> list[str]:
    path = folder / f"{name}.py"
    path.write_text(SCRIPT.format(peers=str(PEERS), **fields))
    return [sys.executable, str(path)]


def test_scripts_take_turns_and_their_outputs_are_compared(
    turns: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    commands = {
        "ours": _script(tmp_path, "ours", amount=10, result=7, more=', "other": work'),
        "theirs": _script(tmp_path, "theirs", amount=3_000_000, result=8, more=""),
        "broken": [sys.executable, "-c", "raise SystemExit(3)"],
    }
    measured = turns.take_turns(commands, rounds=2)
    assert {job: list(found) for job, found in measured.items()} == {
        "job": ["ours", "theirs"],
        "other": ["ours"],
    }
    ours, theirs = measured["job"]["ours"], measured["job"]["theirs"]
    assert ours.result == [3, 7]  # one turn that does not count, then two
    assert theirs.result == [3, 8]
    assert len(ours.seconds) == len(theirs.seconds) == 2
    assert min(theirs.seconds) > 0
    errors = capfd.readouterr().err
    assert "broken is left out: it ended with exit code 3" in errors
    assert "a library talks" in errors
    measured["job"] = {
        "ours": turns.Turns([0.5, 1.0, 0.5], [1, 2, 3]),
        "theirs": turns.Turns([1.0, 1.0, 2.0], [1, 2, 4]),
    }
    table = turns.report({"job": measured["job"]}, {"job": 10})
    assert "| job | ours | 20 | 1.00 (1.00 to 1.00) | 3 of 3 |" in table
    assert "| job | theirs | 10 | 0.50 (0.25 to 1.00) | 2 of 3 |" in table
