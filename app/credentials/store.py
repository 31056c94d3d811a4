"""The encrypted store of SCRAM users' passwords: `lockstep.credential.store`, by default `.lockstep/credentials`.

Everything in it is encoded with one secret, `password.encoder.secret`. After a change of the secret, the store is read
with `password.encoder.old.secret`. The next change of the store encodes everything again (KIP-226), as it does after
other encoder settings changed. A password is bound to its user and cannot be read under another's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import orjson

from app.credentials.encoder import EncoderSettings, PasswordEncoder, UndecodablePassword
from app.private_files import FileStamp, file_stamp, replace_file
from app.properties import keys
from app.properties.keys import Key
from sinks.lock_file import locked
from sinks.model.times import utc_now
from sinks.plugins.credential_provider import Credential
from sinks.secret_values import is_secret
from streaming.errors import LockstepError, WrongUsage

CHECK = "lockstep credentials"
"""The known word that shows whether the secret is right."""

VERSION_FORMAT = "%Y%m%dT%H%M%S.%fZ"
"""Format of a version: the time at which the password was set. So a store that was lost and recreated never repeats a
version."""


@dataclass(frozen=True, slots=True)
class ListedUser:
    """A user in the store, with the versions of the current and of the pending password."""

    user: str
    version: str | None
    pending: str | None


class CredentialStore:
    """Passwords by user. Reads the file again after it changed, and always writes it as a whole."""

    def __init__(self, path: Path, settings: EncoderSettings, now: Callable[[], datetime] = utc_now) -> None:
        """The file need not exist."""
        self.path, self._now = path, now
        self._encoder = PasswordEncoder(settings)
        self._seen: tuple[FileStamp | None, Document] = (None, Document())

    def users(self) -> list[ListedUser]:
        return [
            ListedUser(user, _version(entry.current), _version(entry.pending))
            for user, entry in sorted(self._document().users.items())
        ]

    def version(self, user: str) -> str | None:
        """Returns the version of the current password. Decodes nothing."""
        return _version(self._entry(user).current)

    def credential(self, user: str) -> Credential | None:
        """Returns the current password. Raises LockstepError if it was encoded with another secret."""
        return self._decoded(user, self._entry(user).current)

    def pending(self, user: str) -> Credential | None:
        """Returns the pending password. Raises as `credential`."""
        return self._decoded(user, self._entry(user).pending)

    def put(self, passwords: Mapping[str, str]) -> str:
        """Stores these passwords, all or none. Returns their version. Raises LockstepError while one is pending."""
        version = self._now().strftime(VERSION_FORMAT)
        credentials = [Credential(user, password, version) for user, password in passwords.items()]
        with self._changed() as document:
            for one in credentials:
                _raise_if_pending(one.user, document)
                document.users[one.user] = StoredUser(self._encoded(one))
        return version

    def begin(self, user: str, password: str, *, anew: bool = False) -> Credential:
        """Stores a pending password beside the current one. `anew`: replace another pending one, which otherwise raises
        LockstepError."""
        pending = Credential(user, password, self._now().strftime(VERSION_FORMAT))
        with self._changed() as document:
            if not anew:
                _raise_if_pending(user, document)
            entry = document.users.get(user, StoredUser())
            document.users[user] = replace(entry, pending=self._encoded(pending))
        return pending

    def promote(self, user: str, version: str) -> None:
        """Makes the pending password the current one. Raises LockstepError if another one is pending by now."""
        with self._changed() as document:
            entry = document.users.get(user, StoredUser())
            if entry.pending is not None and entry.pending.version == version:
                document.users[user] = StoredUser(entry.pending)
            elif entry.current is None or entry.current.version != version:
                raise LockstepError(
                    f"the password of {user} was changed by another command meanwhile: the clusters may have another "
                    f"one than the store. Run `lockstep credentials set {user} --both`"
                )

    def remove(self, user: str, *, force: bool = False) -> bool:
        """Deletes a user. Returns False if the store has no such user. Raises LockstepError while a password is
        pending, unless `force`."""
        with self._changed() as document:
            if not force:
                _raise_if_pending(user, document)
            return document.users.pop(user, None) is not None

    def close(self) -> None:
        """Does nothing: no file stays open."""

    def _entry(self, user: str) -> StoredUser:
        return self._document().users.get(user, StoredUser())

    def _document(self) -> Document:
        signature = file_stamp(self.path)
        if signature is None or signature != self._seen[0]:
            self._seen = (signature, read_document(self.path))
        return self._seen[1]

    @contextmanager
    def _changed(self) -> Iterator[Document]:
        """Yields the document to change. It is written if the block ends without an exception.

        Waits while another process changes it. Follows a link. Raises LockstepError if the file cannot be read or
        written.
        """
        path = self.path.resolve()
        with _locked(path):
            document = read_document(path)
            if document.check is None or not self._is_current(document.check):
                self._encode_all(document)
            yield document
            content = orjson.dumps(_as_json(document), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
            try:
                replace_file(path, content)
            except OSError as error:
                raise WrongUsage(f"the credential store {path} cannot be written: {error.strerror}") from None

    def _is_current(self, check: str) -> bool:
        try:
            word, current = self._encoder.read(check, CHECK)
        except UndecodablePassword:
            word, current = "", False
        if word != CHECK:
            raise LockstepError(f"{self._wrong_secret()}; nothing was written")
        return current

    def _encode_all(self, document: Document) -> None:
        """Encodes everything with the current secret and settings. Raises LockstepError if that fails."""
        document.check = self._encoder.encode(CHECK, CHECK)
        for user, entry in document.users.items():
            both = (self._encoded_again(_bound_to(user), stored) for stored in (entry.current, entry.pending))
            document.users[user] = StoredUser(*both)

    def _encoded_again(self, name: str, stored: EncodedPassword | None) -> EncodedPassword | None:
        if stored is None:
            return None
        return replace(stored, password=self._encoder.encode(self._encoder.decode(stored.password, name), name))

    def _encoded(self, credential: Credential) -> EncodedPassword:
        return EncodedPassword(
            credential.version, self._encoder.encode(credential.password, _bound_to(credential.user))
        )

    def _decoded(self, user: str, stored: EncodedPassword | None) -> Credential | None:
        if stored is None:
            return None
        try:
            return Credential(user, self._encoder.decode(stored.password, _bound_to(user)), stored.version)
        except UndecodablePassword:
            raise LockstepError(f"{self._wrong_secret()}: the password of {user} cannot be read") from None

    def _wrong_secret(self) -> str:
        return (
            f"the credential store {self.path} was encrypted with another password.encoder.secret than this one "
            "(if it was changed, set the one before as password.encoder.old.secret)"
        )


def _bound_to(user: str) -> str:
    return f"scram-user {user}"


def _version(stored: EncodedPassword | None) -> str | None:
    return stored.version if stored else None


def _raise_if_pending(user: str, document: Document) -> None:
    if document.users.get(user, StoredUser()).pending is not None:
        raise LockstepError(
            f"a new password of {user} is under way to the clusters: finish it with `lockstep credentials rotate "
            f"{user}`, or give another one with `lockstep credentials set {user} --both`"
        )


FORMAT = 1
PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True)
class EncodedPassword:
    version: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoredUser:
    """The current and the pending password of one user. At least one is set."""

    current: EncodedPassword | None = None
    pending: EncodedPassword | None = None


@dataclass
class Document:
    """The whole file: JSON, read and replaced as a whole, by one writer at a time.

    ```
    {"format": 1, "check": ENCODED,
     "users": {USER: {"current": {"version": V, "password": ENCODED}, "pending": {...}}}}
    ```

    `check`: a known word, encoded like the passwords. It tells whether a secret is the right one before Lockstep
    writes. None in a new file. `pending`: a password on its way to the clusters; see `rotation`.
    """

    check: str | None = field(default=None, repr=False)
    users: dict[str, StoredUser] = field(default_factory=dict)


def read_document(path: Path) -> Document:
    """Returns the file's content; an empty document if there is no file. Raises LockstepError if it cannot be read."""
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
        raise LockstepError(
            f"the credential store has the format {found['format']}, which a newer version of Lockstep wrote"
        )
    users = {
        str(user): StoredUser(
            *(EncodedPassword(**entry[name]) if name in entry else None for name in ("current", "pending"))
        )
        for user, entry in found["users"].items()
    }
    return Document(str(found["check"]), users)


