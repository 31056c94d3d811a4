"""The SCRAM users of a cluster: what the sink asks for, and Kafka's through librdkafka (KIP-554).

A KRaft controller takes one alteration of a user in a request (DUPLICATE_RESOURCE otherwise), so each mechanism is a
request of its own. librdkafka makes the salted password on this side: no password leaves in clear. It also ends the
whole process when a cluster refuses to describe users (seen with 2.16: a pointer freed that is none), so the right is
asked about before each reading.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import confluent_kafka.admin as rd
from confluent_kafka import KafkaError

from sinks.engine.model import Key
from sinks.faults import NotSupported, RightsMissing
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.error_codes import item_fault, raised
from sinks.kafka.librdkafka.rd_rights import ask_allowed
from sinks.kafka.ports.permitted import ask_again
from sinks.kafka.ports.users import Mechanism, Upsertion, UserFaults

USERS_IN_A_REQUEST = 500
"""Users in one request."""


MECHANISMS: Mapping[rd.ScramMechanism, str] = {
    rd.ScramMechanism.SCRAM_SHA_256: Mechanism.SHA_256.value,
    rd.ScramMechanism.SCRAM_SHA_512: Mechanism.SHA_512.value,
}
MECHANISM_OF: Mapping[str, rd.ScramMechanism] = {name: one for one, name in MECHANISMS.items()}
DESCRIBE, ALTER = "DescribeUserScramCredentials", "AlterUserScramCredentials"
TOO_OLD = frozenset({KafkaError.UNSUPPORTED_VERSION, KafkaError._UNSUPPORTED_FEATURE})


class KafkaUsers:
    """A cluster's SCRAM users through an admin client that is shared."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def describe(self, users: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        if users is None:
            self._check_right()
            future: Any = self._admin.client.describe_user_scram_credentials(request_timeout=self._admin.timeout)
            found, error = self._admin.settle(DESCRIBE, {"": future})[""]
            self._check(DESCRIBE, error)
            return {user: _from_rd(one) for user, one in found.items()}
        described: dict[str, dict[str, int]] = {}
        for batch in _batches(sorted(set(users))):
            self._check_right()
            futures: Any = self._admin.client.describe_user_scram_credentials(
                batch, request_timeout=self._admin.timeout
            )
            for user, (found, error) in self._admin.settle(DESCRIBE, futures).items():
                if error is None:
                    described[user] = _from_rd(found)
                elif error.code() != KafkaError.RESOURCE_NOT_FOUND:
                    self._check(DESCRIBE, error)
        return described

    def upsert(self, upsertions: Sequence[Upsertion]) -> UserFaults:
        by_key: dict[Key, rd.UserScramCredentialAlteration] = {}
        for one in upsertions:
            info = rd.ScramCredentialInfo(MECHANISM_OF[one.mechanism], one.iterations)
            by_key[one.key] = rd.UserScramCredentialUpsertion(one.user, info, one.password.encode())
        return self._alter(by_key)

    def delete(self, keys: Collection[Key]) -> UserFaults:
        faults = self._alter({key: rd.UserScramCredentialDeletion(key[0], MECHANISM_OF[key[1]]) for key in keys})
        return {key: None if fault and fault.code == "RESOURCE_NOT_FOUND" else fault for key, fault in faults.items()}

    def _alter(self, by_key: Mapping[Key, rd.UserScramCredentialAlteration]) -> UserFaults:
        faults: UserFaults = {}
        for mechanism in sorted({key[1] for key in by_key}):
            for batch in _batches(sorted(user for user, other in by_key if other == mechanism)):
                alterations = [by_key[user, mechanism] for user in batch]
                ask_again()
                futures = self._admin.client.alter_user_scram_credentials(
                    alterations, request_timeout=self._admin.timeout
                )
                for user, (_, error) in self._admin.settle(ALTER, futures).items():
                    if error is not None and error.code() in TOO_OLD:
                        self._check(ALTER, error)
                    faults[user, mechanism] = item_fault(error) if error else None
        return faults

    def _check_right(self) -> None:
        if "DESCRIBE" not in ask_allowed(self._admin, (), ()).cluster:
            alias = self._admin.alias
            raise RightsMissing(
                f"cluster {alias}: {DESCRIBE}: CLUSTER_AUTHORIZATION_FAILED; grant the principal DESCRIBE on the "
                f"cluster {alias}"
            )

    def _check(self, api: str, error: KafkaError | None) -> None:
        if error is None:
            return
        if error.code() in TOO_OLD:
            raise NotSupported(
                f"cluster {self._admin.alias}: {api}: {error.str()}; SCRAM users need Kafka 2.7 (KIP-554)"
            )
        raise raised(self._admin.alias, api, error)


def _batches(users: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(users), USERS_IN_A_REQUEST):
        yield users[start : start + USERS_IN_A_REQUEST]


def _from_rd(found: Any) -> dict[str, int]:
    return {
        MECHANISMS[info.mechanism]: info.iterations
        for info in found.scram_credential_infos
        if info.mechanism in MECHANISMS
    }
