"""ALLOW WRITE that is held back, and fences, which never cross."""

from __future__ import annotations

import orjson
import pytest

from sinks.flow_settings import AclRules
from sinks.kafka.ports.acl_binding import AclBinding
from sinks.ledger.fence_acls import ReverseFences, fence_acls
from sinks.ledger.ledger_entries import Entry
from sinks.ledger.seal import Seal
from sinks.model.changes import Kind
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl, lines

STAGING = AclRules(full=True, stage_writes=True)
INTERVAL = 61.0


def world_with(*acls: str, rules: AclRules = STAGING) -> World:
    """Topic x on the source, and these ACLs."""
    built = World(flow_settings(acls=rules, enabled=(Kind.TOPIC, Kind.ACL)))
    put_topic(built.source, "x")
    built.source_acls.bindings |= {acl(text) for text in acls}
    return built


def test_allow_write_is_held_back_and_allow_all_is_read_until_the_target_takes_over() -> None:
    world = world_with("ALLOW WRITE User:p TOPIC x", "ALLOW READ User:c TOPIC x", "ALLOW ALL User:o TOPIC x")
    world.settle()
    assert lines(world.target_acls.bindings) == ["ALLOW READ User:c TOPIC a.x", "ALLOW READ User:o TOPIC a.x"]
    held = {AclBinding.from_key(key) for key in world.ledger().values(Entry.STAGED)}
    assert lines(held) == ["ALLOW ALL User:o TOPIC a.x", "ALLOW WRITE User:p TOPIC a.x"]


def test_what_the_source_revokes_is_not_held_back_any_more() -> None:
    world = world_with("ALLOW WRITE User:p TOPIC x", "ALLOW READ User:c TOPIC x")
    world.settle()
    world.source_acls.bindings.discard(acl("ALLOW WRITE User:p TOPIC x"))
    world.run_pass(after=INTERVAL)
    assert world.ledger().values(Entry.STAGED) == {}


def test_a_deny_is_never_held_back() -> None:
    world = world_with("DENY WRITE User:p TOPIC x", "ALLOW WRITE User:q GROUP g")
    world.settle()
    assert "DENY WRITE User:p TOPIC a.x" in lines(world.target_acls.bindings)


@pytest.mark.parametrize("full", [False, True])
def test_a_fence_on_the_source_is_not_made_on_the_target(full: bool) -> None:
    world = world_with("ALLOW READ User:c TOPIC x", rules=AclRules(full=full))
    world.settle()
    (fence,) = fence_acls(["x"])
    world.ledger().put({(Entry.FENCE, fence.key): ""})
    world.source_acls.bindings.add(fence)
    for after in (2.0, 2.0, INTERVAL):
        report = world.run_pass(after=after)
    assert lines(world.target_acls.bindings) == ["ALLOW READ User:c TOPIC a.x"]
    assert report.plan.skipped.get("fence ACLs") == 1


@pytest.mark.parametrize("full", [False, True])
def test_the_same_deny_that_nobody_fenced_with_is_made_there(full: bool) -> None:
    world = world_with("ALLOW READ User:c TOPIC x", rules=AclRules(full=full))
    world.source_acls.bindings |= set(fence_acls(["x"]))
    world.settle()
    assert "DENY WRITE User:* TOPIC a.x" in lines(world.target_acls.bindings)


@pytest.mark.parametrize(
    "key",
    [
        ["x"],
        [["x"]],
        ["TOPIC", ["x"], "LITERAL", "User:*", "*", "WRITE", "DENY"],
        [*acl("ALLOW READ User:c TOPIC x").key],
    ],
)
def test_what_has_not_the_form_of_a_fence_is_none_of_the_flow_the_other_way_round(key: list[object]) -> None:
    cluster = MemoryCluster("a")
    put_topic(cluster, "its-ledger")
    cluster.append_log("its-ledger", [(orjson.dumps(["FENCE", *key]), b"by somebody")])
    assert ReverseFences("its-ledger", cluster, Seal("b->a")).current() == frozenset()


def test_a_fence_of_the_flow_the_other_way_round_is_not_taken_away_on_the_target() -> None:
    world = world_with("DENY WRITE User:* TOPIC x", rules=AclRules(full=True))
    world.settle()
    (fence,) = fence_acls(["a.x"])
    assert fence in world.target_acls.bindings
    reverse = World(flow_settings(), source=world.target, target=world.source)
    ledger = reverse.ledger()
    ledger.topic = world.settings.internal.reverse_ledger
    ledger.put({(Entry.FENCE, fence.key): ""})
    world.source_acls.bindings.discard(acl("DENY WRITE User:* TOPIC x"))
    world.source_acls.bindings.add(acl("ALLOW READ User:c TOPIC x"))
    world.run_pass(after=INTERVAL)
    world.run_pass(after=INTERVAL)
    assert fence in world.target_acls.bindings
