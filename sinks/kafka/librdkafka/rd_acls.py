"""The ACLs of a cluster: what the sink asks for, and Kafka's through librdkafka.

librdkafka calls the CLUSTER resource BROKER, and knows neither delegation-token nor user resources nor their
operations: those come back as UNKNOWN. It also loses the error of a DescribeAcls response (seen with 2.16): a principal
without the right, and a cluster without an authorizer, look like a cluster without ACLs. So an empty answer is not
believed before two more questions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import confluent_kafka.admin as rd
from confluent_kafka import KafkaError

from sinks.faults import ItemFault, NotSupported, RightsMissing
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.error_codes import item_fault, raised
from sinks.kafka.librdkafka.rd_rights import ask_allowed
from sinks.kafka.ports.acl_binding import CLUSTER, RESOURCE_TYPES, AclBinding
from sinks.kafka.ports.acls import AclFaults, AclList
from sinks.kafka.ports.permitted import ask_again

ACLS_IN_A_REQUEST = 500
"""ACLs in one write request. A controller compares each one to be deleted with every one that there is."""


Request = Callable[..., Mapping[Any, "Future[Any]"]]

RESOURCES: Mapping[str, rd.ResourceType] = {
    CLUSTER if one is rd.ResourceType.BROKER else one.name: one
    for one in rd.ResourceType
    if one.name in RESOURCE_TYPES or one is rd.ResourceType.BROKER
}
RESOURCE_WORDS: Mapping[rd.ResourceType, str] = {one: word for word, one in RESOURCES.items()}

# None is any text, whatever the package's own types say.
_any: Any = None
ANY = rd.AclBindingFilter(
    rd.ResourceType.ANY, _any, rd.ResourcePatternType.ANY, _any, _any, rd.AclOperation.ANY, rd.AclPermissionType.ANY
)

NOBODY = rd.AclBindingFilter(
    rd.ResourceType.TOPIC,
    "?",
    rd.ResourcePatternType.LITERAL,
    "User:lockstep-nobody",
    "0.0.0.0",
    rd.AclOperation.READ,
    rd.AclPermissionType.DENY,
)
"""Matches no ACL: no topic has such a name."""

UNWRITABLE = ItemFault("INVALID_REQUEST", "librdkafka knows no such resource, pattern, operation or permission")


class KafkaAcls:
    """A cluster's ACLs through an admin client that is shared."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def describe(self) -> list[AclBinding]:
        future = self._admin.client.describe_acls(ANY, request_timeout=self._admin.timeout)
        (found, error) = self._admin.settle("DescribeAcls", {ANY: future})[ANY]
        if error is not None:
            self._check_supported("DescribeAcls", error)
            raise raised(self._admin.alias, "DescribeAcls", error)
        if not found:
            self._check_emptiness()
        return [_from_rd(one) for one in found]

    def recent(self) -> AclList:
        return AclList(self.describe())

    def create(self, bindings: Collection[AclBinding]) -> AclFaults:
        return self._write("CreateAcls", self._admin.client.create_acls, rd.AclBinding, bindings)

    def delete(self, bindings: Collection[AclBinding]) -> AclFaults:
        return self._write("DeleteAcls", self._admin.client.delete_acls, rd.AclBindingFilter, bindings)

    def _write(
        self, api: str, request: Request, make: type[rd.AclBinding], bindings: Collection[AclBinding]
    ) -> AclFaults:
        faults: AclFaults = {one: None if _is_writable(one) else UNWRITABLE for one in bindings}
        for batch in _batches([one for one, fault in faults.items() if fault is None]):
            filters = {_to_rd(make, one): one for one in batch}
            ask_again()
            futures = request(list(filters), request_timeout=self._admin.timeout)
            for sent, (_, error) in self._admin.settle(api, futures).items():
                if error is not None:
                    self._check_supported(api, error)
                    faults[filters[sent]] = item_fault(error)
        return faults

    def _check_emptiness(self) -> None:
        """Whether there are no ACLs, or only no answer. Raises RightsMissing, NotSupported."""
        alias = self._admin.alias
        if "DESCRIBE" not in ask_allowed(self._admin, (), ()).cluster:
            raise RightsMissing(
                f"cluster {alias}: DescribeAcls: CLUSTER_AUTHORIZATION_FAILED; grant the principal DESCRIBE on the "
                f"cluster {alias}"
            )
        # Only an authorizer denies: who may not delete has learned that there is one.
        with suppress(RightsMissing):
            futures = self._admin.client.delete_acls([NOBODY], request_timeout=self._admin.timeout)
            for _, error in self._admin.settle("DeleteAcls", futures).values():
                if error is not None:
                    self._check_supported("DeleteAcls", error)
                    # A busy controller that gave no answer has not said that there is an authorizer.
                    raise raised(alias, "DeleteAcls", error)

    def _check_supported(self, api: str, error: KafkaError) -> None:
        if error.code() == KafkaError.SECURITY_DISABLED:
            raise NotSupported(f"cluster {self._admin.alias}: {api}: {error.str()}; its brokers have no authorizer")


def _batches(bindings: list[AclBinding]) -> Iterator[list[AclBinding]]:
    for start in range(0, len(bindings), ACLS_IN_A_REQUEST):
        yield bindings[start : start + ACLS_IN_A_REQUEST]


def _is_writable(binding: AclBinding) -> bool:
    # An UNKNOWN in a filter for deletion would be sent as it is, and match more than one.
    return binding.is_known and binding.resource_type in RESOURCES and binding.operation in rd.AclOperation.__members__


def _to_rd(make: type[rd.AclBinding], binding: AclBinding) -> rd.AclBinding:
    return make(
        RESOURCES[binding.resource_type],
        binding.resource_name,
        rd.ResourcePatternType[binding.pattern_type],
        binding.principal,
        binding.host,
        rd.AclOperation[binding.operation],
        rd.AclPermissionType[binding.permission],
    )


def _from_rd(found: Any) -> AclBinding:
    return AclBinding(
        RESOURCE_WORDS[found.restype],
        found.name,
        found.resource_pattern_type.name,
        found.principal,
        found.host,
        found.operation.name,
        found.permission_type.name,
    )
