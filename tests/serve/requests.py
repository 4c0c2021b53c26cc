"""A client that sends any request, valid or not."""

import http.client
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TASKS = ("translation", "language", "classify", "tag")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


class Client:
    """One connection per request, and no headers that were not given."""

    def __init__(self, url: str) -> None:
        self.url, self.address = url, urlsplit(url)

    def __call__(self, method: str, path: str, body: Any = None, /, **headers: str) -> Reply:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            sent.setdefault("content-type", "application/json")
        connection = http.client.HTTPConnection(
            self.address.hostname, self.address.port, timeout=60
        )
        try:
            connection.request(method, path, body, {k: v for k, v in sent.items() if v})
            response = connection.getresponse()
            response_headers = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, response_headers, response.read())
        finally:
            connection.close()
