"""A file that is there to be locked, so that one process at a time does something."""

from __future__ import annotations

import fcntl
import os
from contextlib import AbstractContextManager
from pathlib import Path


def locked(path: Path, *, mode: int = 0o666, wait: bool = True) -> AbstractContextManager[object]:
    """The lock of a file, held from now until it is left; the file is made with this mode (less the umask) where it is
    missing.

    Its content is left alone, and a link is not followed: who may put one there would choose what is made or opened.
    Raises OSError where it cannot be opened, BlockingIOError without `wait` while another holds the lock.
    """
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(opened)
        raise
    return os.fdopen(opened, "r+b", buffering=0)
