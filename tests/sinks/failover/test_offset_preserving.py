"""Pass, cutover and failover beside a copier that preserves offsets, over clusters in memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from app.failover_session import write_groups
from app.single_pass import group_offsets
from sinks.engine.status import FlowState, silence
from sinks.failover.commands import cutover, failover
from sinks.failover.fencing import FenceCopied
from sinks.failover.lost_before_copying import kept_lost
from sinks.failover.predicted_loss import predict
from sinks.failover.readiness import CheckResult, readiness
from sinks.failover.readiness_facts import ReadinessFacts
from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.faults import ClusterUnreachable, ItemFault, Observed
from sinks.flow_settings import Copier, FailoverRules, FlowSettings
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.assembly import Assembly, GroupScope, assemble
from sinks.kinds.offsets.same_offsets import CopiedEnds
from sinks.kinds.offsets.verdicts import Verdict
from sinks.ledger.failover_record import State
from sinks.model.changes import Kind
from streaming.errors import WrongUsage
from streaming.mm2.records import TopicPartition
from streaming.mm2.replication_policy import IdentityReplicationPolicy
from tests.inline_work import inline
from tests.memory.memory_groups import MemoryGroups
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import World, drained_in_a_batch, flow_settings, overrides_of, put_topic, set_config
from tests.sinks.failover.scenes import Stage, look

X0, X1, Y0 = TopicPartition("x", 0), TopicPartition("x", 1), TopicPartition("y", 0)


def settings(*keeps: Kind) -> FlowSettings:
    """A flow whose copier creates the topics itself, and keeps these kinds besides."""
    policy = IdentityReplicationPolicy()
    built = flow_settings({"source.cluster.alias": "a"}, policy=policy)
    return replace(built, copier=Copier.OFFSET_PRESERVING, copier_keeps=frozenset({Kind.TOPIC, *keeps}))


@dataclass
class PreservingStage(Stage):
    """Topics `x` (two partitions) and `y` on a, and the same on b. Every third offset is a transaction marker."""

    def __post_init__(self) -> None:
        self.world = World(settings())
        super().__post_init__()

    def named(self, topic: str) -> str:
        return topic

    def write(self, topic: str, partition: int = 0, records: int = 1, *, super_user: bool = False) -> None:
        for _ in range(records):
            super().write(topic, partition, super_user=super_user)
            log = self.here.logs[TopicPartition(topic, partition)]
            if log.end % 3 == 2:
                log.skip()

    def copy(self) -> None:
        """The copier: every offset that the source has, markers included."""
        for where, log in self.here.logs.items():
            copied = self.there.logs[where]
            copied.records += [one for one in log.records if one.offset >= copied.end]
            copied.end = log.end

    def keeper(self) -> SourceEndOffsetStore:
        """What the job keeps of the source's ends."""
        return SourceEndOffsetStore(
            self.here,
            5.0,
            lambda: self.now * 1000,
            inline,
            target=self.there,
            copied_ends=CopiedEnds(self.there),
        )


@pytest.fixture
def built() -> PreservingStage:
    stage = PreservingStage()
    for where in stage.here.logs:
        stage.write(where.topic, where.partition, 10)
    stage.copy()
    return stage


def world_of_groups(*keeps: Kind) -> World:
    """x with the records 0 to 99 on a and 0 to 89 on b; the groups g at 60, h at 100."""
    world = World(
        settings(*keeps),
        source_groups=MemoryGroups("a", {"g": {X0: 60}, "h": {X0: 100}}, logs={X0: LogRange(0, 100)}),
        target_groups=MemoryGroups("b", logs={X0: LogRange(0, 90)}),
    )
    for cluster, records, end in ((world.source, world.source_records, 100), (world.target, world.target_records, 90)):
        put_topic(cluster, "x")
        log = records.logs[X0] = MemoryLog()
        for at in range(end):
            log.append(b"k", b"%d" % at, timestamp=at)
    return world


def test_groups_keep_their_offsets_as_far_as_the_copy_reaches() -> None:
    world = world_of_groups()
    report = world.run_pass()
    assert world.target_groups.offsets == {"g": {X0: 60}, "h": {X0: 90}}
    assert report.missing_topics == ()
    world.target_groups.logs[X0] = LogRange(0, 100)
    for at in range(90, 100):
        world.target_records.logs[X0].append(b"k", b"%d" % at, timestamp=at)
    for _ in range(2):
        world.run_pass(after=60.0)
    assert world.target_groups.offsets == {"g": {X0: 60}, "h": {X0: 100}}