def _as_json(document: Document) -> dict[str, Any]:
    users = {
        user: {name: kept for name, kept in asdict(entry).items() if kept is not None}
        for user, entry in document.users.items()
    }
    return {"format": FORMAT, "check": document.check, "users": users}


def _locked(path: Path) -> AbstractContextManager[object]:
    # The file itself is replaced at every change, and a lock on it with it: so the lock is a file of its own.
    lock = path.with_name(f"{path.name}.lock")
    try:
        lock.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        return locked(lock)
    except OSError as error:
        raise WrongUsage(f"the credential store's lock {lock} cannot be opened: {error.strerror}") from None


# `password.encoder.*` and `lockstep.credential.*`, from the properties that a plug-in is configured with.


T = TypeVar("T")


def encoder_settings(properties: Mapping[str, str]) -> EncoderSettings:
    """Returns the settings of the encryption. Raises LockstepError that names the key and shows no secret."""
    secret = _value(properties, keys.ENCODER_SECRET)
    if secret is None:
        raise WrongUsage(
            f"{keys.ENCODER_SECRET.name} is missing: it encrypts the stored passwords; write it as "
            "a reference, e.g. ${env:LOCKSTEP_ENCODER_SECRET}"
        )
    return EncoderSettings(
        secret=secret,
        old_secret=_value(properties, keys.ENCODER_OLD_SECRET),
        keyfactory_algorithm=_value(properties, keys.ENCODER_KEYFACTORY),
        cipher_algorithm=_value(properties, keys.ENCODER_CIPHER),
        key_length=_value(properties, keys.ENCODER_KEY_LENGTH),
        iterations=_value(properties, keys.ENCODER_ITERATIONS),
    )


def store_path(properties: Mapping[str, str]) -> Path:
    """Returns the path of the encrypted file, or of the folder of DirectoryCredentialProvider."""
    return _value(properties, keys.CREDENTIAL_STORE)


def provider_class(properties: Mapping[str, str]) -> str:
    return _value(properties, keys.CREDENTIAL_PROVIDER)


def open_store(properties: Mapping[str, str]) -> CredentialStore:
    """Returns the encrypted store. Raises LockstepError for settings with which it cannot be read."""
    return CredentialStore(store_path(properties), encoder_settings(properties))


def _value(properties: Mapping[str, str], key: Key[T]) -> T:
    text = properties.get(key.name)
    if text is None:
        return key.default
    try:
        return key.type.parse(text)
    except ValueError:
        shown = "its value" if is_secret(key.name) else repr(text)
        raise WrongUsage(f"{key.name}: {key.type.complaint(shown, text)}") from None
