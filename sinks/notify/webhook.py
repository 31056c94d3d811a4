"""A listener that posts the replicated topics and groups to a web server. A signature proves that Lockstep sent them.

`{"source": "a", "target": "b", "timestamp": 1709208000000, "topics": [{"upstream": "orders", "remote": "a.orders"}]}`,
or `"groups": ["billing"]`. The header `X-Lockstep-Signature` is `sha256=` and the HMAC-SHA256 (RFC 2104) of the body,
in hexadecimal. The timestamp (ms) is in the body, which is signed, and in `X-Lockstep-Timestamp`.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import httpx
import orjson
import stamina

from streaming.errors import LockstepError

WEBHOOK_URL_NAME = "lockstep.listener.webhook.url"
WEBHOOK_SECRET_NAME = "lockstep.listener.webhook.secret"
SIGNATURE_HEADER = "X-Lockstep-Signature"
TIMESTAMP_HEADER = "X-Lockstep-Timestamp"

WEBHOOK_ANSWERS_WITHIN = 2.0
"""Seconds to connect, and seconds until the answer begins."""

WEBHOOK_TRIES = 3
RETRY_WITHIN = 5.0
"""Seconds after which no further try begins, so that all tries fit in the ten seconds of a listener's call."""

PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses (RFC 9110, RFC 6585, RFC 8470) after which the same request may succeed."""

HOST_PATTERN = re.compile(rb"[a-zA-Z0-9._-]+|[0-9a-fA-F:.]+")
"""A host name or address as httpx returns it, IPv6 without brackets; httpx itself checks nothing."""


class WebhookFailed(LockstepError):
    """The server refused the request. The message shows only scheme and host of the address, because the rest may be
    secret."""


class WebhookBusy(WebhookFailed):
    """The server refused for now, or could not be reached. Another try may succeed."""


class WebhookListener:
    """A class for `topic.listener.class` and `group.listener.class`."""

    _url: httpx.URL
    _secret: bytes
    _ends: Mapping[str, str]

    def __init__(self, clock: Callable[[], float] = time.time, first_wait: float = 0.5) -> None:
        """`clock`: seconds since 1970. `first_wait`: seconds before the second try; they double from there."""
        self._clock, self._first_wait = clock, first_wait

    def configure(self, properties: Mapping[str, str]) -> None:
        """Read address, secret and both aliases. Raises LockstepError that names the key and shows no value."""
        self._url = _address(properties.get(WEBHOOK_URL_NAME, "").strip())
        self._secret = properties.get(WEBHOOK_SECRET_NAME, "").encode()
        if not self._secret:
            raise LockstepError(
                f"{WEBHOOK_SECRET_NAME} is missing: the receiver needs it to check the signature. Set it to "
                "a reference, e.g. ${env:LOCKSTEP_WEBHOOK_SECRET}"
            )
        self._ends = {end: properties[f"{end}.cluster.alias"] for end in ("source", "target")}

    def topics_changed(self, upstream_to_downstream: Mapping[str, str]) -> None:
        """Posts all topics. Raises WebhookFailed."""
        pairs = sorted(upstream_to_downstream.items())
        self._post({"topics": [{"upstream": upstream, "remote": remote} for upstream, remote in pairs]})

    def groups_changed(self, groups: AbstractSet[str]) -> None:
        """Posts all groups. Raises WebhookFailed."""
        self._post({"groups": sorted(groups)})

    def _post(self, content: Mapping[str, Any]) -> None:
        timestamp = round(self._clock() * 1000)
        body = orjson.dumps({**self._ends, "timestamp": timestamp, **content})
        headers = {
            "Content-Type": "application/json",
            TIMESTAMP_HEADER: str(timestamp),
            SIGNATURE_HEADER: signature(self._secret, body),
        }
        _log_no_requests()
        tries = stamina.retry_context(
            on=WebhookBusy,
            attempts=WEBHOOK_TRIES,
            timeout=RETRY_WITHIN,
            wait_initial=self._first_wait,
            wait_max=4 * self._first_wait,
            wait_jitter=self._first_wait,
        )
        with httpx.Client(timeout=WEBHOOK_ANSWERS_WITHIN, follow_redirects=False) as client:
            for attempt in tries:
                with attempt:
                    self._try(client, body, headers)

    def _try(self, client: httpx.Client, body: bytes, headers: Mapping[str, str]) -> None:
        where = f"the webhook at {self._url.scheme}://{self._url.netloc.decode()}"
        try:
            # The answer's body is not read: it may be long, and says nothing that is needed.
            with client.stream("POST", self._url, content=body, headers=headers) as answer:
                status = answer.status_code
        except httpx.HTTPError as error:
            raise WebhookBusy(f"{where} did not answer: {type(error).__name__}: {error}") from None
        if status in PASSING:
            raise WebhookBusy(f"{where} answered {status}")
        if 300 <= status < 400:
            raise WebhookFailed(f"{where} answered {status}: redirects are not followed. Correct {WEBHOOK_URL_NAME}")
        if not 200 <= status < 300:
            raise WebhookFailed(f"{where} answered {status}")


def signature(secret: bytes, body: bytes) -> str:
    """Returns the value of `X-Lockstep-Signature`."""
    return f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"


def _address(text: str) -> httpx.URL:
    if not text:
        raise LockstepError(
            f"{WEBHOOK_URL_NAME} is missing: set it to the address that gets the posts, e.g. https://hooks.example.com/lockstep"
        )
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        url = httpx.URL("")
    sound = HOST_PATTERN.fullmatch(url.raw_host) and (url.port is None or 0 < url.port < 65536)
    if url.scheme not in ("http", "https") or not sound:
        raise LockstepError(
            f"{WEBHOOK_URL_NAME}: its value is no address of a web server; allowed: http://HOST… and https://HOST…"
        )
    if url.userinfo:
        raise LockstepError(
            f"{WEBHOOK_URL_NAME}: it holds a user or a password. Remove them: the signature proves who calls"
        )
    return url


def _log_no_requests() -> None:
    """Silence httpx, which logs each request with its whole address, and stamina, which logs each retry. The address
    may hold a secret."""
    for name in ("httpx", "stamina"):
        logging.getLogger(name).setLevel(logging.ERROR)
