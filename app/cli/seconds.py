"""Options that are a time in seconds: `inf`, `nan` and what is below 0 are wrong usage of every command."""

from __future__ import annotations

import math

import typer


def seconds(text: str | float) -> float:
    """For an option's `parser`, which gets its default as well. Raises BadParameter."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found >= 0):
        raise typer.BadParameter(f"{text}: a number of seconds, 0 or more")
    return found
