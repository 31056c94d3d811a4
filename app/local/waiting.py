"""Waits for a condition, always with a time limit and a name for what it waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from streaming.errors import LockstepError

T = TypeVar("T")

CHECK_INTERVAL = 0.05
"""Seconds between two tries."""


class WaitedTooLong(LockstepError):
    """The condition did not become true. The message says which condition, and for how long."""


def wait_for(condition: Callable[[], T], timeout: float, what: str) -> T:
    """Returns the condition's first truthy value. `timeout`: seconds. Raises WaitedTooLong with the text `what` after
    it."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise WaitedTooLong(f"gave up after {timeout:g} s of waiting for {what}")
        time.sleep(CHECK_INTERVAL)
    return value
