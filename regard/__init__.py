"""Regard: train attention models on your own text, use them, and see where they look."""

from regard.attention import attend, explain_path, steps
from regard.check import check
from regard.errors import RegardError
from regard.looks import Look

__version__ = "0.1.0"
__all__ = ["Look", "RegardError", "attend", "check", "explain_path", "steps"]
