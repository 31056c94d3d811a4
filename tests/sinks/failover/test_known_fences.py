"""What the reverse flow's ledger says of fences: any client that may write a topic of that name may have written it."""

from __future__ import annotations

import orjson
import pytest

from sinks.kafka.memory.memory_acls import MemoryAcls
from sinks.kafka.memory.memory_cluster import MemoryCluster
from sinks.kinds.acls.controller import REST
from sinks.ledger.fences import ReverseFences, fence_acls, is_fence_key
from sinks.model.changes import Kind
from tests.sinks.builders import World, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

TOPIC = "lockstep-ledger.b.internal"
(FENCE,) = fence_acls(["x"])


def fences_of(*keys: object) -> ReverseFences:
    source = MemoryCluster("a")
    put_topic(source, TOPIC)
    source.append_log(TOPIC, [(orjson.dumps(key), b"by a client") for key in keys])
    return ReverseFences(TOPIC, source)


@pytest.mark.parametrize(
    "key",
    [
        ["x"],
        [["x"]],
        [],
        [*FENCE.key, "x"],
        [*FENCE.key[:-1], 1],
        [*FENCE.key[:-1], ["DENY"]],
        ["TOPIC", "x", "LITERAL", "User:mallory", "*", "READ", "ALLOW"],
        ["NONSENSE", *FENCE.key[1:]],
    ],
)
def test_an_entry_that_has_not_the_form_of_a_fence_is_left_out(key: list[object]) -> None:
    assert not is_fence_key(key)
    assert fences_of(["FENCE", *key], ["FENCE", *FENCE.key]).current() == {FENCE.key}


def test_no_record_in_the_reverse_flows_ledger_keeps_an_acl_from_being_revoked() -> None:
    wanted, revoked, deny = acl("ALLOW READ User:alice TOPIC x"), acl("ALLOW READ User:mallory TOPIC x"), FENCE
    world = World(source_acls=MemoryAcls("a", {wanted, revoked, deny}))
    there = acl("ALLOW READ User:mallory TOPIC a.x")
    put_topic(world.source, "x")
    put_topic(world.source, world.settings.internal.reverse_ledger)
    world.settle()
    world.run_pass(after=REST)
    assert there in world.target_acls.bindings
    entries = [(orjson.dumps(["FENCE", *key]), b"by a client") for key in (there.key, [["x"]])]
    world.source.append_log(world.settings.internal.reverse_ledger, entries)
    world.source_acls.bindings.discard(revoked)
    for _ in range(3):
        world.run_pass(after=REST, everything=True)
    assert there not in world.target_acls.bindings
    assert not [key for key in world.ledger().owned(Kind.ACL) if key == there.key]
