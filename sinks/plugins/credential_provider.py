"""The interface of a provider of SCRAM users' passwords.

Kafka's protocol does not return a credential's keys, only the mechanism and its iterations. So a credential cannot be
copied. A provider returns the password, and the target derives its keys anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from sinks.faults import ItemFault, Observed
from streaming.errors import LockstepError


@dataclass(frozen=True, slots=True)
class Credential:
    """A user's password. `version`: changes with the password, and reveals nothing of it. Neither `repr` nor `str`
    shows the password.

    Raises LockstepError for an empty user or password, and for text that is not valid UTF-8.
    """

    user: str
    password: str = field(repr=False)
    version: str

    def __post_init__(self) -> None:
        if not self.user:
            raise LockstepError("a credential has no user: the provider must return its name")
        if not self.password:
            raise LockstepError(
                f"the password of {self.user} is empty, which no Kafka cluster accepts: set it in the provider"
            )
        # Half a character would show itself in the error of a later encoder.
        if any("\ud800" <= char <= "\udfff" for char in self.user + self.password):
            raise LockstepError("the name of a user, or the password, is not UTF-8")


class CredentialProvider(Protocol):
    """Returns passwords of users. A class of the operator needs only `credential`, and may have
    `configure(properties)`.

    Each method may raise LockstepError about its user.
    """

    def credential(self, user: str) -> Credential | None:
        """Returns a user's password; None if it is unknown. `user`: as the source's cluster names it."""

    def version(self, user: str) -> str | None:
        """Returns the version that `credential` would have. Called for every user at every poll, so it should be
        cheap."""

    def close(self) -> None:
        """Close connections and files. The object that created the provider calls it once."""


def version_of_credential(provider: CredentialProvider, user: str) -> str | None:
    """Stands in for `version` of a provider without one: returns the version of the credential."""
    found = provider.credential(user)
    return found.version if found else None


def close_nothing(provider: CredentialProvider) -> None:
    """Stands in for `close` of a provider without one."""


def provider_fault(error: Exception) -> ItemFault:
    """Returns an exception of a provider as a fault of its user. Leaves out the text of a foreign exception, which may
    hold a secret."""
    text = str(error) if isinstance(error, LockstepError) else type(error).__name__
    return ItemFault("CREDENTIAL_PROVIDER", text, retriable=True)


def known_versions(provider: CredentialProvider, users: Iterable[str]) -> Observed[str, str]:
    """Returns the versions of the users that the provider knows, and the reason for each user on which it fails. Asks
    about each once."""
    items: dict[str, str] = {}
    errors: dict[str, ItemFault] = {}
    for user in dict.fromkeys(users):
        try:
            version = provider.version(user)
        except Exception as error:  # noqa: BLE001 - whatever a plug-in raises is its users' alone
            errors[user] = provider_fault(error)
        else:
            if version is not None:
                items[user] = version
    return Observed(items, errors)