def test_no_group_is_moved_where_the_records_show_other_offsets() -> None:
    world = world_of_groups()
    world.target_records.logs[X0].lose(0)
    dense = MemoryLog()
    for record in world.target_records.logs[X0].records:
        dense.append(record.key, record.value, record.timestamp)
    world.target_records.logs[X0] = dense.skip()
    report = world.run_pass()
    assert world.target_groups.offsets == {}
    assert report.groups is not None
    assert report.groups.verdicts[Verdict.ERROR] == 2


def test_group_is_not_moved_to_an_offset_that_was_right_before_the_source_lost_its_end() -> None:
    world = world_of_groups()
    world.source_groups.offsets["g"] = {X0: 90}
    world.run_pass()
    assert world.target_groups.offsets == {"g": {X0: 90}, "h": {X0: 90}}
    log = world.source_records.logs[X0] = MemoryLog()
    for at in range(120):
        log.append(b"k", b"%d" % (at if at < 80 else -at), timestamp=at)
    world.source_groups.logs[X0] = LogRange(0, 120)
    world.source_groups.offsets["late"] = {X0: 90}
    for _ in range(2):
        world.run_pass(after=60.0)
    assert "late" not in world.target_groups.offsets


def test_end_that_the_source_did_not_tell_is_not_taken_for_reached(built: PreservingStage) -> None:
    built.write("x", 0, 5)
    keeper = built.keeper()
    built.here.latest = lambda wanted: Observed({}, {where: ItemFault("DENIED", "no") for where in wanted})  # type: ignore[method-assign]  # a source that tells no end
    look(built, 1_000.0, keeper)
    assert keeper.caught_up_ms is None


def test_what_the_copier_keeps_and_does_not_bring_stays_known_in_later_passes() -> None:
    world = world_of_groups(Kind.TOPIC_CONFIG)
    set_config(world.source, "x", "retention.ms", "7")
    for after in (0.0, 3.0, 3.0, 60.0):
        report = world.run_pass(after=after)
        assert [(one.kind, one.passing) for one in report.plan.refused] == [(Kind.TOPIC_CONFIG, True)]
    set_config(world.target, "x", "retention.ms", "7")
    assert world.run_pass(after=60.0).plan.refused == ()


def test_kinds_that_the_copier_keeps_are_compared_and_not_written() -> None:
    world = world_of_groups(Kind.GROUP_OFFSET)
    put_topic(world.source, "new")
    set_config(world.source, "x", "retention.ms", "7")
    report = world.run_pass()
    assert "new" not in world.target.topics
    assert world.target_groups.offsets == {}
    assert overrides_of(world.target, "x") == {"retention.ms": "7"}
    assert {(one.kind, one.passing) for one in report.plan.refused} == {(Kind.TOPIC, True), (Kind.GROUP_OFFSET, True)}
    assert not [event for event in world.events() if event.kind in (Kind.TOPIC.value, Kind.GROUP_OFFSET.value)]


def test_cutover_ends_with_everything_on_the_target(built: PreservingStage) -> None:
    built.producers.append(lambda: built.write("x"))
    assert cutover(built.scene()).state is State.PROMOTED
    assert {where: log.end for where, log in built.here.logs.items()} == {
        where: log.end for where, log in built.there.logs.items()
    }


def test_failover_without_the_source_predicts_what_the_copies_lack(built: PreservingStage) -> None:
    built.mirrors = False
    keeper = built.keeper()
    look(built, 1000.0, keeper)
    missing = {where: built.here.logs[where].end for where in built.here.logs}
    built.write("x", 1, 3)
    look(built, 1010.0, keeper)
    for one in (built.world.source, built.world.source_acls, built.here):
        one.reachable = False
    prediction = predict(built.scene(answers=False))
    assert prediction.records == built.here.logs[X1].end - missing[X1]
    assert prediction.without_position == []
    record = failover(built.scene(answers=False), accept_loss=None, agreed=lambda found: None)
    assert record.state is State.FAILED_OVER


def test_records_that_retention_took_before_they_were_copied_are_noticed(built: PreservingStage) -> None:
    built.mirrors = False
    keeper = built.keeper()
    look(built, 1000.0, keeper)
    built.write("x", 0, 6)
    built.now = 100.0
    look(built, 1010.0, keeper)
    built.here.logs[X0].cut(built.here.logs[X0].end - 2)
    built.now = 200.0
    look(built, 1020.0, keeper)
    assert list(kept_lost(built.ledger())) == [X0]


