"""Everything here runs where `standin` is the accelerator: see `tests/devices/test_standin.py`."""

from regard import devices
from tests.devices import standin

standin.install()
devices.WITHOUT_FLOAT64 = (*devices.WITHOUT_FLOAT64, standin.NAME)
