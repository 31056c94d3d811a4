"""Lets the flows of a target have their passes while its query does not: polling does not depend on Spark."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from pyspark.sql import DataFrame

from streaming.query import Sink
from streaming.restarts import serves_without_query

log = logging.getLogger(__name__)

Serve = Callable[[float], None]
"""Lets the flows have passes as reasons come, for so many seconds."""

SLICE = 0.5
"""Seconds that it serves at a time: a micro-batch that comes meanwhile waits so long."""

FALLBACK_PAUSE = 0.1
"""Seconds between two checks whether it is its turn."""


class QueryFallback:
    """Serves while no micro-batch does. They never do so at the same time: whichever comes second waits."""

    def __init__(self, serve: Serve, clock: Callable[[], float] = time.monotonic) -> None:
        self.running = False
        """Whether there is a query, as far as its supervisor knows."""
        self._serve, self._clock = serve, clock
        self._last = clock()
        self._busy = threading.Lock()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: str | None = None

    def guard(self, sink: Sink) -> Sink:
        """The same sink; while it runs nobody else serves."""

        def guarded(batch: DataFrame, number: int) -> None:
            with self._busy:
                try:
                    sink(batch, number)
                finally:
                    self._last = self._clock()

        return guarded

    def take_turn(self) -> bool:
        """Serves for a slice if no batch does, and says whether it did."""
        if not serves_without_query(self._clock() - self._last, self.running):
            return False
        if self._closed.is_set() or not self._busy.acquire(blocking=False):
            return False
        try:
            self._serve(SLICE)
            self._error = None
        except Exception as error:
            # A fault in one slice must not end the polling.
            if str(error) != self._error:
                log.exception("serving without the query failed; the next slice comes all the same")
            self._error = str(error)
        finally:
            self._busy.release()
        return True

    def start(self) -> None:
        """Takes its turns, in a thread of its own."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="fallback", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._closed.wait(FALLBACK_PAUSE):
            self.take_turn()

    def close(self) -> None:
        """Serves no more; waits for the slice under way."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
