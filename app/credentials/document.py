"""The file that passwords are kept in: JSON, read and replaced as a whole, by one writer at a time.

```
{"format": 1, "check": ENCODED, "users": {USER: {"current": {"version": V, "password": ENCODED}, "pending": {...}}}}
```
`check` is a known word, encoded as the passwords are: it says whether a secret is the right one before anything is
written. `pending` is a password that is on its way to the clusters; see `rotation`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from sinks.lock_file import locked
from streaming.errors import LockstepError, WrongUsage

FORMAT = 1
PRIVATE = 0o600
PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True)
class EncodedPassword:
    """An encoded password and its version."""

    version: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoredUser:
    """What is kept of one user; one of the two at least."""

    current: EncodedPassword | None = None
    pending: EncodedPassword | None = None

    def mapped(self, change: Callable[[str], str]) -> StoredUser:
        """The same with every encoded password changed."""
        current, pending = (one and replace(one, password=change(one.password)) for one in (self.current, self.pending))
        return StoredUser(current, pending)


@dataclass
class Document:
    """The whole file. `check` is None in one that nothing was written to."""

    check: str | None = field(default=None, repr=False)
    users: dict[str, StoredUser] = field(default_factory=dict)


def read_document(path: Path) -> Document:
    """What the file has; an empty one where there is none. Raises LockstepError for a file that cannot be read."""
    try:
        return _parsed(orjson.loads(path.read_bytes()))
    except FileNotFoundError:
        return Document()
    except OSError as error:
        raise WrongUsage(f"the credential store {path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        # The cause is kept out: it shows a part of the file.
        raise LockstepError(f"the credential store {path} is damaged: bring it back from a backup") from None


def _parsed(found: Any) -> Document:
    if found["format"] != FORMAT:
        raise LockstepError(f"the credential store has the format {found['format']}, of a newer version of Lockstep")
    users = {
        str(user): StoredUser(
            *(EncodedPassword(**entry[name]) if name in entry else None for name in ("current", "pending"))
        )
        for user, entry in found["users"].items()
    }
    return Document(str(found["check"]), users)


def _as_json(document: Document) -> dict[str, Any]:
    users = {
        user: {
            name: {"version": kept.version, "password": kept.password}
            for name, kept in (("current", entry.current), ("pending", entry.pending))
            if kept is not None
        }
        for user, entry in document.users.items()
    }
    return {"format": FORMAT, "check": document.check, "users": users}


@contextmanager
def changed_document(path: Path) -> Iterator[Document]:
    """The document, to be changed; written when the block ends well, left as it was when it raises.

    Waits while another process changes it. A link is followed. Raises LockstepError for a file that cannot be read or
    written.
    """
    path = path.resolve()
    with _locked(path):
        document = read_document(path)
        yield document
        try:
            _replace(path, orjson.dumps(_as_json(document), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            raise WrongUsage(f"the credential store {path} cannot be written: {error.strerror}") from None


def _locked(path: Path) -> AbstractContextManager[object]:
    # The file itself is replaced at every change, and a lock on it with it: so the lock is a file of its own.
    lock = path.with_name(f"{path.name}.lock")
    try:
        lock.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        return locked(lock)
    except OSError as error:
        raise WrongUsage(f"the credential store's lock {lock} cannot be opened: {error.strerror}") from None


def _replace(path: Path, content: bytes) -> None:
    """Old content or new, whatever happens in between; only this user can read it from its first byte on."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    part = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
