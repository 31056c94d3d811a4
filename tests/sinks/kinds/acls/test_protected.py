"""Principals of the target whom the source's ACLs never concern: the job's own, and super users."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sinks.flow_settings import AclRules
from sinks.kinds.acls.controller import REST
from sinks.kinds.acls.rules import desired_acls
from sinks.model.principals import PROTECTED, NamedPrincipals, PrincipalMapping
from streaming.errors import LockstepError
from tests.memory.memory_acls import MemoryAcls
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl, identity, lines, source_topics

PROTECT = NamedPrincipals(PROTECTED, "admin, root-.*", known=["User:CN=lockstep,O=x"])
READ = acl("ALLOW READ User:al TOPIC x")


@pytest.mark.parametrize("principal", ["User:CN=lockstep,O=x", "User:admin", "User:root-1"])
@pytest.mark.parametrize("policy", [None, identity()])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("permission", ["ALLOW", "DENY"])
def test_acl_of_a_protected_principal_is_counted_and_never_copied(
    principal: str, policy: None, full: bool, permission: str
) -> None:
    rules = AclRules(full=full, protected=PROTECT)
    acls = [replace(acl(f"{permission} READ User:al TOPIC x"), principal=principal), READ]
    desired = desired_acls(acls, rules, source_topics("x", policy=policy))
    assert {one.principal for one in desired.wanted} == {"User:al"}
    assert desired.skipped == {"protected": 1}


def test_protected_is_the_name_on_the_target() -> None:
    rules = AclRules(full=True, protected=PROTECT, mapping=PrincipalMapping.parse("RULE:admin/al/,RULE:al/admin/"))
    desired = desired_acls([READ, acl("ALLOW READ User:admin TOPIC x")], rules, source_topics("x"))
    assert lines(desired.wanted) == ["ALLOW READ User:al TOPIC a.x"]


@pytest.mark.parametrize("where", ["TOPIC x", "TOPIC *", "GROUP g"])
def test_deny_for_everybody_would_lock_the_job_out_and_is_refused(where: str) -> None:
    deny = acl(f"DENY ALL User:* {where}")
    desired = desired_acls([READ, deny], AclRules(full=True, protected=PROTECT), source_topics("x"))
    assert lines(desired.wanted) == ["ALLOW READ User:al TOPIC a.x"]
    (refusal,) = desired.refusals(set())
    assert "User:CN=lockstep,O=x, admin, root-.*" in refusal.reason


def test_acl_of_a_protected_principal_is_not_deleted_even_if_lockstep_created_it() -> None:
    admin = acl("ALLOW READ User:admin TOPIC x")
    world = World(flow_settings(acls=AclRules(full=True)), source_acls=MemoryAcls("a", {READ, admin}))
    put_topic(world.source, "x")
    world.settle()
    world.settings = replace(world.settings, acls=AclRules(full=True, protected=PROTECT))
    world.restart()
    world.source_acls.bindings = {READ}
    for _ in range(3):
        world.run_pass(after=REST)
    assert acl("ALLOW READ User:admin TOPIC a.x") in world.target_acls.bindings


def test_list_that_is_none_is_named_by_its_key() -> None:
    with pytest.raises(LockstepError, match=r"^lockstep\.acl\.principals\.protected: "):
        NamedPrincipals(PROTECTED, "(")


def test_nobody_is_protected_by_default() -> None:
    assert not NamedPrincipals()
    assert "User:admin" not in NamedPrincipals()
