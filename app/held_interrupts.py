"""Delays Ctrl-C and SIGTERM until an important step is complete: a write with its record, the start of a JVM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells define it."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held_interrupts() -> Iterator[Callable[[], None]]:
    """Delays the first signal until the block calls the yielded function, or ends. That raises KeyboardInterrupt.

    A second signal raises it at once. Only the main thread gets signals; in other threads this does nothing. Signals
    that are ignored, as Ctrl-C is in a script's background process, or that Python does not handle, stay as they are.
    """
    asked = False

    def received(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    def end_here() -> None:
        if asked:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield end_here
        return
    held = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, received) for number in held}
    try:
        yield end_here
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    end_here()
