"""Calls one listener from a thread of its own, so that no pass waits for it. Counts every call, and logs repeated
trouble only every ten minutes."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar

from sinks.secret_values import without_secrets
from streaming.durations import doubled
from streaming.errors import LockstepError

T = TypeVar("T")

log = logging.getLogger(__name__)

LOG_EVERY = 600.0
"""Seconds between two log lines about the same trouble."""

LONGEST_TEXT = 500
"""Most characters of a listener's error that the log shows."""


class CallResult(str, Enum):
    """Result of a call. TIMEOUT: it took longer than its limit, even if it succeeded later."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"


CountResult = Callable[[CallResult], None]


class Seldom:
    """Lets the first of many complaints through, then one every LOG_EVERY seconds."""

    def __init__(self) -> None:
        self._last: float | None = None

    def due(self, now: float) -> bool:
        """Whether to log this complaint."""
        if self._last is not None and now - self._last < LOG_EVERY:
            return False
        self._last = now
        return True

    def over(self) -> bool:
        """Note that the trouble ended. Returns whether there was any."""
        there_was, self._last = self._last is not None, None
        return there_was


class Notifier(Generic[T]):
    """Calls one listener. While a call runs, newer sets wait, and only the newest is delivered."""

    def __init__(
        self,
        name: str,
        call: Callable[[T], None],
        close: Callable[[], object],
        count: CountResult,
        patience: Patience,
        secrets: Sequence[str] = (),
    ) -> None:
        """`name`: begins each line of the log. `close`: called once, in the same thread as `call`."""
        self.name = name
        self._call, self._close, self._count = call, close, count
        self._patience, self._secrets = patience, tuple(secrets)
        self._changed = threading.Condition()
        self._latest: Latest[T] = Latest(patience)
        self._ending = False
        self._trouble = Seldom()
        # A daemon, so that a listener that hangs does not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="listener", daemon=True)
        self._thread.start()

    def deliver(self, current: T) -> None:
        """Deliver this set in the background. Does nothing if the set is the same as before."""
        with self._changed:
            if self._latest.want(current, time.monotonic()):
                self._changed.notify_all()

    def end(self, *, drop: bool) -> None:
        """Stop after the set that waits. `drop`: do not deliver that one either. Returns at once."""
        with self._changed:
            self._ending = True
            if drop:
                self._latest.drop()
            self._changed.notify_all()

    def join(self, within: float) -> bool:
        """Wait up to `within` seconds. Returns whether the listener is closed."""
        self._thread.join(within)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (current := self._next()) is not None:
            self._deliver_once(current)
        try:
            self._close()
        except BaseException as error:  # noqa: BLE001 - a listener of the user's may raise anything
            log.warning("%s could not be closed: %s", self.name, self._shown(error))

    def _next(self) -> T | None:
        """Returns the next set once it is due; None at the end."""
        with self._changed:
            while True:
                wait = self._latest.wait(time.monotonic())
                if wait == 0:
                    return self._latest.wanted
                if self._ending:
                    return None
                self._changed.wait(wait)

    def _deliver_once(self, current: T) -> None:
        # The first result of a call takes it: only that one counts.
        call = threading.Lock()
        overdue = threading.Timer(self._patience.limit, self._overdue, (call,))
        overdue.daemon = True
        raised: BaseException | None = None
        try:
            overdue.start()
            self._call(current)
        except BaseException as error:  # noqa: BLE001 - a listener of the user's may raise anything, SystemExit too
            raised = error
        overdue.cancel()
        if raised is None:
            self._took(call, current)
        else:
            self._failed(call, current, raised)

    def _took(self, call: threading.Lock, current: T) -> None:
        with self._changed:
            self._latest.delivered(current)
            recovered = self._trouble.over()
        self._say(call, CallResult.OK)
        if recovered:
            log.info("%s works again", self.name)

    def _failed(self, call: threading.Lock, current: T, error: BaseException) -> None:
        with self._changed:
            wait = self._latest.failed(current, time.monotonic())
        self._say(call, CallResult.FAILED)
        self._complain(f"failed, and is called again in {wait:.0f} s: {self._shown(error)}")

    def _say(self, call: threading.Lock, result: CallResult) -> bool:
        """Count the result if it is the call's first. Returns whether it is."""
        first = call.acquire(blocking=False)
        if first:
            self._count(result)
        return first

    def _overdue(self, call: threading.Lock) -> None:
        if self._say(call, CallResult.TIMEOUT):
            self._complain(f"has taken longer than {self._patience.limit:g} s. It gets the newest set after it returns")

    def _complain(self, what: str) -> None:
        with self._changed:
            due = self._trouble.due(time.monotonic())
        if due:
            log.warning("%s %s (logged at most every %.0f min)", self.name, what, LOG_EVERY / 60)

    def _shown(self, error: BaseException) -> str:
        """Returns an error's text in one line, without secrets."""
        plain = str(error) if isinstance(error, LockstepError) else "".join(traceback.format_exception_only(error))
        return " ".join(without_secrets(plain, self._secrets).split())[:LONGEST_TEXT]


def end_together(notifiers: Iterable[Notifier[Any]], within: float) -> list[str]:
    """End all. Returns the names of those that are not closed within `within` seconds, and logs a warning about them.

    0 drops the waiting sets and returns at once. A listener that hangs is left behind, and closed if it returns.
    """
    deadline, ending = time.monotonic() + within, list(notifiers)
    for notifier in ending:
        notifier.end(drop=within <= 0)
    left = [one.name for one in ending if not one.join(max(0.0, deadline - time.monotonic()))]
    if within > 0:
        for name in left:
            log.warning("%s did not end within %g s and is left behind", name, within)
    return left


@dataclass(frozen=True, slots=True)
class Patience:
    """Time limits in seconds. `limit`: of one call. `first_wait`: doubles with each failure up to `longest_wait`."""

    limit: float = 10.0
    first_wait: float = 1.0
    longest_wait: float = 300.0

    def wait_after(self, failures: int) -> float:
        """Returns the seconds to wait before the next delivery, after `failures` failures in a row."""
        return doubled(self.first_wait, failures, self.longest_wait)


class Latest(Generic[T]):
    """The newest set, and the one that was delivered last. Sets in between are dropped."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self.wanted: T | None = None
        """The newest set; None before the first."""
        self._known: T | None = None
        self._failures = 0
        self._due = 0.0

    def want(self, current: T, now: float) -> bool:
        """Set the newest set. Returns whether it is a new one. A new set is delivered at once, also after failures."""
        if current == self.wanted:
            return False
        self.wanted, self._due = current, now
        return True

    def wait(self, now: float) -> float | None:
        """Returns the seconds until the newest set must be delivered, 0 for now; None if there is no new one."""
        if self.wanted is None or self.wanted == self._known:
            return None
        return max(0.0, self._due - now)

    def delivered(self, current: T) -> None:
        """Note that the listener took this set."""
        self._known, self._failures = current, 0

    def failed(self, current: T, now: float) -> float:
        """Note that a delivery failed. Returns the seconds until the next one; 0 if there is a newer set."""
        # Neither the set before nor this one can be relied on any more.
        self._known = None
        self._failures += 1
        if current == self.wanted:
            self._due = now + self._patience.wait_after(self._failures)
        return max(0.0, self._due - now)

    def drop(self) -> None:
        """Drop the waiting set."""
        self.wanted = None
