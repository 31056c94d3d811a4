"""A file that is there to be locked, so that one process at a time does something."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import AbstractContextManager
from pathlib import Path

FOR_OWNER = 0o600
"""A process that can open a file for reading alone can lock it, and holds up all others."""

LOCKED_WITHIN_S = 30.0
POLL_INTERVAL_S = 0.05


def locked(path: Path, *, within: float = LOCKED_WITHIN_S) -> AbstractContextManager[object]:
    """The lock of a file, held from now until it is left; the file is made where it is missing, for its owner alone.

    Its content is left alone, and a link is not followed: who may put one there would choose what is made or opened.
    Raises OSError where it cannot be opened, BlockingIOError where another holds the lock for `within` seconds.
    """
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FOR_OWNER)
    try:
        found = os.fstat(opened)
        # Older versions made it for everybody to read.
        if found.st_uid == os.geteuid() and found.st_mode & 0o077:
            os.fchmod(opened, FOR_OWNER)
        _lock(opened, within)
    except BaseException:
        os.close(opened)
        raise
    return os.fdopen(opened, "r+b", buffering=0)


def _lock(opened: int, within: float) -> None:
    deadline = time.monotonic() + within
    while True:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                said = f"another process has held it for {within:g} s" if within else os.strerror(errno.EAGAIN)
                raise BlockingIOError(errno.EAGAIN, said) from None
            time.sleep(POLL_INTERVAL_S)
        else:
            return
