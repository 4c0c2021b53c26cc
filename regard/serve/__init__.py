"""The server: trained runs over HTTP, for the web app, programs and clients of other services."""

from regard.serve.limits import Limits
from regard.serve.server import Server

__all__ = ["Limits", "Server"]
