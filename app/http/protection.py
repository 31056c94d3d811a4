"""What stands before every route: the rules for requests, and the headers of every answer."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from starlette.datastructures import MutableHeaders
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from app.http.request_rules import CHALLENGES, UNAUTHORIZED, RequestRules
from sinks.printable import printable

CONTENT_POLICY = (
    "default-src 'none'",
    *(f"{kind}-src 'self'" for kind in ("script", "style", "connect", "img")),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "; ".join(CONTENT_POLICY),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""The page needs its own files and nothing else, no other page may show it in a frame, and nothing that it receives is
ever taken for HTML (trusted types)."""

HEALTH, READY = "/health", "/ready"
OPEN = frozenset({HEALTH, READY})
"""What a probe asks for, by the address of a pod and without a token. The answers are one word."""


def as_json(document: object, status: int = 200) -> Response:
    """An answer of JSON, with nothing in it that steers the terminal of who reads it with curl."""
    return Response(printable(orjson.dumps(document).decode()), status, media_type="application/json")


class Protection(BaseHTTPMiddleware):
    """Refuses what breaks a rule before any of its body is read."""

    def __init__(self, app: ASGIApp, rules: RequestRules) -> None:
        super().__init__(app)
        self._rules = rules

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """The answer of the route, or why there is none."""
        # Not the URL's path, which begins with what the request says as its Host.
        is_open = request.scope["path"] in OPEN and request.method == "GET"
        refused = None if is_open else self._rules.refused(request.method, request.headers)
        response = await call_next(request) if refused is None else as_json({"error": refused.reason}, refused.status)
        headers = MutableHeaders(raw=response.raw_headers)
        headers.update(HEADERS)
        if refused is not None and refused.status == UNAUTHORIZED:
            for challenge in CHALLENGES:
                headers.append("WWW-Authenticate", challenge)
        return response
