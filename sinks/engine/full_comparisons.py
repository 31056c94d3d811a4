"""When a flow compares everything, and that of the flows of a job one after the other does. Monotonic seconds.

A comparison of thousands of topics, ACLs and groups keeps the interpreter busy for seconds, and a change of the flow
waits for it: where all flows have one at once, each takes as long as all of them together.
"""

from __future__ import annotations

import threading

LATEST = 1.5
"""Intervals after which a flow waits for no other any more."""


class FullTurns:
    """Of all flows of a job; one of them has its turn. From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Whether it is the caller's now."""
        return self._lock.acquire(blocking=False)

    def give_back(self) -> None:
        """By who took it."""
        self._lock.release()


class FullComparisons:
    """Of one flow; a pass at a time uses it."""

    def __init__(self, interval: float, turns: FullTurns) -> None:
        """`interval`: seconds from one to the next."""
        self._interval, self._turns = interval, turns
        self._at: float | None = None
        self._has_turn = False

    def begins(self, now: float, *, asked: bool) -> bool:
        """Whether the pass that begins compares everything: where somebody `asked` for it, where nothing holds that was
        known before, and where it is time and no other flow's turn. Until it is `done` nothing holds."""
        age = LATEST * self._interval if asked or self._at is None else now - self._at
        if age < self._interval:
            return False
        self._has_turn = self._has_turn or self._turns.take()
        if not self._has_turn and age < LATEST * self._interval:
            return False
        self._at = None
        return True

    def done(self, now: float) -> None:
        """All was polled."""
        self._at = now

    def forget(self) -> None:
        """Nothing that was found before holds any more."""
        self._at = None

    def over(self) -> None:
        """The pass has ended, however: another flow may have its turn."""
        if self._has_turn:
            self._has_turn = False
            self._turns.give_back()

    def due_at(self, now: float) -> float:
        """When the next is due, as far as that is known."""
        return (now if self._at is None else self._at) + self._interval
