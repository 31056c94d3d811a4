"""How a running job ends: by which signals, and everything side by side. And the signal for reading its file again."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

log = logging.getLogger(__name__)

PID_FILE = "LOCKSTEP_PID_FILE"
"""Environment variable: where the process id goes, so that spark-submit.sh can pass a signal on to this process."""


@contextmanager
def ending_signals(stop: Callable[[], None], reload: Callable[[], None]) -> Iterator[None]:
    """SIGTERM and SIGINT call `stop`; a second one ends the process at once. SIGHUP calls `reload`."""

    def received(number: int, _: FrameType | None) -> None:
        log.info("%s: ending after the running batch", signal.Signals(number).name)
        for again in (signal.SIGTERM, signal.SIGINT):
            signal.signal(again, signal.SIG_DFL)
        stop()

    before = {number: signal.signal(number, received) for number in (signal.SIGTERM, signal.SIGINT)}
    before[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda number, frame: reload())
    if path := os.environ.get(PID_FILE):
        Path(path).write_text(f"{os.getpid()}\n")
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def side_by_side(closes: Sequence[Callable[[], None]]) -> None:
    """Calls each in a thread of its own, and returns when all are done. What one raises is logged."""
    if not closes:
        return
    with ThreadPoolExecutor(len(closes), thread_name_prefix="close") as threads:
        for future in [threads.submit(close) for close in closes]:
            if (error := future.exception()) is not None:
                log.error("a flow could not be closed: a defect of Lockstep's, please report it", exc_info=error)
