"""The checks on the stand-in device, each file in a process of its own.

torch knows one backend of this kind per process, and its threads of backward passes begin with the
first one; other tests must not find an accelerator.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.devices import available_devices
from tests.devices.standin import NAME

FOLDER = Path(__file__).parent / "on_standin"


@pytest.mark.parametrize("file", sorted(FOLDER.glob("check_*.py")), ids=lambda file: file.stem)
def test_on_the_standin(file: Path) -> None:
    command = [sys.executable, "-m", "pytest", str(file), "-n", "0", "-p", "no:cacheprovider"]
    chosen = {**os.environ, "REGARD_TEST_DEVICE": NAME}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, env=chosen)
    assert done.returncode == 0, done.stdout[-6000:]
    assert " passed" in done.stdout


def test_other_tests_find_no_accelerator() -> None:
    assert NAME not in [device.type for device in available_devices()]
