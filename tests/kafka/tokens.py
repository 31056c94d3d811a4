"""A token endpoint on this machine, and a listener that takes its tokens."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import ClassVar
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.http_servers import served

CLIENT, SECRET, SCOPE = "lockstep", "cl1ent-s3cret", "kafka"
LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
ALLOWED = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
KEY = rsa.generate_private_key(65537, 2048)
LISTENER = {
    "listener.name.sasl.sasl.enabled.mechanisms": "OAUTHBEARER",
    "listener.name.sasl.oauthbearer.sasl.server.callback.handler.class": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    ),
    "listener.name.sasl.oauthbearer.sasl.jaas.config": f'{LOGIN} unsecuredLoginStringClaim_sub="broker";',
}


class TokenEndpoint(BaseHTTPRequestHandler):
    """Gives a token to the one client that it knows, and its public key to all."""

    granted: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        """The grant `client_credentials` of RFC 6749, section 4.4."""
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        known = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if form.get("grant_type") != ["client_credentials"] or self.headers["Authorization"] != f"Basic {known}":
            self.answer(HTTPStatus.UNAUTHORIZED, {"error": "invalid_client"})
            return
        self.granted.extend(form.get("scope", []))
        self.answer(HTTPStatus.OK, {"access_token": token(), "token_type": "Bearer", "expires_in": 3600})

    def do_GET(self) -> None:
        """The keys, for the broker."""
        self.answer(HTTPStatus.OK, key_set())

    def answer(self, status: HTTPStatus, document: dict[str, object]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing on stderr."""


def encoded(content: bytes) -> str:
    """base64url without padding, as JOSE has it (RFC 7515)."""
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def token() -> str:
    """A signed JWT, good for an hour. Java's client refuses an unsigned one before it asks the broker."""
    now = int(time.time())
    claims = {"sub": CLIENT, "iat": now, "exp": now + 3600, "scope": SCOPE}
    text = ".".join(encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "one"}, claims))
    return f"{text}.{encoded(KEY.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def key_set() -> dict[str, object]:
    """What the broker verifies tokens with (RFC 7517)."""
    number = KEY.public_key().public_numbers()
    key = {"kty": "RSA", "kid": "one", "alg": "RS256", "use": "sig", "n": encoded(number.n.to_bytes(256, "big"))}
    return {"keys": [key | {"e": encoded(number.e.to_bytes(3, "big"))}]}


@contextmanager
def token_endpoint() -> Iterator[str]:
    """The address of a running one."""
    with served(TokenEndpoint) as port:
        yield f"http://127.0.0.1:{port}/token"
