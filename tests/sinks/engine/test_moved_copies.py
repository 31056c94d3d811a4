"""Once the flow has drained a topic, its clients may write the copy: Lockstep changes the copy no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from sinks.engine.reconcile import FlowReconcile
from sinks.every_kind.moved_copies import BEHIND_TAKEOVER, MOVED, refuse_moved
from sinks.kafka.ports.cluster import Alterations, Faults
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.assembly import Assembly, GroupScope, assemble
from sinks.kinds.offsets.translation import Method
from sinks.kinds.offsets.verdicts import Verdict
from sinks.ledger.kept_divergences import Divergence, divergences, keep_divergences, takeover_ends
from sinks.ledger.ledger_entries import Entry
from sinks.model.changes import ALLOW, DENY, Change, Kind, Op, ScramSpec
from sinks.model.plan import make_plan
from sinks.model.registry import ABSENT
from streaming.errors import LockstepError
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync
from streaming.mm2.replication_policy import IdentityReplicationPolicy
from tests.sinks.builders import (
    World,
    config_change,
    drained_in_a_batch,
    flow_settings,
    overrides_of,
    put_topic,
    set_config,
)
from tests.sinks.kinds.acls.acl_builders import acl
from tests.sinks.kinds.offsets.test_offsets_survey import AX, Stage, X
from tests.sinks.kinds.topics.test_deletions import observe

DRAINED = {"x": Divergence("a.x", [10], [10], [0], True)}
REMOTE_ACL = acl("ALLOW READ User:app TOPIC a.x")


def drained() -> World:
    """A flow that drained x, and goes on with y."""
    world = World(flow_settings(topic_deletes=True, enabled=(Kind.TOPIC, Kind.TOPIC_CONFIG, Kind.ACL)))
    world.source_acls.bindings.add(acl("ALLOW READ User:app TOPIC x"))
    for topic in "xy":
        put_topic(world.source, topic, retention_ms="9")
    world.settle()
    keep_divergences(world.ledger(), DRAINED)
    return world


@pytest.mark.parametrize(
    "damage", ['{"ends": null}', '{"remote": ["a"], "ends": [], "known": [], "lost": [], "exact": true}', "[]"]
)
def test_end_of_a_copy_that_no_command_wrote_is_not_trusted(damage: str) -> None:
    world = World()
    world.ledger().put({(Entry.DIVERGENCE, ("x",)): damage})
    with pytest.raises(LockstepError, match=r"cannot read in .* where partitions diverged"):
        divergences(world.ledger())


@pytest.mark.parametrize("restarts", [False, True], ids=["read before", "read after"])
def test_a_drained_topic_that_its_source_loses_stays_on_the_target(restarts: bool) -> None:
    world = drained()
    if restarts:
        world.restart()
    del world.source.topics["x"]
    del world.source.topics["y"]
    put_topic(world.source, "z")
    observe(world, 4)
    assert "a.x" in world.target.topics
    assert "a.y" not in world.target.topics


@pytest.mark.parametrize("restarts", [False, True], ids=["read before", "read after"])
def test_configs_and_acls_of_a_drained_topic_stay_whatever_becomes_of_the_old_one(restarts: bool) -> None:
    world = drained()
    if restarts:
        world.restart()
    set_config(world.source, "x", "retention.ms", "1")
    set_config(world.source, "y", "retention.ms", "1")
    world.source_acls.bindings = {acl("ALLOW READ User:other TOPIC y")}
    observe(world, 4)
    assert (overrides_of(world.target, "a.x"), overrides_of(world.target, "a.y")) == (
        {"retention.ms": "9"},
        {"retention.ms": "1"},
    )
    assert REMOTE_ACL in world.target_acls.bindings


@pytest.mark.parametrize("moved", [True, False])
def test_no_client_loses_its_access_on_the_target_once_clients_may_have_moved(moved: bool) -> None:
    """Groups, transactional ids and prefixes have no topic that would tell who moved."""
    world = drained()
    if not moved:
        world.ledger().put({(Entry.DIVERGENCE, ("x",)): None})
    texts = ["ALLOW READ User:app GROUP g", "ALLOW ALL User:app TRANSACTIONAL_ID tx", "ALLOW READ User:app TOPIC y"]
    world.source_acls.bindings |= {acl(text) for text in texts}
    world.source_acls.bindings.add(acl("ALLOW READ User:other TOPIC y"))
    observe(world, 2)
    there = {acl(text.replace("TOPIC y", "TOPIC a.y")) for text in texts}
    assert there <= world.target_acls.bindings
    world.source_acls.bindings -= {acl(text) for text in texts}
    observe(world, 4)
    assert (there & world.target_acls.bindings) == (there if moved else set())


def test_what_was_planned_before_a_command_drained_a_topic_is_not_sent_after_it() -> None:
    world, right = drained(), acl("ALLOW READ User:app GROUP g")
    world.ledger().put({(Entry.DIVERGENCE, ("x",)): None})
    world.source_acls.bindings |= {right, acl("ALLOW READ User:other TOPIC y")}
    observe(world, 2)
    world.source_acls.bindings.remove(right)
    world.run_pass()
    set_config(world.source, "y", "retention.ms", "1")
    alter = world.target.alter_topic_configs

    def drain_meanwhile(alterations: Alterations) -> Faults:
        keep_divergences(world.ledger(), DRAINED)
        return alter(alterations)

    vars(world.target)["alter_topic_configs"] = drain_meanwhile
    world.run_pass(after=4.0, everything=True)
    assert overrides_of(world.target, "a.y") == {"retention.ms": "1"}
    assert right in world.target_acls.bindings


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (Change(Kind.ACL, acl("ALLOW READ User:app GROUP g").key, ALLOW, None), True),
        (Change(Kind.ACL, acl("ALLOW READ User:app GROUP g").key, None, ALLOW), False),
        (Change(Kind.ACL, acl("DENY ALL User:app GROUP g").key, None, DENY), True),
        (Change(Kind.ACL, acl("DENY ALL User:app GROUP g").key, DENY, None), False),
        (Change(Kind.CLIENT_QUOTA, ("app", ABSENT, ABSENT, "producer_byte_rate"), "9.0", "10.0"), False),
        (Change(Kind.CLIENT_QUOTA, ("app", ABSENT, ABSENT, "producer_byte_rate"), "10.0", "9.0"), True),
        (Change(Kind.CLIENT_QUOTA, ("app", ABSENT, ABSENT, "producer_byte_rate"), None, "9.0"), True),
        (Change(Kind.CLIENT_QUOTA, ("app", ABSENT, ABSENT, "producer_byte_rate"), "9.0", None), True),
        (Change(Kind.SCRAM_USER, ("app", "SCRAM-SHA-512"), ScramSpec(4096), None), True),
        (Change(Kind.SCRAM_USER, ("app", "SCRAM-SHA-512"), None, ScramSpec(4096)), False),
    ],
)
def test_only_what_takes_access_is_refused_once_clients_may_have_moved(change: Change, refused: bool) -> None:
    plan = make_plan(flow_settings().flow, [change])
    assert bool(refuse_moved(plan, DRAINED).refused) == refused
    assert refuse_moved(plan, {}) == plan


def test_what_lockstep_does_not_do_for_a_drained_topic_is_refused_with_the_reason() -> None:
    world = drained()
    world.restart()
    set_config(world.source, "x", "retention.ms", "1")
    (refused,) = world.run_pass(everything=True).plan.refused
    assert (refused.kind, refused.key, refused.reason) == (Kind.TOPIC_CONFIG, ("a.x", "retention.ms"), MOVED)


def test_a_group_is_not_placed_behind_the_end_that_the_copy_had_when_its_clients_could_move() -> None:
    before, behind = (Change(Kind.GROUP_OFFSET, ("g", "a.x", "0"), 5, offset) for offset in (10, 11))
    other = Change(Kind.GROUP_OFFSET, ("g", "a.y", "0"), 5, 99)
    plan = refuse_moved(make_plan(flow_settings().flow, [before, other]), DRAINED)
    assert set(plan.changes) == {before, other}
    (refused,) = refuse_moved(make_plan(flow_settings().flow, [behind]), DRAINED).refused
    assert (refused.op, refused.reason, refused.passing) == (Op.UPDATE, BEHIND_TAKEOVER, True)


def test_other_topics_are_changed_as_before() -> None:
    change = config_change("a.y", "retention.ms", "1", "2")
    plan = make_plan(flow_settings().flow, [change])
    assert refuse_moved(plan, DRAINED) == plan


def test_a_group_at_the_end_of_the_source_goes_on_where_the_copy_ended_before_clients_wrote_it() -> None:
    built = Stage()
    built.on_b.logs[AX] = LogRange(0, 140)
    memory = built.memory()
    memory.takeover_ends = takeover_ends({"x": Divergence("a.x", [90], [100], [0], True)})
    (row,) = built.rows(memory=memory)
    assert (row.goes_on_at, row.as_json()["method"]) == (90, Method.TIP.value)


@pytest.fixture
def reading() -> World:
    """Two groups of a topic: g at its end, and one that still reads on the source."""
    world = World(flow_settings())
    for cluster, groups, where in (
        (world.source, world.source_groups, X),
        (world.target, world.target_groups, AX),
    ):
        put_topic(cluster, where.topic)
        groups.logs[where] = LogRange(0, 100)
    world.source.create_log("mm2-offset-syncs.b.internal", 1, {})
    syncs = [encode_record(OffsetSync(X, offset, offset)) for offset in range(0, 100, 10)]
    world.source.append_log("mm2-offset-syncs.b.internal", syncs)
    world.source_groups.offsets = {"g": {X: 100}, "stays": {X: 50}}
    world.settle()
    return world


@pytest.mark.parametrize("restarts", [False, True], ids=["the same job", "another job"])
def test_a_groups_offset_on_a_copy_that_was_drained_in_a_batch_is_its_own(reading: World, restarts: bool) -> None:
    """Whether it moved, nothing tells: a group that was reset there, or that stands still, must not skip records."""
    drained_in_a_batch(reading.ledger(), "x", 100)
    reading.run_pass(everything=True)
    reading.target_groups.offsets["g"], before = {AX: 20}, reading.target_groups.offsets["stays"]
    if restarts:
        reading.restart()
    reading.source_groups.offsets |= {"stays": {X: 100}, "new": {X: 100}}
    for _ in range(3):
        report = reading.run_pass(everything=True, after=61)
    assert before[AX] < 100
    assert reading.target_groups.offsets == {"g": {AX: 20}, "stays": before, "new": {AX: 100}}
    assert report.groups is not None
    assert report.groups.verdicts[Verdict.GROUP_ACTIVE.value] == 2


def test_groups_are_followed_between_the_drain_of_all_topics_and_the_promotion(reading: World) -> None:
    keep_divergences(reading.ledger(), {"x": Divergence("a.x", [100], [100], [0], True)})
    reading.source_groups.offsets["stays"] = {X: 100}
    for _ in range(3):
        reading.run_pass(everything=True, after=61)
    assert reading.target_groups.offsets["stays"] == {AX: 100}


def test_a_group_is_led_back_past_the_end_that_a_copy_of_the_same_name_had() -> None:
    """Under the identity policy both sides have the same names. Records behind that end were copied back."""
    world = World(flow_settings({"replication.policy.class": "identity"}, policy=IdentityReplicationPolicy()))
    for cluster, groups in ((world.source, world.source_groups), (world.target, world.target_groups)):
        put_topic(cluster, "x")
        groups.logs[X] = LogRange(0, 15)
    world.source.create_log("mm2-offset-syncs.b.internal", 1, {})
    syncs = [encode_record(OffsetSync(X, offset, offset)) for offset in range(15)]
    world.source.append_log("mm2-offset-syncs.b.internal", syncs)
    world.source_groups.offsets, world.target_groups.offsets = {"g": {X: 8}}, {"g": {X: 15}}
    keep_divergences(world.ledger(), {"x": Divergence("x", [10], [10], [0], True)})
    with led_back(world) as reconcile:
        reconcile.apply(reconcile.compare(everything=True))
    assert world.source_groups.offsets["g"][X] == 15


@contextmanager
def led_back(world: World) -> Iterator[FlowReconcile]:
    """As `offsets --reverse` leads groups back."""
    ports = world._ports_of(world.source), world._ports_of_target()
    made = assemble(Assembly(world.settings, *ports, once=True, scope=GroupScope(back=True)), [Kind.GROUP_OFFSET])
    ours = {"controllers": made.controllers, "writers": made.writers, "obeys_failover": False, "leads_back": True}
    reconcile = FlowReconcile(world.settings, replace(world.reconcile._components, **ours), world.clock)
    with reconcile.leading():
        yield reconcile
