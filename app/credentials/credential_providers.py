"""Sources of SCRAM users' passwords, chosen by `lockstep.credential.provider.class`.

| class                           | a user's password                                           | its version      |
|---------------------------------|-------------------------------------------------------------|------------------|
| `FileCredentialProvider`        | in the encrypted store, which `lockstep credentials` writes | time it was set  |
| `EnvironmentCredentialProvider` | the variable `LOCKSTEP_CREDENTIAL_ALICE`                    | `..._VERSION`    |
| `DirectoryCredentialProvider`   | the file `alice` in the folder `lockstep.credential.store`  | time it changed  |
| a class of yours                | what the class returns                                      | what it returns  |

User names may have bytes that variables and files may not. These are written in hexadecimal, so that users never share
a password: `a-b` is `LOCKSTEP_CREDENTIAL_A_2DB`, `a/b` is the file `a%2Fb`.
"""

from __future__ import annotations

import os
import stat
import string
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from app.credentials.store import CredentialStore, open_store, provider_class, store_path
from app.plugins import load_plugin
from sinks.plugins.credential_provider import Credential, CredentialProvider
from streaming.errors import LockstepError, WrongUsage

VARIABLE = "LOCKSTEP_CREDENTIAL_"
VERSION_SUFFIX = "_VERSION"
PLAIN = frozenset(string.ascii_lowercase + string.digits)
MOST_BYTES = 4096
"""Size limit of a password file, in bytes."""

FIRST_VERSION = "1"
"""The version of a password variable without a version variable."""


class FileCredentialProvider:
    """Passwords of the encrypted store. Notices changes by `lockstep credentials` while it runs."""

    _store: CredentialStore

    def configure(self, properties: Mapping[str, str]) -> None:
        """Reads `lockstep.credential.store` and `password.encoder.*`. Raises LockstepError."""
        self._store = open_store(properties)

    def credential(self, user: str) -> Credential | None:
        return self._store.credential(user)

    def version(self, user: str) -> str | None:
        return self._store.version(user)

    def close(self) -> None:
        """Does nothing: no file stays open."""


class EnvironmentCredentialProvider:
    """Passwords in this process's environment. `LOCKSTEP_CREDENTIAL_ALICE_VERSION` has the version, "1" by default.

    Give a new password a new version. Otherwise Lockstep does not write it to clusters that have the old one.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    def credential(self, user: str) -> Credential | None:
        password = self._environ.get(variable_of(user))
        return Credential(user, password, self._version(user)) if password else None

    def version(self, user: str) -> str | None:
        return self._version(user) if self._environ.get(variable_of(user)) else None

    def close(self) -> None:
        """Does nothing: no file stays open."""

    def _version(self, user: str) -> str:
        return self._environ.get(f"{variable_of(user)}{VERSION_SUFFIX}") or FIRST_VERSION


class DirectoryCredentialProvider:
    """A file for each user, as Kubernetes mounts secrets: UTF-8. One line break at the end is ignored.

    Only regular files of at most MOST_BYTES in that folder count. Kubernetes' links lead to a folder within it.
    """

    _folder: Path

    def configure(self, properties: Mapping[str, str]) -> None:
        """Reads `lockstep.credential.store`. Raises LockstepError if it is not a folder."""
        self._folder = store_path(properties)
        if not self._folder.is_dir():
            raise LockstepError(
                f"lockstep.credential.store={self._folder} is not a folder. Name one with a file for each user"
            )

    def credential(self, user: str) -> Credential | None:
        # Read before the password: an older version with a newer password is written once more, never left out.
        version = self.version(user)
        return Credential(user, read_password(self._file(user), MOST_BYTES), version) if version else None

    def version(self, user: str) -> str | None:
        if not user:
            return None
        file = self._file(user)
        try:
            found = file.stat()
            inside = file.resolve().is_relative_to(self._folder.resolve())
        except FileNotFoundError:
            return None
        except (OSError, RuntimeError) as error:
            raise LockstepError(
                f"{file} cannot be seen: {getattr(error, 'strerror', 'its links form a cycle')}"
            ) from None
        if not stat.S_ISREG(found.st_mode) or not inside:
            raise LockstepError(
                f"{file} is not a regular file in this folder, so Lockstep does not read it as a password"
            )
        return f"{found.st_mtime_ns}"

    def close(self) -> None:
        """Does nothing: no file stays open."""

    def _file(self, user: str) -> Path:
        name = quote(user, safe=" @+=,:~")
        return self._folder / (name.replace(".", "%2E", 1) if name.startswith(".") else name)


def variable_of(user: str) -> str:
    """Returns the variable's name for a user: letters in upper case, digits, and `_` with two hexadecimal digits for
    any other byte."""
    escaped = (char.upper() if char in PLAIN else _hexadecimal(char) for char in user)
    return VARIABLE + "".join(escaped)


def _hexadecimal(char: str) -> str:
    return "".join(f"_{byte:02X}" for byte in char.encode())


def read_password(file: Path, most: int | None = None) -> str:
    """Returns the content of a file without one line break at its end. Raises LockstepError without any of the content.
    `most`: bytes; a larger file is refused.
    """
    try:
        with file.open("rb") as opened:
            content = opened.read(-1 if most is None else most + 1)
    except OSError as error:
        raise WrongUsage(f"{file} cannot be read: {error.strerror}") from None
    if most is not None and len(content) > most:
        raise WrongUsage(f"{file} has more than {most} bytes, so Lockstep does not read it as a password")
    return password_in(content, str(file))


def password_in(content: bytes, named: str) -> str:
    """Returns the password in these bytes. Raises LockstepError that names their source, `named`."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise WrongUsage(f"{named} is not UTF-8 text") from None
    password = text.removesuffix("\n").removesuffix("\r")
    if not password:
        raise WrongUsage(f"{named} is empty: it should hold the password")
    return password


def load_provider(properties: Mapping[str, str]) -> CredentialProvider:
    """Returns the provider that the properties name, configured. Raises PluginError, LockstepError."""
    provider: CredentialProvider = load_plugin(provider_class(properties), CredentialProvider, properties)
    return provider
