"""The entry point of the console script. Installs its handling of Ctrl-C before it imports the rest of Lockstep."""

from __future__ import annotations

import _thread
import gc
import os
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Final

from app.held_interrupts import INTERRUPTED

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

NEW_OBJECTS: Final = 50_000
"""New objects after which Python looks for unused cycles. Its default, 700, cost up to a sixth of a command's time, and
a command leaves few cycles."""


AGAIN_AFTER_S: Final = 0.05


def raise_again(unraisable: UnraisableHookArgs) -> None:
    """Raises Ctrl-C again if it came where Python cannot raise it, as in py4j's callbacks at garbage collection."""
    if unraisable.exc_type is KeyboardInterrupt:
        threading.Timer(AGAIN_AFTER_S, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(unraisable)


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    """Runs a command. Prints any expected error as one message on stderr, without a stack trace."""
    gc.set_threshold(NEW_OBJECTS)
    sys.unraisablehook = raise_again
    # What a script starts in the background ignores Ctrl-C. That stays so.
    heeds = signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    if heeds:
        # While Python imports there is nothing to take away.
        signal.signal(signal.SIGINT, _leave)
    from app.cli.lazy_commands import run_command_line

    try:
        # SIGTERM ends a command as Ctrl-C does: what it made for itself is taken away. The job has handlers of its own.
        signal.signal(signal.SIGTERM, _interrupt)
        if heeds:
            signal.signal(signal.SIGINT, _interrupt)
        run_command_line()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        if heeds:
            signal.signal(signal.SIGINT, _leave)


if __name__ == "__main__":
    main()
