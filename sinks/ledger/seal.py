"""Signs the values of a ledger with `lockstep.ledger.secret`, and refuses values without that signature. Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from sinks.faults import LedgerUntrusted
from sinks.ledger.avro import SingleObject
from streaming.errors import LockstepError

SIGNED = SingleObject("signed-value")
SIGN_COMMAND = "`lockstep ledger sign`"


TOLERATED_MS = 600_000
"""Milliseconds by which a record may be older than one that it replaces: clocks differ, and two processes write at
once."""


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """The data of a value, and when it was signed in ms since the epoch; 0 without a signature."""

    data: bytes | None
    at: int = 0


class Seal:
    """HMAC-SHA256 (RFC 2104) over the flow's name, the record's key, the time and its value.

    Without a secret, `wrap` leaves values unsigned, and `unwrap` still refuses signed ones: an unsigned entry beside
    them would stop every process that has the secret. A tombstone cannot be signed. With a secret, a deleted entry is a
    signed value without data.
    """

    def __init__(self, flow: str, secret: str | None = None) -> None:
        self._flow, self._secret = flow, secret.encode() if secret else None

    @property
    def signs(self) -> bool:
        return self._secret is not None

    def wrap(self, key: bytes, data: bytes | None, at: int) -> bytes | None:
        """Returns the value to write for this data, signed at `at` (ms since the epoch). Returns a tombstone (None)
        only without a secret."""
        if self._secret is None:
            return data
        return SIGNED.encode({"data": data, "at": at, "signature": self._signature(self._secret, key, data, at)})

    def unwrap(self, key: bytes, value: bytes | None) -> Unwrapped:
        """Returns the data of a value. Raises LedgerUntrusted if it lacks the required signature."""
        if self._secret is None:
            if value is not None and SIGNED.recognizes(value):
                raise LedgerUntrusted(
                    "it is signed, but the properties file has no lockstep.ledger.secret: set the secret that signed it"
                )
            return Unwrapped(value)
        if value is None or not SIGNED.recognizes(value):
            raise LedgerUntrusted(
                "it is not signed, but the properties file has lockstep.ledger.secret. If you have just set that, "
                f"check what the ledger holds and sign it with {SIGN_COMMAND}; if not, another program wrote it"
            )
        found = SIGNED.decode(value)
        if not hmac.compare_digest(found["signature"], self._signature(self._secret, key, found["data"], found["at"])):
            raise LedgerUntrusted(
                "it was signed with another lockstep.ledger.secret, for another flow, or altered. If you have just "
                f"changed the secret, check what the ledger holds and sign it with {SIGN_COMMAND}"
            )
        return Unwrapped(found["data"], found["at"])

    def newest_at(self, key: bytes, values: Iterable[bytes | None], later_than: int = 0) -> int:
        """Returns when the newest of these values of one key was signed; 0 if none was signed after `later_than`."""
        newest = later_than
        for value in values:
            # Most are from before, so that their signatures need no check.
            if value is not None and SIGNED.recognizes(value) and _claimed_at(value) > newest:
                with suppress(LedgerUntrusted):
                    newest = self.unwrap(key, value).at
        return newest if newest > later_than else 0

    def _signature(self, secret: bytes, key: bytes, data: bytes | None, at: int) -> bytes:
        # Each part with its length, and what is forgotten with a mark of its own: no two messages have the same bytes.
        parts = (self._flow.encode(), key, str(at).encode(), b"gone" if data is None else b"data", data or b"")
        message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.new(secret, message, hashlib.sha256).digest()


UNSIGNED = Seal("")
"""The seal without a secret: leaves values unsigned, and refuses signed ones."""


def _claimed_at(value: bytes) -> int:
    try:
        at: int = SIGNED.decode(value)["at"]
    except LockstepError:
        return 0
    return at


def unsealed(value: bytes | None) -> bytes | None:
    """Returns the data of a value, signed by any secret or unsigned. Damaged values are returned unchanged."""
    if value is None or not SIGNED.recognizes(value):
        return value
    try:
        data: bytes | None = SIGNED.decode(value)["data"]
    except LockstepError:
        return value
    return data
