"""The SCRAM users of a cluster (KIP-554): what the sink asks for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from sinks.faults import ItemFault
from sinks.kafka.ports.cluster import Key
from streaming.message_words import Word


class Mechanism(Word):
    """Kafka's `ScramMechanism`, by the names that clients use."""

    SHA_256 = "SCRAM-SHA-256"
    SHA_512 = "SCRAM-SHA-512"


UserFaults = dict[Key, ItemFault | None]
"""Result of a write by user and mechanism: `None` if it was written, or was so already."""


@dataclass(frozen=True, slots=True)
class Upsertion:
    """A credential to write. Its `repr` does not show the password."""

    user: str
    mechanism: str
    iterations: int
    password: str = field(repr=False)

    @property
    def key(self) -> Key:
        return self.user, self.mechanism


class UserReader(Protocol):
    """Reads SCRAM users, and changes none."""

    def describe(self, users: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        """Returns iterations by user and mechanism, of all users or of these. An unknown user is left out.

        Raises ClusterUnreachable, RightsMissing, and NotSupported for brokers before Kafka 2.7.
        """


class Users(UserReader, Protocol):
    """Reads and writes. Each method raises as `describe`."""

    def upsert(self, upsertions: Sequence[Upsertion]) -> UserFaults:
        """Create or replace credentials, each by itself."""

    def delete(self, keys: Collection[Key]) -> UserFaults:
        """Delete exactly these credentials. A credential that is gone already is no fault."""
