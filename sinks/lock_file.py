"""Locks files, so that one process at a time does something."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import AbstractContextManager
from pathlib import Path

FOR_OWNER = 0o600
"""Mode of lock files. Any process that can open one, if only for reading, can lock it and hold up all others."""

LOCKED_WITHIN_S = 30.0
POLL_INTERVAL_S = 0.05


def locked(path: Path, *, within: float = LOCKED_WITHIN_S) -> AbstractContextManager[object]:
    """Lock a file from now until the context is left. A missing file is created, for its owner alone.

    Its content stays. A link is not followed, because who made it would choose the file. Raises OSError if the file
    cannot be opened, BlockingIOError if another process holds it for `within` seconds.
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
