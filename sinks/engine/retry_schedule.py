"""When something that failed is tried again. Pure: times come in as arguments, in monotonic seconds."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
"""Seconds until the second try, and between tries in the end."""


@dataclass
class RetrySchedule:
    """Waits that double from FIRST_WAIT to `longest` while something fails again and again."""

    longest: float = LONGEST_WAIT
    not_before: float = 0.0
    failures: int = 0

    def failed(self, now: float, at_least: float = 0.0) -> float:
        """Notes a failure; returns the seconds until the next try."""
        wait = max(at_least, min(FIRST_WAIT * 2.0 ** min(self.failures, 10), self.longest))
        self.failures += 1
        self.not_before = now + wait
        return wait

    def succeeded(self) -> None:
        """The next failure is the first one."""
        self.failures, self.not_before = 0, 0.0

    def is_due(self, now: float) -> bool:
        """Whether it may be tried now."""
        return now >= self.not_before
