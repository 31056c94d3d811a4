"""What C libraries allocate: in few arenas, and given back. With glibc alone.

Each thread that allocates gets an arena of its own, up to eight for each core, and an arena keeps what was freed in its
midst: of a job with dozens of threads that is half of what it is resident. Source: mallopt(3), malloc_trim(3).
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from typing import Any, Final

ARENAS: Final = 2
M_ARENA_MAX: Final = -8

ENVIRONMENT: Final = "MALLOC_ARENA_MAX"
"""glibc's own setting, which wins, and which processes that are started later inherit."""

GIVEN_BACK_EVERY: Final = 60.0
"""Seconds; as often as a full comparison leaves most of it behind."""


def use_few_arenas() -> None:
    """For the threads of this process that begin to allocate from now on, and all of its children."""
    if ENVIRONMENT not in os.environ and (library := _glibc()) is not None:
        library.mallopt(M_ARENA_MAX, ARENAS)
        os.environ[ENVIRONMENT] = str(ARENAS)


class SpareMemory:
    """Given back to the operating system now and then."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._given_back = clock, clock()

    def tick(self) -> None:
        """Gives back what is free, where it is time."""
        if self._clock() - self._given_back >= GIVEN_BACK_EVERY:
            self._given_back = self._clock()
            if (library := _glibc()) is not None:
                library.malloc_trim(0)


def _glibc() -> Any:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
