"""Everything here runs where `standin` is the accelerator: see `tests/devices/test_standin.py`.

pytest reads this file in every run that passes through the folder, so the device is installed only
where the environment variable asks for it.
"""

import os

from regard import devices
from tests.devices import standin

if os.environ.get("REGARD_TEST_DEVICE") == standin.NAME:
    standin.install()
    devices.WITHOUT_FLOAT64 = (*devices.WITHOUT_FLOAT64, standin.NAME)
