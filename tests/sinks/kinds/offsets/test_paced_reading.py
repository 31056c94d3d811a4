"""What MM2 wrote and the job does not know is read in pieces: other kinds go on, no group is judged by half of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from sinks.engine.report import Report
from sinks.faults import ClusterUnreachable
from sinks.kafka.ports.cluster import CHUNK, LogChunk
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets import controller
from sinks.kinds.offsets.memory import MOST_WAITING_RECORDS, OffsetMemory
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.mirror_records import MirrorTopics
from sinks.kinds.offsets.stored_memory import stored_histories
from sinks.kinds.offsets.sync_history import Pair
from sinks.model.changes import Kind
from streaming.hints import SyncSeen
from streaming.mm2.codec import encode_record
from streaming.mm2.records import Checkpoint, OffsetSync, TopicPartition
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_groups import MemoryGroups
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.kinds.offsets import remembering
from tests.sinks.kinds.offsets.remembering import CHECKPOINTS, SYNCS

X, AX = TopicPartition("x", 0), TopicPartition("a.x", 0)
SYNC = 2 * CHUNK
"""How many are in the topic: two pieces, and MM2 sent again in the second."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """The group g at 60 of x on a; a pass reads one piece of a long offset-syncs topic."""
    monkeypatch.setattr(controller, "READS_FOR", 0.0)
    world = World(
        flow_settings(),
        source_groups=MemoryGroups("a", {"g": {X: 60}}, logs={X: LogRange(0, 100)}),
        target_groups=MemoryGroups("b", logs={AX: LogRange(0, 200)}),
    )
    put_topic(world.source, "x")
    put_topic(world.target, "a.x")
    world.source.create_log(SYNCS, 1, {})
    early = [encode_record(OffsetSync(X, 50, 50))] * CHUNK
    world.source.append_log(SYNCS, [*early, *[encode_record(OffsetSync(X, 40, 130))] * CHUNK])
    return world


def reasons(report: Report) -> list[str]:
    return [error.reason for error in report.plan.errors if error.kind is Kind.GROUP_OFFSET]


def test_other_kinds_are_compared_and_no_offset_is_written_before_all_is_read(world: World) -> None:
    put_topic(world.source, "y")
    report = world.run_pass()
    assert "a.y" in world.target.topics
    assert world.target_groups.offsets == {}
    assert reasons(report) == [
        "MM2's offset-syncs are being read, 10,000 so far: no offset is written until they are read",
    ]


def test_groups_are_compared_as_soon_as_all_is_read_without_another_full_comparison(world: World) -> None:
    reports = [world.run_pass()]
    while reasons(reports[-1]):
        assert reports[-1].due <= world.clock.now, "the next pass has no reason"
        reports.append(world.run_pass(after=0.2))
    assert len(reports) == 3
    assert world.target_groups.offsets == {"g": {AX: 131}}, "the half of it would have said 51"


def test_checkpoints_are_read_in_pieces_as_well_and_the_reason_says_so(world: World) -> None:
    world.target.create_log(CHECKPOINTS, 1, {})
    world.target.append_log(CHECKPOINTS, [encode_record(Checkpoint("g", AX, 55, 55, ""))] * (2 * CHUNK))
    said = []
    while reason := reasons(world.run_pass(after=0.2)):
        said += reason
    assert said == [
        f"MM2's {read} so far: no offset is written until they are read"
        for read in (
            "offset-syncs are being read, 10,000",
            "offset-syncs are being read, 20,000",
            "checkpoints are being read, 10,000",
            "checkpoints are being read, 20,000",
        )
    ]
    assert world.target_groups.offsets == {"g": {AX: 131}}


def read_once(world: World) -> None:
    """Passes until nothing is left to be read, and groups are compared."""
    while reasons(world.run_pass(after=0.2)):
        pass
    assert world.target_groups.offsets == {"g": {AX: 131}}


def passes_until_read(world: World, report: Report) -> int:
    """Runs further passes with a reason each. No group is written before the last one."""
    before, passes = dict(world.target_groups.offsets), 0
    while reasons(report):
        assert world.target_groups.offsets == before
        assert report.due <= world.clock.now, "the next pass has no reason"
        report, passes = world.run_pass(after=0.2), passes + 1
    return passes


def test_full_comparison_reads_in_pieces_what_the_stream_missed_and_other_kinds_go_on(world: World) -> None:
    read_once(world)
    world.source.append_log(SYNCS, [encode_record(OffsetSync(X, 60, 150))] * (2 * CHUNK))
    put_topic(world.source, "y")
    world.source_groups.offsets["g"] = {X: 61}
    report = world.run_pass(everything=True, after=70.0)
    assert "a.y" in world.target.topics
    assert reasons(report) == [
        "MM2's offset-syncs are being read, 30,000 so far: no offset is written until they are read"
    ]
    assert passes_until_read(world, report) == 2
    assert world.target_groups.offsets == {"g": {AX: 151}}


def test_what_the_stream_told_too_much_of_is_read_in_pieces_and_other_kinds_go_on(world: World) -> None:
    read_once(world)
    world.source.append_log(SYNCS, [encode_record(OffsetSync(X, 60, 150))] * (2 * CHUNK))
    put_topic(world.source, "y")
    world.source_groups.offsets["g"] = {X: 61}
    world.reconcile.take_in([SyncSeen(SYNC, "x", 0, 60, 150)] * (MOST_WAITING_RECORDS + 1), [])
    report = world.run_pass(after=0.2)
    assert reasons(report) == [
        "MM2's offset-syncs are being read, 30,000 so far: no offset is written until they are read"
    ]
    assert passes_until_read(world, report) == 2
    assert world.target_groups.offsets == {"g": {AX: 151}}


def test_job_that_ends_in_the_middle_leaves_the_rest_to_the_next_one(world: World) -> None:
    read_once(world)
    later = [encode_record(OffsetSync(X, 60, 150))] * CHUNK
    world.source.append_log(SYNCS, [*later, *later])
    world.run_pass(everything=True, after=70.0)
    world.reconcile.take_in([SyncSeen(3 * SYNC, "x", 0, 80, 170)], [])
    (groups,) = (one for one in world.controllers if Kind.GROUP_OFFSET in one.kinds)
    groups.close()
    (stored,) = world.ledger().histories()
    known = dict(stored_histories(world.ledger()))[stored]
    assert known.position == 3 * CHUNK - 1


class Goes(MemoryCluster):
    """Goes away behind the first piece of a log, as often as it is told to; counts from where it was read."""

    def __init__(self, alias: str) -> None:
        super().__init__(alias)
        self.failures, self.begun = 0, list[int]()

    def read_log_in_chunks(self, topic: str, position: int) -> Iterator[LogChunk]:
        self.begun.append(position)
        for chunk in super().read_log_in_chunks(topic, position):
            yield chunk
            if self.failures:
                self.failures -= 1
                raise ClusterUnreachable("cluster b: went away")


@pytest.mark.parametrize("recreated", [False, True], ids=["same topic", "recreated meanwhile"])
def test_checkpoints_go_on_where_their_reading_failed_unless_the_topic_is_another_one(recreated: bool) -> None:
    kept, goes = remembering.World(), Goes("b")
    kept.b = goes
    goes.create_log(CHECKPOINTS, 1, {})
    goes.append_log(CHECKPOINTS, [encode_record(Checkpoint("old", AX, 5, 5, ""))] * CHUNK)
    remembering.checkpoints(kept, (20, 15))
    memory, goes.failures = OffsetMemory(), 1
    topics = MirrorTopics(SYNCS, kept.a, CHECKPOINTS, goes)
    with pytest.raises(ClusterUnreachable):
        MirrorReading(memory, topics).load(kept.ledger)
    if recreated:
        goes.delete_topics([CHECKPOINTS])
        remembering.checkpoints(kept, (30, 25))
    MirrorReading(memory, topics).load(kept.ledger)
    assert goes.begun == [0, 0 if recreated else CHUNK]
    newest = {("g", AX): Pair(30, 25)} if recreated else {("old", AX): Pair(5, 5), ("g", AX): Pair(20, 15)}
    assert memory.checkpoints.newest == newest


def test_reading_that_failed_goes_on_where_it_was_and_loses_nothing() -> None:
    kept = remembering.World()
    kept.sync((10, 5))
    kept.begun().save(kept.ledger, {"x": 1})
    kept.sync((20, 15), (30, 25))
    kept.b.create_log(CHECKPOINTS, 1, {})
    memory, broken = OffsetMemory(), BreaksOff("b")
    topics = MirrorTopics(SYNCS, kept.a, CHECKPOINTS, broken)
    with pytest.raises(ClusterUnreachable):
        MirrorReading(memory, topics).load(kept.ledger)
    broken.works = True
    MirrorReading(memory, topics).load(kept.ledger)
    assert remembering.pairs(memory) == [Pair(10, 5), Pair(20, 15), Pair(30, 25)]


class BreaksOff(MemoryCluster):
    """Does not answer while its log is read."""

    works = False

    def read_log_in_chunks(self, topic: str, position: int) -> Iterator[LogChunk]:
        if not self.works:
            raise ClusterUnreachable("cluster b: went away")
        return super().read_log_in_chunks(topic, position)


def test_flow_that_may_not_write_its_ledger_any_more_ends_without_a_defect(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    while reasons(world.run_pass(after=0.2)):
        pass
    world.reconcile.take_in([SyncSeen(SYNC, "x", 0, 70, 160)], [])
    world.target.reachable = False
    (groups,) = (one for one in world.controllers if Kind.GROUP_OFFSET in one.kinds)
    with caplog.at_level(logging.WARNING):
        groups.close()
    assert "could not save MM2's latest offset-syncs" in caplog.text


def test_too_much_that_is_told_during_a_reading_keeps_groups_from_being_judged_by_what_lies_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_once(world)
    world.source.append_log(SYNCS, [encode_record(OffsetSync(X, 60, 150))] * SYNC)
    world.source_groups.offsets["g"] = {X: 61}
    read = world.source.read_log_in_chunks
    # A reading ends where the log ended when it began.
    monkeypatch.setattr(world.source, "read_log_in_chunks", lambda name, position: iter([*read(name, position)]))
    world.run_pass(everything=True, after=70.0)
    # The target's log was truncated at 120, and MM2 went on from there.
    truncated = OffsetSync(X, 62, 120)
    world.source.append_log(SYNCS, [encode_record(truncated)])
    told = [SyncSeen(2 * SYNC, "x", 0, 62, 120)]
    world.reconcile.take_in(told * (MOST_WAITING_RECORDS + 1), [])
    for _ in range(9):
        world.run_pass(after=0.2)
    assert world.target_groups.offsets == {"g": {AX: 131}}
