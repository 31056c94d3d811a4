"""Writes files that only their owner can read, each whole or not at all, and never through a link.

Also stamps files, to notice that one changed.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from streaming.errors import LockstepError, WrongUsage

FOR_OWNER = 0o600
FOLDER_FOR_OWNER = 0o700

FileStamp = tuple[int, int, int]
"""Modification time (ns), size and inode of a file. If they differ, the file may have changed."""


def file_stamp(path: Path) -> FileStamp | None:
    """Returns the stamp of a file; None while it does not exist, for example while an editor replaces it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def unfinished_path(path: Path) -> Path:
    """Returns a random path beside `path`, which no other process can have opened or linked before."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")


def replace_file(path: Path, data: bytes, mode: int = FOR_OWNER) -> None:
    """Replaces or creates a file with this content. It is on the disk when this returns. A link is replaced, not
    followed.

    `mode`: file mode, further reduced by the process' umask. Raises OSError; then no part of a file is left.
    """
    part = unfinished_path(path)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    # A folder may be writable and not readable.
    with suppress(PermissionError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def local_path(folder: str) -> Path | None:
    """Returns the path of a folder on this machine; None for a URL of another file system."""
    if folder.startswith("file:"):
        return Path(urlsplit(folder).path)
    return None if "://" in folder else Path(folder)


def make_new_folder(folder: str, option: str) -> None:
    """Creates a folder for its owner alone, or uses an empty one. Ignores a URL of another file system.

    Raises WrongUsage for a link, a file, a folder with content, and a folder that cannot be created.
    """
    path = local_path(folder)
    if path is None:
        return
    if path.is_symlink():
        raise WrongUsage(f"{option} {folder}: it is a symbolic link; name the folder itself")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise WrongUsage(f"{option} {folder}: it exists and is not an empty folder; name a new one")
    try:
        path.mkdir(FOLDER_FOR_OWNER, parents=True, exist_ok=True)
        path.chmod(FOLDER_FOR_OWNER)
    except OSError as error:
        raise WrongUsage(f"{option} {folder}: {error.strerror}") from error


def write_report(path: Path, data: bytes) -> None:
    """Replaces the file of `--report`, as `replace_file`. Raises LockstepError."""
    try:
        replace_file(path, data)
    except OSError as error:
        raise LockstepError(f"--report {path}: {error.strerror}") from error


def check_writable(path: Path, option: str = "--out") -> None:
    """Raises WrongUsage if no file can be written at `path`. Called before a long comparison."""
    folder = path.parent
    try:
        if path.is_dir():
            why = os.strerror(errno.EISDIR)
        elif os.access(folder, os.W_OK | os.X_OK):
            return
        else:
            why = f"no file can be created in {folder}" if folder.is_dir() else f"there is no folder {folder}"
    except OSError as error:
        why = error.strerror or str(error)
    raise WrongUsage(f"{option} {path}: {why}")
