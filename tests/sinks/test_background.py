"""A caller that waits for a daemon thread gets its result, and notices a signal meanwhile."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType

import pytest

from app.local.waiting import wait_for
from sinks.background import awaited, begun


def test_what_the_call_returns_or_raises_is_what_is_awaited() -> None:
    assert awaited(begun(lambda: 7, "seven")) == 7

    def fails() -> None:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        awaited(begun(fails, "fails"))


LIMIT = 60.0
"""Seconds; until then nothing else ends the wait."""


class SignalledError(Exception):
    """What the handler of a signal raises."""


def is_in(frame: FrameType | None, function: str) -> bool:
    return frame is not None and (frame.f_code.co_name == function or is_in(frame.f_back, function))


def test_a_signal_that_another_thread_was_given_ends_the_wait() -> None:
    """As one does that comes before the wait has begun: nothing interrupts the main thread."""

    def handler(number: int, frame: FrameType | None) -> None:
        raise SignalledError

    enough, main = threading.Event(), threading.get_ident()

    def signalled() -> None:
        wait_for(lambda: is_in(sys._current_frames()[main], "result"), LIMIT, "the main thread to wait")
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        enough.wait(LIMIT)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        began = time.monotonic()
        with pytest.raises(SignalledError):
            awaited(begun(signalled, "signalled"))
        assert time.monotonic() - began < LIMIT
    finally:
        enough.set()
        signal.signal(signal.SIGUSR1, before)
