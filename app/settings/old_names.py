"""Classes that a file still names as an earlier version did."""

from __future__ import annotations

from app.plugins import OLD_NAMES
from app.properties.mistakes import Findings
from app.properties.scoped_keys import Properties


def check_old_names(properties: Properties, findings: Findings) -> None:
    """Warns of each with its new name."""
    for entry in properties.by_key.values():
        for old in (part.strip() for part in entry.value.split(",")):
            if old in OLD_NAMES:
                findings.warn(entry, f"{old} is now called {OLD_NAMES[old]}; the old name goes with the next version")
