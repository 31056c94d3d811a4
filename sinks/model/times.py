"""Times: now in UTC, ISO 8601 texts to the second, and a clock that never jumps."""

from __future__ import annotations

import time
from datetime import datetime, timezone

UTC_FORM = "%Y-%m-%dT%H:%M:%SZ"

NEVER_AT = float("inf")
"""A time in monotonic seconds that never comes."""


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


def boot_clock() -> float:
    """Monotonic seconds. On Linux they include the time in which the machine was suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def milliseconds(at: datetime) -> int:
    """Returns milliseconds since the epoch."""
    return round(at.timestamp() * 1000)


def time_of(text: str) -> datetime:
    """Parse an ISO 8601 time, with its zone if it has one. Raises ValueError."""
    # Python reads `Z` from 3.11 on.
    return datetime.fromisoformat(text.strip().replace("Z", "+00:00"))


def utc_text(at: datetime) -> str:
    """Returns e.g. `2024-02-29T12:00:00Z`. A time without a zone counts as UTC."""
    utc = at.astimezone(timezone.utc) if at.tzinfo is not None else at
    return utc.strftime(UTC_FORM)
