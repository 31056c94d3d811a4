"""What the suites of ACLs share: who looks, and waiting until brokers show what was written."""

from __future__ import annotations

import pytest

from app.local.broker import RESTRICTED
from app.local.local_cluster import LocalCluster
from app.local.waiting import wait_for
from app.wiring import admin_of
from sinks.kafka.jvm.jvm_acls import BINDING, JvmAcls
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.kafka.ports.acls import Acls

SOON = 180.0


def broker_of(request: pytest.FixtureRequest) -> LocalCluster:
    """The target of all tests."""
    local: LocalCluster = request.getfixturevalue("clusters").b
    return local


def restricted(request: pytest.FixtureRequest) -> dict[str, str]:
    """Client properties of a user without rights."""
    return broker_of(request).client_properties(RESTRICTED)


def kafka_acls(properties: dict[str, str]) -> JvmAcls:
    """The ACLs of a real cluster."""
    return JvmAcls(admin_of("b", properties))


def of(acls: Acls, principal: str) -> set[AclBinding]:
    """What a principal has."""
    return {one for one in acls.describe() if one.principal == principal}


def shows(acls: Acls, principal: str, wanted: set[AclBinding]) -> None:
    """Waits until a principal has exactly these: brokers apply a moment later what the controller has written."""
    wait_for(lambda: of(acls, principal) == wanted, SOON, f"{principal} to have {wanted}")


def create_in_java(
    request: pytest.FixtureRequest, resource_type: str, name: str, principal: str, operation: str
) -> None:
    """An ALLOW on a literal name, of types of resources that Lockstep does not write."""
    admin = admin_of("b", {"bootstrap.servers": broker_of(request).bootstrap})
    bindings = admin.rows.made(BINDING, [[resource_type, name, "LITERAL", principal, "*", operation, "ALLOW"]])
    admin.call("CreateAcls", lambda client: client.createAcls(bindings).all())
    admin.close()
