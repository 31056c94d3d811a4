"""Ends a job whose JVM has ended.

Not every wait of the job asks the JVM: without a query nothing in its main loop does, and a query that cannot be
started is tried again for ever. So a thread looks whether the JVM lives. When it does not, the job ends in its own
order, which gives its leases back. What that order waits for may itself need the JVM, so a limit holds: a supervisor
(systemd, Kubernetes) starts again only what has ended.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable

LOOK_INTERVAL_S = 0.5

ENDS_WITHIN_S = 10.0
"""How long a job may take to end in its own order once its JVM has ended."""

Lives = Callable[[], bool]
"""Whether the JVM is there; may be called from any thread."""


def lives_as_child(process: subprocess.Popen[bytes]) -> Lives:
    """Of a JVM that this process started."""
    return lambda: process.poll() is None


def lives_as_parent() -> Lives:
    """Whether spark-submit's JVM, which started this process, still lives. An orphan gets another parent."""
    parent = os.getppid()
    return lambda: os.getppid() == parent


class DriverWatch:
    """Follows one JVM until this process ends. `on_end` and `has_ended` are thread-safe."""

    def __init__(self, give_up: Callable[[], None], within: float = ENDS_WITHIN_S) -> None:
        """`give_up`: ends this process at once. It is called if the process still runs `within` seconds after its JVM
        has ended."""
        self._give_up, self._within = give_up, within
        self._ended = threading.Event()
        self._lives: Lives = lambda: True
        self._lock = threading.Lock()
        self._calls: list[Callable[[], None]] = []

    def follow(self, lives: Lives) -> None:
        """Begin to watch, in a thread that ends with the process."""
        self._lives = lives
        threading.Thread(target=self._run, name="driver-watch", daemon=True).start()

    def on_end(self, call: Callable[[], None]) -> None:
        """Call this function once when the JVM has ended; at once if it already has. It must not block or raise."""
        with self._lock:
            if not self._ended.is_set():
                self._calls.append(call)
                return
        call()

    def has_ended(self, within: float = 0.0) -> bool:
        """Whether the JVM has ended, or ends within these seconds."""
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
