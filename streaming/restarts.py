"""When a query that broke off is started again, and how its end is told. Pure: the caller has the clock."""

from __future__ import annotations

import re
from dataclasses import dataclass

_CAUSE = re.compile(r"^\s*Caused by: (?P<name>[\w.$]+)(?:: (?P<message>.*))?$", re.MULTILINE)
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?P<error>\S.*)")
_LONGEST = 300


@dataclass(slots=True)
class Restarts:
    """Waits that double from `first` to `longest` seconds while a query breaks off again and again.

    One that ran for `settled` seconds counts as sound again: what ends it then is a new fault and waits `first`.
    A query that ends because a cluster is away costs both clusters a few requests at each start, so that it must not
    spin; and a cluster that is back is noticed within `longest`.
    """

    first: float = 1.0
    longest: float = 60.0
    settled: float = 60.0
    _failures: int = 0

    def delay(self, ran_for: float) -> float:
        """Seconds until the next start, for a query that broke off after `ran_for` seconds."""
        self._failures = 1 if ran_for >= self.settled else self._failures + 1
        return min(self.longest, self.first * 2.0 ** min(self._failures - 1, 32))


def root_cause(trace: str) -> str:
    """One line of a trace: what the sink raised, else the innermost `Caused by` of Java, else the first line."""
    if raised := _RAISED.search(trace):
        return raised["error"][:_LONGEST]
    causes = list(_CAUSE.finditer(trace))
    if not causes:
        return next(iter(trace.strip().splitlines()), "no reason was given")[:_LONGEST]
    name, message = causes[-1]["name"].rpartition(".")[2], causes[-1]["message"]
    return (f"{name}: {message}" if message else name)[:_LONGEST]
