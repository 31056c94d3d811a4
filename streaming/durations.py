"""Lengths of time as a properties file has them: `1 second`, `500 ms`, `2 minutes`, or plain seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

SECONDS: Mapping[str, float] = {
    "ms": 0.001,
    "millisecond": 0.001,
    "milliseconds": 0.001,
    "": 1.0,
    "s": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "m": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86400.0,
    "day": 86400.0,
    "days": 86400.0,
}
"""Of each unit, by its name in small letters."""

DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


WRITTEN = (("day", 86400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0), ("millisecond", 0.001))


def written(seconds: float) -> str:
    """Returns a duration with its unit, as a properties file may have it: `30 seconds`, `2 minutes`."""
    for unit, length in WRITTEN:
        count = round(seconds / length, 6)
        if count >= 1 and count == int(count):
            return f"{int(count)} {unit}{'' if count == 1 else 's'}"
    return f"{seconds:g} seconds"


def seconds_of(text: str) -> float:
    """Returns seconds, above zero. Raises ValueError for any other text."""
    match = DURATION.fullmatch(text.lower())
    seconds = float(match[1]) * SECONDS.get(match[2], math.nan) if match else math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(text)
    return seconds
