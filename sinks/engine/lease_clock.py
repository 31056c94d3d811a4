"""The time by which leases run out, and the thread that renews them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from streaming.errors import LockstepError

log = logging.getLogger(__name__)

TEND_EVERY = 0.5
"""Seconds: so soon a request to hand over is noticed."""

Background = Callable[[Callable[[], None]], Callable[[], None]]
"""Calls something again and again; what it returns ends that."""


def boot_clock() -> float:
    """Seconds, monotonic; on Linux those in which the machine was asleep count, too."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def by_hand(tend: Callable[[], None]) -> Callable[[], None]:
    """For who calls it alone."""
    return lambda: None


def in_a_thread(tend: Callable[[], None]) -> Callable[[], None]:
    """Every TEND_EVERY, in a daemon thread, so that a target that is silent keeps no process alive."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(TEND_EVERY):
            try:
                tend()
            except LockstepError as error:
                log.debug("the lease could not be renewed: %s", error)
            except Exception:
                # Without its thread the lease would run out for good.
                log.exception("the lease could not be renewed: a defect of Lockstep's, please report it")

    threading.Thread(target=run, name="lease", daemon=True).start()
    return ended.set
