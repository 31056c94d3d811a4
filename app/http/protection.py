"""Checks requests before every route, and sets the headers of every answer."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

import orjson
from starlette.datastructures import MutableHeaders
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from app.addresses import is_loopback, is_wildcard
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
"""Headers of every answer. The page may load only its own files, and no other page may show it in a frame. Nothing that
it receives is taken for HTML (trusted types)."""

HEALTH, READY = "/health", "/ready"
OPEN = frozenset({HEALTH, READY})
"""Paths that a probe may request without a token, at a pod's address."""


def as_json(document: object, status: int = 200) -> Response:
    """Returns a JSON answer without control characters, so that it is safe in a terminal."""
    return Response(printable(orjson.dumps(document).decode()), status, media_type="application/json")


class Protection(BaseHTTPMiddleware):
    """Refuses requests that break a rule, before it reads their body."""

    def __init__(self, app: ASGIApp, rules: RequestRules) -> None:
        super().__init__(app)
        self._rules = rules

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
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


# Which requests the job's server answers: by host, origin, content type and token. Pure.
#
# A foreign page in a browser on the job's machine must not reach the job. `Host` refuses a foreign name that leads to a
# loopback address (DNS rebinding), `Origin` refuses a page of another site.


JSON = "application/json"
MISDIRECTED, FORBIDDEN, UNSUPPORTED, UNAUTHORIZED = 421, 403, 415, 401
CHALLENGES = ('Bearer realm="lockstep"', 'Basic realm="lockstep"')
"""RFC 6750 for programs. With RFC 7617 a browser asks a person for the token as a password. Each has a header of its
own, because Chromium reads only the first challenge of a header."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request is refused. `status`: the HTTP status."""

    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class RequestRules:
    """Which requests are allowed. `host`: `lockstep.http.host`. `token`: `lockstep.http.token`; None: no token is
    needed."""

    host: str
    token: str | None = None

    def refused(self, method: str, headers: Mapping[str, str]) -> Refused | None:
        """Returns the first rule that a request breaks; None if it breaks none. `headers`: names in lower case."""
        if not self._is_ours(headers.get("host", "")):
            return Refused(
                MISDIRECTED, "the job does not serve this host: use lockstep.http.host or a loopback address"
            )
        if _is_foreign(headers):
            return Refused(FORBIDDEN, "pages of other sites may not send requests to the job")
        if self.token is not None and not is_authorized(headers.get("authorization", ""), self.token, method):
            return Refused(UNAUTHORIZED, "lockstep.http.token is needed: Authorization: Bearer TOKEN")
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method == "POST" and has_body and media_type != JSON:
            return Refused(UNSUPPORTED, f"a body must be JSON: Content-Type: {JSON}")
        return None

    def _is_ours(self, written: str) -> bool:
        name = _split(f"//{written}")
        if name is None or not name.hostname or name.username is not None or name.path:
            return False
        # Every address of the machine and each name that leads to one is right, and the token says who asks.
        ours = is_loopback(name.hostname) or name.hostname == self.host.strip("[]").lower()
        return ours or (is_wildcard(self.host) and self.token is not None)


def is_authorized(header: str, token: str, method: str) -> bool:
    """Returns whether an `Authorization` header carries the token. Compares in constant time.

    As a password (Basic) it allows only reading, because a browser also sends it for pages of other sites.
    """
    scheme, _, value = header.partition(" ")
    given = value.strip()
    if scheme.lower() == "basic" and method in ("GET", "HEAD"):
        try:
            given = base64.b64decode(given, validate=True).decode().partition(":")[2]
        except (binascii.Error, ValueError):
            return False
    elif scheme.lower() != "bearer":
        return False
    return secrets.compare_digest(given.encode(), token.encode())


def _is_foreign(headers: Mapping[str, str]) -> bool:
    if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        # A link to the page is no request of the other site's script.
        return headers.get("sec-fetch-mode") != "navigate" or "origin" in headers
    origin = headers.get("origin")
    if origin is None:
        return False
    found = _split(origin)
    return found is None or not found.netloc or found.netloc.lower() != headers.get("host", "").lower()


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts
