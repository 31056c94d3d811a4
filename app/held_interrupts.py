"""Ctrl-C and SIGTERM while something is under way that must come to its end first: a write that is to be recorded, the
start of a JVM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def held_interrupts() -> Iterator[Callable[[], None]]:
    """The first signal waits until the block calls what it gets here, or ends: that raises KeyboardInterrupt.

    A second one does so at once. Only the main thread gets signals; in others nothing is held. A signal that is
    ignored, as Ctrl-C is by what a script starts in the background, or not handled by Python, is left alone.
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
