"""The pass keeps groups' offsets: forward only, for groups without members, and says why where it does not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from sinks.faults import ItemFault
from sinks.kafka.ports.groups import GroupFaults, LogRange, Offsets
from sinks.kinds.offsets.polled_groups import LEAST_IN_A_PASS
from sinks.kinds.offsets.stored_memory import stored_histories
from sinks.kinds.offsets.verdicts import Verdict
from sinks.model.changes import Kind
from streaming.hints import SyncSeen
from streaming.mm2.codec import decode_checkpoint, encode_record
from streaming.mm2.records import OffsetSync, TopicPartition
from tests.memory.memory_groups import MemoryGroups
from tests.sinks.builders import World, flow_settings, put_topic

X, AX = TopicPartition("x", 0), TopicPartition("a.x", 0)
SYNCS = "mm2-offset-syncs.b.internal"
DENIED = ItemFault("GROUP_AUTHORIZATION_FAILED", "")
REST = 40.0
"""Seconds after which every group that is not where it should be was compared again, before the next comparison of
everything."""


def world_of_groups(target: MemoryGroups | None = None, **settings: bool) -> World:
    """x on a with offsets 0 to 100, copied to a.x as 0 to 90 with the pair (40, 30); the group g at 60."""
    world = World(
        flow_settings(**settings),
        source_groups=MemoryGroups("a", {"g": {X: 60}}, logs={X: LogRange(0, 100)}),
        target_groups=target or MemoryGroups("b", logs={AX: LogRange(0, 90)}),
    )
    put_topic(world.source, "x")
    put_topic(world.target, "a.x")
    world.source.create_log(SYNCS, 1, {})
    world.source.append_log(SYNCS, [encode_record(OffsetSync(X, 40, 30))])
    return world


@pytest.fixture
def world() -> World:
    return world_of_groups()


def verdicts(world: World) -> dict[Verdict, int]:
    """Those that a pass with nothing to do reports."""
    report = world.run_pass()
    assert report.groups is not None
    return {verdict: count for verdict, count in report.groups.verdicts.items() if count}


def test_group_goes_on_at_the_translated_offset_and_is_synced(world: World) -> None:
    world.run_pass()
    assert world.target_groups.offsets == {"g": {AX: 31}}
    assert verdicts(world) == {Verdict.SYNCED: 1}


def test_commit_on_the_source_is_followed_in_the_next_pass(world: World) -> None:
    world.settle()
    world.source_groups.offsets["g"][X] = 100
    world.run_pass()
    assert world.target_groups.offsets["g"][AX] == 90


def test_what_is_said_of_groups_is_the_same_value_while_nothing_changes(world: World) -> None:
    world.settle()
    assert world.run_pass().groups is world.run_pass().groups


def test_with_nothing_committed_nothing_is_written_or_asked_of_the_target(world: World) -> None:
    world.source_groups.offsets["g"][X] = 100
    world.settle()
    writes = world.target_groups.writes
    for _ in range(3):
        assert world.run_pass(after=0.1).outcomes == ()
    assert world.target_groups.writes == writes


def test_sync_that_the_stream_brings_makes_the_answer_nearer(world: World) -> None:
    world.settle()
    world.reconcile.take_in([SyncSeen(1, "x", 0, 58, 48)], [])
    world.run_pass(after=REST)
    assert world.target_groups.offsets["g"][AX] == 49


class DeniedGroups(MemoryGroups):
    """Denies every commit while it is told to."""

    denies = True

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        if not self.denies:
            return super().commit(offsets)
        return {group: dict.fromkeys(wanted, DENIED) for group, wanted in offsets.items()}


def test_group_that_may_not_be_written_and_is_gone_is_refused_no_more() -> None:
    world = world_of_groups(DeniedGroups("b", logs={AX: LogRange(0, 90)}))
    for _ in range(3):
        report = world.run_pass(after=0.2)
    assert report.plan.refused
    world.source_groups.offsets.clear()
    for _ in range(2):
        report = world.run_pass(everything=True, after=61.0)
    assert not report.plan.refused


def test_group_that_may_not_be_written_is_tried_within_a_minute_and_asks_for_no_pass_that_does_nothing() -> None:
    target = DeniedGroups("b", logs={AX: LogRange(0, 90)})
    world = world_of_groups(target)
    at_once, until = 0, world.clock.now + 3600.0
    while world.clock.now < until:
        report = world.run_pass(after=0.2)
        at_once += report.due <= world.clock.now
        world.clock.now = max(world.clock.now, report.due)
    target.denies, granted = False, world.clock.now
    while not target.offsets:
        world.clock.now = max(world.clock.now, world.run_pass(after=0.2).due)
    assert world.clock.now - granted <= 61.0
    assert at_once <= 61, "more than the one that follows each full comparison"


def test_group_with_members_on_the_target_is_left_alone(world: World) -> None:
    world.target_groups.active["g"] = 1
    assert world.run_pass().outcomes == ()
    assert verdicts(world) == {Verdict.GROUP_ACTIVE: 1}
    world.target_groups.active.clear()
    world.run_pass(after=REST)
    assert world.target_groups.offsets["g"][AX] == 31


def test_group_that_is_further_on_is_never_moved_back(world: World) -> None:
    world.target_groups.offsets["g"] = {AX: 77}
    assert world.run_pass().outcomes == ()
    assert verdicts(world) == {Verdict.TARGET_AHEAD: 1}
    assert world.target_groups.offsets["g"] == {AX: 77}


class WakesUp(MemoryGroups):
    """Its groups get a member after they were looked at once."""

    looks = 0

    def members(self, groups):  # type: ignore[no-untyped-def]  # as MemoryGroups has it
        self.looks += 1
        self.active = {"g": 1} if self.looks > 1 else {}
        return super().members(groups)


def test_group_that_woke_up_since_it_was_planned_is_left_alone(world: World) -> None:
    world.target_groups = WakesUp("b", logs={AX: LogRange(0, 90)})
    world.restart()
    (outcome,) = world.run_pass().outcomes
    assert outcome.error is not None
    assert outcome.error.code == "GROUP_ACTIVE"
    assert "g" not in world.target_groups.offsets


def test_topic_recreated_between_two_passes_is_not_written_by_what_was_known_of_the_old_one(world: World) -> None:
    world.settle()
    world.target_groups.ids["a.x"] = "another"
    world.reconcile.take_in([SyncSeen(1, "x", 0, 65, 55)], [])
    world.source_groups.offsets["g"][X] = 70
    assert world.run_pass().outcomes == ()
    assert verdicts(world) == {Verdict.NO_OFFSET_SYNC: 1}


@pytest.mark.parametrize(
    ("end", "committed", "verdict", "there"),
    [
        (50, 10, Verdict.NO_OFFSET_SYNC, 31),
        (200, 10, Verdict.NO_OFFSET_SYNC, 31),
        # A copy that is longer than its source: a leader that is cut off looks the same.
        (50, 50, Verdict.NO_OFFSET_SYNC, 31),
        # The copy still ends at 90: whatever MM2 copies of the new topic lies behind that.
        (100, 100, Verdict.SYNCED, 90),
        (200, 200, Verdict.SYNCED, 90),
    ],
)
def test_group_of_a_topic_that_was_recreated_while_no_job_ran_waits_for_a_sync_unless_it_has_read_all(
    world: World, end: int, committed: int, verdict: Verdict, there: int
) -> None:
    recreate_while_no_job_runs(world, end, committed)
    assert verdicts(world) == {verdict: 1}
    assert world.target_groups.offsets == {"g": {AX: there}}


def test_group_that_has_read_all_of_a_recreated_topic_goes_on_at_the_end_from_its_first_sync_on(world: World) -> None:
    recreate_while_no_job_runs(world, end=50, committed=50)
    world.target_groups.logs[AX] = LogRange(0, 120)
    world.reconcile.take_in([SyncSeen(1, "x", 0, 20, 90)], [])
    world.run_pass(everything=True)
    assert verdicts(world) == {Verdict.SYNCED: 1}
    assert world.target_groups.offsets == {"g": {AX: 120}}


def recreate_while_no_job_runs(world: World, end: int, committed: int) -> None:
    """The source's topic, after the group got offset 31 on the target."""
    world.run_pass(everything=True)
    assert world.target_groups.offsets == {"g": {AX: 31}}
    world.source_groups.ids["x"] = "another"
    world.source_groups.logs[X] = LogRange(0, end)
    world.source_groups.offsets["g"][X] = committed
    world.restart()
    world.run_pass(everything=True)


