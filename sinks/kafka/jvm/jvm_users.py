"""The SCRAM users of a cluster through Java's Admin (KIP-554).

A KRaft controller takes one alteration of a user in a request (DUPLICATE_RESOURCE otherwise), so each mechanism is a
request of its own. Java makes the salted password on this side: no password leaves in clear.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from sinks.faults import NotSupported
from sinks.kafka.jvm.java_admin import JavaAdmin
from sinks.kafka.jvm.java_rows import TEXT, JavaRows, LeftOut, Make
from sinks.kafka.ports.cluster import Key, chunks
from sinks.kafka.ports.permitted import ask_again
from sinks.kafka.ports.users import Mechanism, Upsertion, UserFaults
from streaming.errors import prefixed

USERS_IN_A_REQUEST = 500
"""Most users in one request."""

ADMIN = "org.apache.kafka.clients.admin."
RESULT = ADMIN + "DescribeUserScramCredentialsResult"
MECHANISMS: Mapping[str, str] = {one.value.replace("-", "_"): one.value for one in Mechanism}
"""Mechanisms by their names in Java's `ScramMechanism`."""
JAVA_MECHANISM: Mapping[str, str] = {name: one for one, name in MECHANISMS.items()}

INFO = Make(ADMIN + "ScramCredentialInfo", (ADMIN + "ScramMechanism", "int"))
UPSERTION = Make(ADMIN + "UserScramCredentialUpsertion", (TEXT, INFO, TEXT))
DELETION = Make(ADMIN + "UserScramCredentialDeletion", (TEXT, ADMIN + "ScramMechanism"))
LEFT_OUT: LeftOut = {ADMIN + "UserScramCredentialsDescription": ("name",)}
DESCRIBE, ALTER = "DescribeUserScramCredentials", "AlterUserScramCredentials"
NO_USER, TOO_OLD = "RESOURCE_NOT_FOUND", "UNSUPPORTED_VERSION"


class JvmUsers:
    """SCRAM users of a cluster. Thread-safe."""

    def __init__(self, admin: JavaAdmin) -> None:
        self._admin = admin

    def describe(self, users: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        with self._supported():
            if users is None:
                listed = self._admin.call(DESCRIBE, lambda client: client.describeUserScramCredentials().users())
                users = list(listed)
            described: dict[str, dict[str, int]] = {}
            for batch in chunks(sorted(set(users)), USERS_IN_A_REQUEST):
                described |= self._described(batch)
            return described

    def _described(self, users: Sequence[str]) -> dict[str, dict[str, int]]:
        rows = self._admin.rows
        names = rows.texts(users)
        settled = self._admin.settle(
            DESCRIBE,
            users,
            lambda client: rows.by(client.describeUserScramCredentials(names), RESULT, "description", names, TEXT),
        )
        for fault in settled.faults.values():
            if fault.code != NO_USER:
                raise self._admin.raised(DESCRIBE, fault)
        found = self._admin.answers(settled, LEFT_OUT)
        return {user: _iterations(one["credentialInfos"]) for user, one in found.items()}

    def upsert(self, upsertions: Sequence[Upsertion]) -> UserFaults:
        rows = {
            one.key: (one.user, JAVA_MECHANISM[one.mechanism], str(one.iterations), one.password) for one in upsertions
        }
        return self._alter(UPSERTION, rows)

    def delete(self, keys: Collection[Key]) -> UserFaults:
        faults = self._alter(DELETION, {key: (key[0], JAVA_MECHANISM[key[1]]) for key in keys})
        return {key: None if fault and fault.code == NO_USER else fault for key, fault in faults.items()}

    def _alter(self, make: Make, by_key: Mapping[Key, Sequence[str]]) -> UserFaults:
        faults: UserFaults = {}
        for mechanism in sorted({key[1] for key in by_key}):
            for batch in chunks(sorted(user for user, other in by_key if other == mechanism), USERS_IN_A_REQUEST):
                rows = self._admin.rows
                names, wanted = rows.texts(batch), rows.made(make, [by_key[user, mechanism] for user in batch])
                ask_again()
                with self._supported():
                    settled = self._admin.write(ALTER, batch, partial(_altered, rows=rows, names=names, wanted=wanted))
                for user in batch:
                    fault = settled.faults.get(user)
                    if fault is not None and fault.code == TOO_OLD:
                        raise too_old(self._admin.alias, fault.message)
                    faults[user, mechanism] = fault
        return faults

    @contextmanager
    def _supported(self) -> Iterator[None]:
        try:
            yield
        except NotSupported as error:
            raise too_old(self._admin.alias, str(error)) from error


def too_old(alias: str, said: str) -> NotSupported:
    """Returns the error for a cluster whose brokers have no SCRAM users. `said`: by the broker, or in another error."""
    needed = "SCRAM users need Kafka 2.7 (KIP-554), in KRaft mode 3.5"
    return NotSupported(f"{prefixed(f'cluster {alias}', said)}; {needed}")


def _altered(client: Any, *, rows: JavaRows, names: Any, wanted: Any) -> Any:
    return rows.of_map(client.alterUserScramCredentials(wanted).values(), names)


def _iterations(infos: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {MECHANISMS[one["mechanism"]]: one["iterations"] for one in infos if one["mechanism"] in MECHANISMS}