def test_copies_that_reach_the_sources_ends_count_as_a_heartbeat(built: PreservingStage) -> None:
    keeper = built.keeper()
    built.now = 10.0
    look(built, 1000.0, keeper)
    assert keeper.caught_up_ms == 10_000
    built.mirrors = False
    built.write("x")
    for built.now in (20.0, 30.0):
        look(built, 1000.0 + built.now, keeper)
    assert keeper.caught_up_ms == 10_000
    built.copy()
    built.now = 40.0
    look(built, 1040.0, keeper)
    assert keeper.caught_up_ms == 40_000


def test_target_that_gives_no_answer_keeps_nothing_from_being_read_of_the_source(built: PreservingStage) -> None:
    keeper = built.keeper()

    def silent(*_: object) -> None:
        raise ClusterUnreachable("cluster b: no answer")

    built.there.latest = silent  # type: ignore[assignment, method-assign]
    look(built, 1000.0, keeper)
    assert keeper.caught_up_ms is None
    del built.there.latest  # type: ignore[method-assign]
    assert predict(built.scene(answers=False)).known["x"] == (
        built.here.logs[X0].end,
        built.here.logs[X1].end,
    )


def test_fence_waits_until_the_copier_copies_no_acls(built: PreservingStage) -> None:
    built.world.settings = replace(settings(Kind.ACL), failover=FailoverRules(copier_copies_acls=True))
    with pytest.raises(FenceCopied, match=r"lockstep\.copier\.keeps"):
        cutover(built.scene())


def test_messages_name_no_mm2() -> None:
    facts = ReadinessFacts(FailoverRules(copier_copies_acls=True), Copier.OFFSET_PRESERVING)
    failing = [one for one in readiness(facts).checks if one.result in (CheckResult.FAILED, CheckResult.UNKNOWN)]
    assert {"heartbeat", "the copier's ACL sync"} <= {one.name for one in failing}
    assert not [one for one in failing if "MM2" in f"{one.name} {one.figure} {one.remedy}"]
    assert "MM2" not in str(silence(FlowState.STALE, 99.0, Copier.OFFSET_PRESERVING))


def test_groups_are_not_led_back() -> None:
    world = world_of_groups()
    ports = world._ports_of(world.source), world._ports_of_target()
    with pytest.raises(WrongUsage, match="Such a copier fails back itself"):
        assemble(Assembly(world.settings, *ports, once=True, scope=GroupScope(back=True)), [Kind.GROUP_OFFSET])


def test_what_moved_clients_write_stops_no_second_batch() -> None:
    world = world_of_groups()
    world.target_groups.logs[X0] = LogRange(0, 105)
    for at in range(90, 105):
        world.target_records.logs[X0].append(b"k", b"%d" % at if at < 100 else b"moved", timestamp=at)
    drained_in_a_batch(world.ledger(), "x", 100, "x")
    world.target_groups.offsets = {"g": {X0: 60}, "h": {X0: 103}}
    with world.reconcile.leading():
        said = write_groups(world.reconcile, world.controllers, (), ("x",))
    assert said.endswith("1 SYNCED, 1 GROUP_ACTIVE")
    assert world.target_groups.offsets["h"] == {X0: 103}


def world_whose_copy_is_gone() -> World:
    """The copy of x was drained in a batch. Retention has taken all of it, and some of what moved clients wrote."""
    world = world_of_groups()
    world.target_groups.logs[X0] = LogRange(102, 110)
    log = world.target_records.logs[X0]
    for at in range(90, 110):
        log.append(b"k", b"%d" % at if at < 100 else b"moved", timestamp=at)
    log.cut(102)
    drained_in_a_batch(world.ledger(), "x", 100, "x")
    world.source_groups.offsets = {"h": {X0: 100}}
    return world


def test_retention_that_took_all_of_a_drained_copy_stops_no_second_batch() -> None:
    world = world_whose_copy_is_gone()
    world.target_groups.offsets = {"h": {X0: 105}}
    with world.reconcile.leading():
        said = write_groups(world.reconcile, world.controllers, (), ("x",))
    assert said.endswith("1 GROUP_ACTIVE")
    assert world.target_groups.offsets == {"h": {X0: 105}}


def test_group_that_never_moved_goes_on_where_a_drained_copy_begins_if_retention_took_all_of_it() -> None:
    world = world_whose_copy_is_gone()
    world.run_pass()
    (row,) = group_offsets(world.controllers)
    assert (row.goes_on_at, row.skipped) == (102, 0)
