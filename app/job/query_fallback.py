"""Lets the flows of a target take their steps while its query does not: polling does not depend on Spark."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from pyspark.sql import DataFrame

from streaming.query import Sink
from streaming.restarts import step_is_due

log = logging.getLogger(__name__)

LONGEST_SLEEP = 0.5
"""Seconds between two looks at whether a step is due."""


class QueryFallback:
    """Calls `step` at every trigger interval while no micro-batch does the same.

    A step and a batch never run at the same time: whichever comes second waits, or is left out.
    """

    def __init__(self, step: Callable[[], None], interval: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`interval`: of the trigger, in seconds."""
        self.interval = interval
        self.running = False
        """Whether there is a query, as far as its supervisor knows."""
        self._step, self._clock = step, clock
        self._last = clock()
        self._busy = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: str | None = None

    def guard(self, sink: Sink) -> Sink:
        """The same sink; while it runs no step is taken."""

        def guarded(batch: DataFrame, number: int) -> None:
            with self._busy:
                try:
                    sink(batch, number)
                finally:
                    self._last = self._clock()

        return guarded

    def look(self) -> bool:
        """Takes a step if one is due, and says whether it did."""
        if not step_is_due(self._clock() - self._last, self.running, self.interval):
            return False
        if self._closed.is_set() or not self._busy.acquire(blocking=False):
            return False
        try:
            self._step()
            self._error = None
        except Exception as error:
            # A fault in one step must not end the polling.
            if str(error) != self._error:
                log.exception("a step without the query failed; the next one is taken all the same")
            self._error = str(error)
        finally:
            self._last = self._clock()
            self._busy.release()
        return True

    def start(self) -> None:
        """Looks again and again, in a thread of its own."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._look_until_closed, name="fallback", daemon=True)
            self._thread.start()

    def _look_until_closed(self) -> None:
        while not self._closed.wait(min(self.interval, LONGEST_SLEEP)):
            self.look()

    def close(self) -> None:
        """No more steps; waits for the one under way."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
