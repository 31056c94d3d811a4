"""The encrypted store of SCRAM users' passwords: `lockstep.credential.store`, by default `.lockstep/credentials`.

Everything in it is encoded with one secret, `password.encoder.secret`. After the secret has changed, it is read with
`password.encoder.old.secret`, and the first change encodes everything anew (KIP-226), as it does what was encoded in
another way than is chosen now. A password is bound to its user: put under another's name, it is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from app.credentials.document import Document, EncodedPassword, StoredUser, changed_document, read_document
from app.credentials.encoder import EncoderSettings, PasswordEncoder, UndecodablePassword
from app.private_files import FileStamp, file_stamp
from sinks.engine.times import utc_now
from sinks.kinds.users.credentials import Credential
from streaming.errors import LockstepError

CHECK = "lockstep credentials"
"""The known word by which the secret is tried."""

VERSION_FORMAT = "%Y%m%dT%H%M%S.%fZ"
"""A version is the time at which its password was given: a store that was lost and made anew has no old one again."""


@dataclass(frozen=True, slots=True)
class ListedUser:
    """A user in the store: the versions of the current password and of the one under way, where there is one."""

    user: str
    version: str | None
    pending: str | None


class CredentialStore:
    """Passwords by user. Reads the file again when it has changed, writes it as a whole."""

    def __init__(self, path: Path, settings: EncoderSettings, now: Callable[[], datetime] = utc_now) -> None:
        """Raises LockstepError for settings of the encoder that cannot be used. The file need not be there."""
        self.path, self._now = path, now
        self._encoder = PasswordEncoder(settings.secret, settings)
        self._old = PasswordEncoder(settings.old_secret, settings) if settings.old_secret else None
        self._seen: tuple[FileStamp | None, Document] = (None, Document())

    def users(self) -> list[ListedUser]:
        """Everybody in it, by name."""
        return [
            ListedUser(user, _version(entry.current), _version(entry.pending))
            for user, entry in sorted(self._document().users.items())
        ]

    def version(self, user: str) -> str | None:
        """The version of the current password; decodes nothing."""
        return _version(self._entry(user).current)

    def credential(self, user: str) -> Credential | None:
        """The current password. Raises LockstepError where the secret is another one."""
        return self._decoded(user, self._entry(user).current)

    def pending(self, user: str) -> Credential | None:
        """The password that is under way. Raises as `credential`."""
        return self._decoded(user, self._entry(user).pending)

    def put(self, passwords: Mapping[str, str]) -> str:
        """Keeps these from now on, all or none; returns their version. Raises LockstepError while one is under way."""
        version = self._now().strftime(VERSION_FORMAT)
        credentials = [Credential(user, password, version) for user, password in passwords.items()]
        with self._changed() as document:
            for one in credentials:
                _raise_if_pending(one.user, document)
                document.users[one.user] = StoredUser(self._encoded(one))
        return version

    def begin(self, user: str, password: str, *, anew: bool = False) -> Credential:
        """Keeps a password as under way, beside the current one. `anew`: instead of another that is under way.

        Raises LockstepError where there is such another.
        """
        pending = Credential(user, password, self._now().strftime(VERSION_FORMAT))
        with self._changed() as document:
            if not anew:
                _raise_if_pending(user, document)
            entry = document.users.get(user, StoredUser())
            document.users[user] = replace(entry, pending=self._encoded(pending))
        return pending

    def promote(self, user: str, version: str) -> None:
        """Makes the password under way the current one. Raises LockstepError where it is another one by now."""
        with self._changed() as document:
            entry = document.users.get(user, StoredUser())
            if entry.pending is not None and entry.pending.version == version:
                document.users[user] = StoredUser(entry.pending)
            elif entry.current is None or entry.current.version != version:
                raise LockstepError(
                    f"the password of {user} was changed by another command meanwhile: what the clusters have may be "
                    f"another one than the store; run `lockstep credentials set {user} --both`"
                )

    def remove(self, user: str, *, force: bool = False) -> bool:
        """Forgets a user; False if there was none. Raises LockstepError while one is under way, but `force`."""
        with self._changed() as document:
            if not force:
                _raise_if_pending(user, document)
            return document.users.pop(user, None) is not None

    def close(self) -> None:
        """Nothing is open."""

    def _entry(self, user: str) -> StoredUser:
        return self._document().users.get(user, StoredUser())

    def _document(self) -> Document:
        signature = file_stamp(self.path)
        if signature is None or signature != self._seen[0]:
            self._seen = (signature, read_document(self.path))
        return self._seen[1]

    @contextmanager
    def _changed(self) -> Iterator[Document]:
        with changed_document(self.path) as document:
            self._fit(document)
            yield document

    def _fit(self, document: Document) -> None:
        """Everything is encoded with the secret of now when this returns. Raises LockstepError where it cannot be."""
        if document.check is None:
            document.check = self._encoder.encode(CHECK, CHECK)
        elif not _fits(self._encoder, document.check):
            if self._old is None or not _fits(self._old, document.check):
                raise LockstepError(f"{self._wrong_secret()}; nothing was written")
            self._encode_again(document, self._old)
        elif not self._encoder.is_current(document.check):
            self._encode_again(document, self._encoder)

    def _encode_again(self, document: Document, before: PasswordEncoder) -> None:
        document.check = self._encoder.encode(CHECK, CHECK)
        for user, entry in document.users.items():
            name = _bound_to(user)
            document.users[user] = entry.mapped(partial(_encoded_again, self._encoder, before, name))

    def _encoded(self, credential: Credential) -> EncodedPassword:
        return EncodedPassword(
            credential.version, self._encoder.encode(credential.password, _bound_to(credential.user))
        )

    def _decoded(self, user: str, stored: EncodedPassword | None) -> Credential | None:
        if stored is None:
            return None
        for encoder in (self._encoder, self._old):
            try:
                if encoder is not None:
                    return Credential(user, encoder.decode(stored.password, _bound_to(user)), stored.version)
            except UndecodablePassword:
                continue
        raise LockstepError(f"{self._wrong_secret()}: the password of {user} cannot be read")

    def _wrong_secret(self) -> str:
        return (
            f"the credential store {self.path} was encrypted with another password.encoder.secret than the one given; "
            "if it was changed, give the one before as password.encoder.old.secret"
        )


def _bound_to(user: str) -> str:
    return f"scram-user {user}"


def _encoded_again(encoder: PasswordEncoder, before: PasswordEncoder, name: str, encoded: str) -> str:
    return encoder.encode(before.decode(encoded, name), name)


def _version(stored: EncodedPassword | None) -> str | None:
    return stored.version if stored else None


def _fits(encoder: PasswordEncoder, check: str) -> bool:
    try:
        return encoder.decode(check, CHECK) == CHECK
    except UndecodablePassword:
        return False


def _raise_if_pending(user: str, document: Document) -> None:
    if document.users.get(user, StoredUser()).pending is not None:
        raise LockstepError(
            f"a new password of {user} is under way to the clusters: finish it with `lockstep credentials rotate "
            f"{user}`, or give another one with `lockstep credentials set {user} --both`"
        )
