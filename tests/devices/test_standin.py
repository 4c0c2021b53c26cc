"""The checks on the stand-in device, each file in a process of its own.

torch knows one backend of this kind per process, and its threads of backward passes begin with the
first one; other tests must not find an accelerator.
"""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "on_standin"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("check_*.py")), ids=lambda file: file.stem)
def test_on_the_standin(file: Path) -> None:
    command = [sys.executable, "-m", "pytest", str(file), "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout
