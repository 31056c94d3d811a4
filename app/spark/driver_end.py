"""Ends a job whose JVM has ended.

Without this, a job could run for ever without its JVM: not every wait asks the JVM, and a query that cannot start is
retried. So a thread watches the JVM. When the JVM has ended, the job ends in order, which returns its leases. That may
itself wait for the JVM, so a time limit holds. A supervisor (systemd, Kubernetes) restarts only processes that have
ended.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable

LOOK_INTERVAL_S = 0.5

ENDS_WITHIN_S = 10.0
"""Seconds for an orderly end of the job after its JVM ended."""

Lives = Callable[[], bool]
"""Returns whether the JVM runs. Any thread may call it."""


def lives_as_child(process: subprocess.Popen[bytes]) -> Lives:
    """Returns a function that tells whether a JVM that this process started still runs."""
    return lambda: process.poll() is None


def lives_as_parent() -> Lives:
    """Returns a function that tells whether spark-submit's JVM, this process' parent, still runs. An orphan gets
    another parent."""
    parent = os.getppid()
    return lambda: os.getppid() == parent


class DriverWatch:
    """Watches one JVM until this process ends. `on_end` and `has_ended` are thread-safe."""

    def __init__(self, give_up: Callable[[], None], within: float = ENDS_WITHIN_S) -> None:
        """`give_up`: ends this process at once. Called if the process still runs `within` seconds after its JVM has
        ended."""
        self._give_up, self._within = give_up, within
        self._ended = threading.Event()
        self._lives: Lives = lambda: True
        self._lock = threading.Lock()
        self._calls: list[Callable[[], None]] = []

    def follow(self, lives: Lives) -> None:
        """Begins to watch, in a thread that ends with the process."""
        self._lives = lives
        threading.Thread(target=self._run, name="driver-watch", daemon=True).start()

    def on_end(self, call: Callable[[], None]) -> None:
        """Calls this function once when the JVM has ended; at once if it already has. It must not block or raise."""
        with self._lock:
            if not self._ended.is_set():
                self._calls.append(call)
                return
        call()

    def has_ended(self, within: float = 0.0) -> bool:
        """Returns whether the JVM has ended, or ends within these seconds."""
        return not self._lives() or self._ended.wait(within)

    def _run(self) -> None:
        while self._lives():
            time.sleep(LOOK_INTERVAL_S)
        with self._lock:
            self._ended.set()
            calls = list(self._calls)
        for call in calls:
            call()
        time.sleep(self._within)
        self._give_up()
