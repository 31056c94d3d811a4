"""A file that is there to be locked, so that one process at a time does something."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path, *, mode: int = 0o666, wait: bool = True) -> Iterator[None]:
    """Holds the lock of a file, which is made with this mode (less the umask) where it is missing.

    Its content is left alone, and a link is not followed: who may put one there would choose what is made or opened.
    Raises OSError where it cannot be opened, BlockingIOError without `wait` while another holds the lock.
    """
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)
