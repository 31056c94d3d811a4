"""How long a request to a cluster may take, by its Java client properties: one answer for every client."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.errors import LockstepError

DEFAULT = 15.0
"""Seconds for a request without a limit of its own: a batch waits no longer for a cluster that is silent."""

SHORTEST, LONGEST = 1.0, 60.0
"""Least and most seconds for a request. Shorter ones fail on a busy cluster; while a request waits, its flow does
nothing else."""

WRITE_GRACE_S = 5.0
"""Seconds that a write may take beyond the time of its request: to connect, to be cut off, on a busy machine."""

WHOLE, ONE = "default.api.timeout.ms", "request.timeout.ms"
"""Properties that limit a call with all its retries, and one request in it."""


def request_timeout(alias: str, properties: Mapping[str, str]) -> float:
    """Returns the time limit of a request in seconds, between SHORTEST and LONGEST.

    It is `default.api.timeout.ms`, which contains the flow's `admin.timeout.ms`, else `request.timeout.ms`. Raises
    LockstepError for a value that is no number.
    """
    found = [_seconds(alias, name, properties[name]) for name in (WHOLE, ONE) if name in properties]
    return min(max(found[0] if found else DEFAULT, SHORTEST), LONGEST)


def longest_write(alias: str, properties: Mapping[str, str]) -> float:
    """Returns the seconds after which a permitted request is over: answered, or given up and not sent again."""
    return request_timeout(alias, properties) + WRITE_GRACE_S


def _seconds(alias: str, name: str, value: str) -> float:
    try:
        return int(value) / 1000
    except ValueError:
        raise LockstepError(f"cluster {alias}: {name} must be a whole number of milliseconds") from None
