"""Durations as a properties file writes them: `1 second`, `500 ms`, `2 minutes`, or plain seconds. Waits that
double."""

from __future__ import annotations

import math
import re

UNITS = (
    ("day", "d", 86400.0),
    ("hour", "h", 3600.0),
    ("minute", "m", 60.0),
    ("second", "s", 1.0),
    ("millisecond", "ms", 0.001),
)
"""Name, short name and seconds of each unit."""

SECONDS = {"": 1.0} | {name: length for unit, short, length in UNITS for name in (short, unit, f"{unit}s")}
"""Seconds of each unit by its name in lower case; a number without a unit is seconds."""

DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)")


def doubled(first_s: float, tries: int, longest_s: float) -> float:
    """Returns the seconds to wait after so many tries, at least one: `first_s`, twice that, and so on up to
    `longest_s`."""
    # A float has no more than 1023 doublings.
    return min(first_s * 2.0 ** min(tries - 1, 32), longest_s)


def written(seconds: float) -> str:
    """Returns a duration as a properties file may write it: `30 seconds`, `2 minutes`."""
    for unit, _, length in UNITS:
        count = round(seconds / length, 6)
        if count >= 1 and count == int(count):
            return f"{int(count)} {unit}{'' if count == 1 else 's'}"
    return f"{seconds:g} seconds"


def seconds_of(text: str) -> float:
    """Parse a duration such as `500 ms`. Returns seconds, above zero. Raises ValueError for any other text."""
    match = DURATION.fullmatch(text.lower())
    seconds = float(match[1]) * SECONDS.get(match[2], math.nan) if match else math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(text)
    return seconds
