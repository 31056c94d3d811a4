"""How a command reads a properties file, beside what the file says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """`strict`: keys that nobody knows are mistakes. `timeout`: seconds that a call to a cluster may take, whatever the
    file says; None leaves it to the file."""

    strict: bool = False
    timeout: float | None = None


USUAL = Reading()
