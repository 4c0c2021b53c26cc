"""Errors as `application/problem+json` (RFC 9457, https://www.rfc-editor.org/rfc/rfc9457)."""

from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from regard.serve.http.strict_json import dumps

PROBLEM_JSON = "application/problem+json"


class Problem(Exception):  # noqa: N818
    """An error response: the status, and a message for the client."""

    def __init__(
        self,
        status: int,
        detail: str,
        errors: list[dict[str, str]] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
        self.errors, self.headers = errors, headers or {}

    def document(self, dialect: str = "") -> dict[str, Any]:
        """The problem as JSON; clients of other services read the member `error`."""
        document: dict[str, Any] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            document["errors"] = self.errors
        if dialect == "libretranslate":
            document["error"] = self.detail
        if dialect == "openai":
            error_type = "server_error" if self.status >= 500 else "invalid_request_error"
            document["error"] = {
                "message": self.detail,
                "type": error_type,
                "param": None,
                "code": None,
            }
        return document

    def response(self, dialect: str = "") -> Response:
        """The problem as a response."""
        content = dumps(self.document(dialect))
        return Response(content, self.status, media_type=PROBLEM_JSON, headers=self.headers)


def too_many_requests(detail: str) -> Problem:
    """Status 429: the client may try again in a second."""
    return Problem(429, detail, headers={"retry-after": "1"})
