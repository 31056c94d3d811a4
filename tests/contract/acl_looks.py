"""What the suites of ACLs share: who looks, and waiting until brokers show what was written."""

from __future__ import annotations

import pytest

from app.local.broker import RESTRICTED
from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from sinks.kafka.jvm.java_admin import java_properties
from sinks.kafka.jvm.jvm_acls import JvmAcls, JvmAclWatch, WatchedAcls
from sinks.kafka.librdkafka.admin import Admin
from sinks.kafka.librdkafka.rd_acls import KafkaAcls
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import Acls

SOON = 30.0
REAL = [pytest.mark.kafka, pytest.mark.spark]
"""What a test needs that looks through the JVM."""


def broker_of(request: pytest.FixtureRequest) -> LocalCluster:
    """The target of all tests."""
    local: LocalCluster = request.getfixturevalue("clusters").b
    return local


def restricted(request: pytest.FixtureRequest) -> dict[str, str]:
    """Client properties of a user without rights."""
    return broker_of(request).client_properties(RESTRICTED)


def kafka_acls(properties: dict[str, str]) -> KafkaAcls:
    """The ACLs of a real cluster."""
    return KafkaAcls(Admin("b", properties))


def jvm_acls(request: pytest.FixtureRequest, properties: dict[str, str]) -> JvmAcls:
    """The ACLs of a real cluster through the JVM of the tests' SparkSession."""
    gateway = request.getfixturevalue("spark").sparkContext._gateway
    return JvmAcls("b", gateway, properties, lambda alias, api, result: None)


def acls_at(request: pytest.FixtureRequest, properties: dict[str, str]) -> Acls:
    """The ACLs of a real cluster by a fixture's parameter: `kafka`, or `jvm` as a running job reads them."""
    written = kafka_acls(properties)
    if request.param == "kafka":
        return written
    read = jvm_acls(request, properties)
    request.addfinalizer(read.close)
    return WatchedAcls(written, lambda: read)


def jvm_watch(request: pytest.FixtureRequest, properties: dict[str, str]) -> JvmAclWatch:
    """A watch through the JVM of the tests' SparkSession."""
    read = jvm_acls(request, properties)
    request.addfinalizer(read.close)
    return JvmAclWatch(lambda: read)


def of(acls: Acls, principal: str) -> set[AclBinding]:
    """What a principal has."""
    return {one for one in acls.describe() if one.principal == principal}


def shows(acls: Acls, principal: str, wanted: set[AclBinding]) -> None:
    """Waits until a principal has exactly these: brokers apply a moment later what the controller has written."""
    wait_for(lambda: of(acls, principal) == wanted, SOON, f"{principal} to have {wanted}")


def create_in_java(
    request: pytest.FixtureRequest, resource_type: str, name: str, principal: str, operation: str
) -> None:
    """An ALLOW on a literal name, through Kafka's own client: it knows types of resources that librdkafka does not."""
    jvm = request.getfixturevalue("spark").sparkContext._gateway.jvm
    common, admin = jvm.org.apache.kafka.common, jvm.org.apache.kafka.clients.admin
    pattern = common.resource.ResourcePattern(
        common.resource.ResourceType.valueOf(resource_type), name, common.resource.PatternType.LITERAL
    )
    entry = common.acl.AccessControlEntry(
        principal, "*", common.acl.AclOperation.valueOf(operation), common.acl.AclPermissionType.ALLOW
    )
    client = admin.AdminClient.create(java_properties("b", jvm, {"bootstrap.servers": broker_of(request).bootstrap}))
    bindings = jvm.java.util.ArrayList()
    bindings.add(common.acl.AclBinding(pattern, entry))
    client.createAcls(bindings).all().get()
    client.close()
