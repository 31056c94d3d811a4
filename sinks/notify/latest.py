"""What a listener should know, what it knows, and when it is called. Pure: times come in, in monotonic seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds. `limit`: that one call may take; `first_wait` doubles with each failure up to `longest_wait`."""

    limit: float = 10.0
    first_wait: float = 1.0
    longest_wait: float = 300.0

    def wait_after(self, failures: int) -> float:
        """Until a set is delivered again, after so many failures in a row."""
        return float(min(self.first_wait * 2 ** min(failures - 1, 20), self.longest_wait))


class Latest(Generic[T]):
    """The newest set, and the one that was delivered last; those in between are dropped."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._wanted: T | None = None
        self._known: T | None = None
        self._failures = 0
        self._due = 0.0

    @property
    def wanted(self) -> T | None:
        """The newest set; None before the first."""
        return self._wanted

    def want(self, current: T, now: float) -> bool:
        """Whether it is another set than before. Another one is delivered at once, whatever failed before."""
        if current == self._wanted:
            return False
        self._wanted, self._due = current, now
        return True

    def wait(self, now: float) -> float | None:
        """Seconds until the newest set is to be delivered, 0 for now; None where there is none that is not known."""
        if self._wanted is None or self._wanted == self._known:
            return None
        return max(0.0, self._due - now)

    def delivered(self, current: T) -> None:
        """The listener took this set."""
        self._known, self._failures = current, 0

    def failed(self, current: T, now: float) -> float:
        """It did not, or half; seconds until it is delivered again, 0 where there is a newer set."""
        # Neither the set before nor this one can be relied on any more.
        self._known = None
        self._failures += 1
        if current == self._wanted:
            self._due = now + self._patience.wait_after(self._failures)
        return max(0.0, self._due - now)

    def drop(self) -> None:
        """Nothing more is to be delivered."""
        self._wanted = None