def test_restart_goes_on_with_what_was_known_though_mm2s_topic_was_compacted(world: World) -> None:
    world.settle()
    world.run_pass(everything=True)
    world.source.topics[SYNCS].records[:] = [(b"gone", b"")]
    world.restart()
    world.source_groups.offsets["g"][X] = 70
    world.run_pass()
    assert verdicts(world) == {Verdict.SYNCED: 1}


def test_what_came_since_the_last_comparison_is_saved_at_the_end(world: World) -> None:
    world.settle()
    world.reconcile.take_in([SyncSeen(1, "x", 0, 58, 48)], [])
    world.reconcile.close()
    ((where, history),) = stored_histories(world.ledger())
    assert (where, history.latest) == (X, (58, 48))


def test_history_is_kept_where_groups_are_not_synced() -> None:
    world = world_of_groups()
    world.settings = flow_settings(enabled=[Kind.TOPIC])
    world.restart()
    assert world.run_pass().groups is None
    assert world.target_groups.offsets == {}
    assert list(world.ledger().histories()) == [X]


def test_checkpoints_are_emitted_in_mm2s_format_once_each() -> None:
    world = world_of_groups(emit_checkpoints=True)
    for _ in range(3):
        world.run_pass()
    (record,) = world.target.read_log(world.settings.internal.checkpoints)
    checkpoint = decode_checkpoint(*record)
    assert (checkpoint.group, checkpoint.topic_partition) == ("g", AX)
    assert (checkpoint.upstream_offset, checkpoint.downstream_offset) == (60, 31)


