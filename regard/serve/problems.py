"""Errors as `application/problem+json` (RFC 9457, https://www.rfc-editor.org/rfc/rfc9457)."""

from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from regard.serve.plain import dumps

MEDIA = "application/problem+json"


class Problem(Exception):  # noqa: N818
    """Why a request has no answer, in words for whoever sent it."""

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
        """The problem as JSON; other services' clients look for their own member, `error`."""
        found: dict[str, Any] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors:
            found["errors"] = self.errors
        if dialect == "libretranslate":
            found["error"] = self.detail
        if dialect == "openai":
            kind = "server_error" if self.status >= 500 else "invalid_request_error"
            found["error"] = {"message": self.detail, "type": kind, "param": None, "code": None}
        return found

    def response(self, dialect: str = "") -> Response:
        """The problem as an answer."""
        content = dumps(self.document(dialect))
        return Response(content, self.status, media_type=MEDIA, headers=self.headers)


def busy(what: str) -> Problem:
    """Too much at once: the sender may come again."""
    return Problem(429, what, headers={"retry-after": "1"})
