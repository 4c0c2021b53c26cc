"""Finds the silent bugs of attention code in any module: leaks, wrong masks, NaN."""

from regard.check.inputs import Inputs
from regard.check.runner import PROPERTIES, CheckFailedError, Finding, Report, check

__all__ = ["PROPERTIES", "CheckFailedError", "Finding", "Inputs", "Report", "check"]