def test_first_offset_of_a_group_is_audited_and_its_moving_on_is_not(world: World) -> None:
    world.run_pass()
    world.source_groups.offsets["g"][X] = 100
    world.run_pass()
    assert [(event.kind, event.op, event.after) for event in world.events()] == [("group-offset", "create", "31")]


def test_partition_that_the_target_lacks_gets_its_verdict(world: World) -> None:
    world.target_groups.logs.pop(AX)
    assert verdicts(world) == {Verdict.TOPIC_MISSING: 1}


def test_group_that_has_just_committed_does_not_wait_for_those_that_are_compared_again(world: World) -> None:
    world.source_groups.offsets = {f"g{number:03}": {X: 60} for number in range(300)}
    world.run_pass()
    assert len(world.target_groups.offsets) == 300
    world.run_pass(everything=True)
    world.source_groups.offsets["g299"][X] = 100
    world.run_pass(everything=True)
    assert world.target_groups.offsets["g299"][AX] == 90


def test_offsets_of_thousands_of_groups_are_written_after_one_look_at_the_target() -> None:
    listed: list[int] = []

    class Counted(MemoryGroups):
        def members(self, groups):  # type: ignore[no-untyped-def]  # as MemoryGroups has it
            listed.append(len(groups))
            return super().members(groups)

    many = {f"g{number}": {X: 60} for number in range(2000)}
    world = world_of_groups()
    world.source_groups.offsets, world.target_groups = many, Counted("b", logs={AX: LogRange(0, 90)})
    world.restart()
    assert len(world.run_pass(everything=True).outcomes) == LEAST_IN_A_PASS
    assert len(listed) == 2
