"""Options that are a time: `--since`, and numbers of seconds."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Final

import typer

from sinks.model.times import time_of
from streaming.durations import seconds_of

ALLOWED: Final = "a time ago such as 90s, 15m, 1h or 2d, or a time in UTC such as 2026-11-22 or 2026-11-22T14:30:00Z"

BEGINNING: Final = datetime.min.replace(tzinfo=timezone.utc)


def parse_since(text: str | None, now: datetime) -> datetime:
    """The time meant; the beginning of all times for None. Raises typer.BadParameter that says what is allowed."""
    if text is None:
        return BEGINNING
    try:
        return now - timedelta(seconds=seconds_of(text.strip()))
    except (ValueError, OverflowError):
        pass
    try:
        found = time_of(text)
    except ValueError:
        raise typer.BadParameter(f"{text}: write {ALLOWED}", param_hint="--since") from None
    found = found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)
    if found > now:
        raise typer.BadParameter(f"{text}: this is in the future; write {ALLOWED}", param_hint="--since")
    return found


def seconds(text: str | float) -> float:
    """For an option's `parser`, which gets its default as well. Raises BadParameter."""
    return _number(text, 0, math.inf, "0 or more")


def seconds_between(least: float, most: float) -> Callable[[str | float], float]:
    """As `seconds`, for an option that takes no more and no less than these."""
    return partial(_number, least=least, most=most, allowed=f"{least:g} to {most:g}")


def _number(text: str | float, least: float, most: float, allowed: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and least <= found <= most):
        raise typer.BadParameter(f"{text}: a number of seconds, {allowed}")
    return found
