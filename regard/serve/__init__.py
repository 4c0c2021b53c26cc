"""Serving: runs over HTTP, for the page, for programs, and for clients of other services."""

from regard.serve.limits import Limits
from regard.serve.server import Server

__all__ = ["Limits", "Server"]
