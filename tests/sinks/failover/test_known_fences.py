"""What the reverse flow's ledger says of fences: any client that may write a topic of that name may have written it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from sinks.flow_settings import AclRules
from sinks.kinds.acls.controller import REST
from sinks.ledger.fence_acls import ReverseFences, fence_acls, is_fence_key
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry, EntryKey, entry_key_bytes
from sinks.ledger.seal import Seal
from sinks.model.changes import Kind
from streaming.flow import Flow
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_cluster import MemoryCluster
from tests.sinks.builders import NOON, World, flow_settings, put_topic
from tests.sinks.kinds.acls.acl_builders import acl

TOPIC = "lockstep-ledger.b.internal"
(FENCE,) = fence_acls(["x"])


def fences_of(*keys: object) -> ReverseFences:
    source = MemoryCluster("a")
    put_topic(source, TOPIC)
    source.append_log(TOPIC, [(orjson.dumps(key), b"by a client") for key in keys])
    return ReverseFences(TOPIC, source, Seal("b->a"))


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


REVERSE = Flow("b", "a")
SECRET = "sixteen characters or more"
ENTRY: EntryKey = (Entry.FENCE, FENCE.key)
KEY = entry_key_bytes(ENTRY)


def signed_ledger() -> tuple[Ledger, MemoryCluster]:
    """The ledger of the flow the other way round, which signs, and its cluster."""
    source = MemoryCluster("a")
    return Ledger(TOPIC, source, source, 1, lambda: NOON, Seal(REVERSE.name, SECRET)), source


def forged(cluster: MemoryCluster, value: bytes | None) -> None:
    """A client without the secret writes the fence's key."""
    cluster.append_log(TOPIC, [(KEY, value)])


def test_what_the_flow_the_other_way_round_signs_sets_and_lifts_its_fence() -> None:
    ledger, source = signed_ledger()
    fences = ReverseFences(TOPIC, source, Seal(REVERSE.name, SECRET))
    for value, known in (("OWNED", {FENCE.key}), (None, set()), ("OWNED", {FENCE.key})):
        ledger.put({ENTRY: value})
        assert fences.current() == known


@pytest.mark.parametrize(
    "value",
    [
        None,
        Seal(REVERSE.name, "another secret, a guess").wrap(KEY, None, 2_000_000_000_000),
        Seal("a->b", SECRET).wrap(KEY, None, 2_000_000_000_000),
        Seal(REVERSE.name, SECRET).wrap(b"another key", None, 2_000_000_000_000),
    ],
    ids=["tombstone", "other secret", "other flow", "other key"],
)
@pytest.mark.parametrize("secret", [SECRET, None], ids=["this job has the secret", "it has none"])
def test_no_one_without_the_secret_lifts_a_signed_fence(
    secret: str | None, value: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    ledger, source = signed_ledger()
    ledger.put({ENTRY: "OWNED"})
    fences = ReverseFences(TOPIC, source, Seal(REVERSE.name, secret))
    fences.current()
    forged(source, value)
    assert fences.current() == {FENCE.key}
    assert ReverseFences(TOPIC, source, Seal(REVERSE.name, secret)).current() == {FENCE.key}
    assert f"{TOPIC} says that the fence of x is lifted" in caplog.text


@pytest.mark.parametrize("secret", [SECRET, None])
def test_a_fence_stays_known_where_its_ledger_was_deleted_and_created_again(secret: str | None) -> None:
    ledger, source = signed_ledger()
    ledger.put({ENTRY: "OWNED"})
    fences = ReverseFences(TOPIC, source, Seal(REVERSE.name, secret))
    assert fences.current() == {FENCE.key}
    del source.topics[TOPIC]
    put_topic(source, TOPIC)
    assert fences.current() == {FENCE.key}


def test_a_fence_whose_signed_record_compaction_took_after_a_forged_tombstone_stays() -> None:
    source = MemoryCluster("a")
    put_topic(source, TOPIC)
    forged(source, None)
    assert ReverseFences(TOPIC, source, Seal(REVERSE.name, SECRET)).current() == {FENCE.key}


def test_the_signed_end_of_an_earlier_fence_written_again_does_not_lift_this_one() -> None:
    ledger, source = signed_ledger()
    for value in ("OWNED", None):
        ledger.put({ENTRY: value})
    (_, _, lifted) = source.read_log_from(TOPIC, 0).records[-1]
    ledger = Ledger(TOPIC, source, source, 1, lambda: NOON + timedelta(seconds=5), Seal(REVERSE.name, SECRET))
    ledger.put({ENTRY: "OWNED"})
    forged(source, lifted)
    assert ReverseFences(TOPIC, source, Seal(REVERSE.name, SECRET)).current() == {FENCE.key}


def test_an_unsigned_ledger_lifts_its_fences_with_tombstones() -> None:
    source = MemoryCluster("a")
    ledger = Ledger(TOPIC, source, source, 1, lambda: NOON)
    fences = ReverseFences(TOPIC, source, Seal(REVERSE.name))
    for value, known in (("OWNED", {FENCE.key}), (None, set())):
        ledger.put({ENTRY: value})
        assert fences.current() == known


def test_a_forged_tombstone_makes_no_pass_take_a_fence_away_that_the_flow_owns_too() -> None:
    settings = flow_settings(acls=AclRules(full=True))
    deny = acl("DENY WRITE User:* TOPIC x")
    world = World(
        replace(settings, safety=replace(settings.safety, ledger_secret=SECRET, reverse_secret=SECRET)),
        source_acls=MemoryAcls("a", {deny, acl("ALLOW READ User:c TOPIC x")}),
    )
    put_topic(world.source, "x")
    world.settle()
    (fence,) = fence_acls(["a.x"])
    assert fence in world.target_acls.bindings
    where, entry = world.settings.internal.reverse_ledger, (Entry.FENCE, fence.key)
    Ledger(where, world.source, world.source, 1, lambda: NOON, Seal(REVERSE.name, SECRET)).put({entry: "OWNED"})
    world.source_acls.bindings.discard(deny)
    world.source.append_log(where, [(entry_key_bytes(entry), None)])
    for _ in range(3):
        world.run_pass(after=REST, everything=True)
    assert fence in world.target_acls.bindings
