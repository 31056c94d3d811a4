"""What `lockstep offsets` says: a row for each group and partition, an offset that skips nothing, a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from sinks.faults import ItemFault
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.direction import Direction, GroupOffset, count_verdicts
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.mirror_records import MirrorTopics
from sinks.kinds.offsets.polled_groups import chosen_groups
from sinks.kinds.offsets.survey import replicated_offsets, survey_offsets, without_offset_there
from sinks.kinds.offsets.verdicts import Verdict
from sinks.kinds.shared_listings import list_both
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Change, Kind
from streaming.mm2.codec import encode_record
from streaming.mm2.records import Checkpoint, OffsetSync, TopicPartition
from streaming.mm2.replication_policy import IdentityReplicationPolicy
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_groups import MemoryGroups
from tests.sinks.builders import flow_settings, put_topic

X, AX = TopicPartition("x", 0), TopicPartition("a.x", 0)


@dataclass
class Stage:
    """x on a with offsets 0 to 100, copied to a.x as 0 to 90; the group g at 100."""

    settings: FlowSettings = field(default_factory=flow_settings)
    a: MemoryCluster = field(default_factory=lambda: MemoryCluster("a"))
    b: MemoryCluster = field(default_factory=lambda: MemoryCluster("b"))
    on_a: MemoryGroups = field(default_factory=lambda: MemoryGroups("a", {"g": {X: 100}}, logs={X: LogRange(0, 100)}))
    on_b: MemoryGroups = field(default_factory=lambda: MemoryGroups("b", logs={AX: LogRange(0, 90)}))

    def __post_init__(self) -> None:
        put_topic(self.a, "x")
        put_topic(self.b, "a.x")

    def sync(self, upstream: int, downstream: int) -> None:
        topic = self.settings.internal.offset_syncs
        self.a.create_log(topic, 1, {})
        self.a.append_log(topic, [encode_record(OffsetSync(X, upstream, downstream))])

    def rows(self, *groups: str, memory: OffsetMemory | None = None) -> list[GroupOffset]:
        direction = self.direction()
        chosen = groups or chosen_groups(self.settings, direction.here.names())
        return survey_offsets(direction, chosen, memory or self.memory())

    def direction(self) -> Direction:
        listed = list_both(self.settings, self.a, self.b)
        return Direction(self.settings, self.on_a, self.on_b, listed)

    def memory(self) -> OffsetMemory:
        internal, memory = self.settings.internal, OffsetMemory()
        syncs_on = self.a if internal.offset_syncs_cluster == "a" else self.b
        ledger = Ledger(internal.ledger, self.b, None, 1)
        MirrorReading(memory, MirrorTopics(internal.offset_syncs, syncs_on, internal.checkpoints, self.b)).load(ledger)
        return memory

    def row(self) -> dict[str, object]:
        (found,) = self.rows()
        return found.as_json()


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_group_at_the_end_goes_on_at_the_targets_end(stage: Stage) -> None:
    assert stage.row() == {
        "group": "g",
        "topic": "a.x",
        "partition": 0,
        "upstream_offset": 100,
        "downstream_offset": 90,
        "method": "tip",
        "error_bound": 100,
        "verdict": "PENDING",
        "reason": "to be written: the group is at no offset on b",
    }


@pytest.mark.parametrize("syncs", [(), ((0, 0), (90, 90)), ((0, 0), (100, 100))])
def test_group_at_the_end_that_a_cut_off_leader_tells_skips_nothing_that_mm2_copied_since(
    stage: Stage, syncs: tuple[tuple[int, int], ...]
) -> None:
    for sync in syncs:
        stage.sync(*sync)
    stage.on_b.logs[AX] = LogRange(0, 150)
    (row,) = stage.rows()
    assert (row.goes_on_at or 0) <= 100


def test_group_whose_offsets_cannot_be_read_has_the_verdict_error_with_the_reason(stage: Stage) -> None:
    stage.on_a.offsets["h"] = {X: 1}
    stage.on_a.unreadable["h"] = ItemFault("GROUP_AUTHORIZATION_FAILED", "Group authorization failed.")
    read, unread = stage.rows()
    assert (read.group, read.judgement.verdict) == ("g", Verdict.PENDING)
    assert unread.as_json() == {
        "group": "h",
        "topic": None,
        "partition": None,
        "upstream_offset": None,
        "downstream_offset": None,
        "method": None,
        "error_bound": None,
        "verdict": "ERROR",
        "reason": "the group's offsets on a could not be read: GROUP_AUTHORIZATION_FAILED: DESCRIBE on GROUP h is "
        "missing",
    }
    assert unread.change is None


def test_offset_that_is_not_to_be_written_says_so(stage: Stage) -> None:
    stage.settings = flow_settings(enabled=[Kind.TOPIC])
    assert stage.row()["reason"] == "sync.group.offsets.enabled is false: the offset is not written"
    assert [row.change for row in stage.rows()] == [None]


def test_group_behind_the_end_of_its_log_tells_of_a_topic_that_was_made_again(stage: Stage) -> None:
    stage.on_a.logs[X] = LogRange(0, 50)
    row = stage.row()
    assert row["verdict"] == "ERROR"
    assert "truncated or recreated" in str(row["reason"])


def test_group_that_an_emptied_source_has_overtaken_is_not_called_a_group_of_an_empty_one(stage: Stage) -> None:
    stage.on_a.logs[X] = LogRange(100, 100)
    stage.on_a.offsets["g"][X] = 20
    assert stage.row()["verdict"] == "NO_OFFSET_SYNC"
    stage.sync(40, 30)
    assert stage.row()["verdict"] == "TOO_OLD"


def test_on_the_way_back_a_group_goes_on_at_the_source_behind_what_it_read_on_the_target(stage: Stage) -> None:
    stage.sync(40, 30)
    stage.sync(80, 70)
    stage.on_b.offsets["g"] = {AX: 75}
    stage.on_a.offsets["g"] = {X: 20}
    listed = list_both(stage.settings, stage.a, stage.b)
    direction = Direction(stage.settings, stage.on_a, stage.on_b, listed, back=True)
    (row,) = survey_offsets(direction, ["g"], stage.memory())
    assert row.as_json() | {"reason": ""} == {
        "group": "g",
        "topic": "x",
        "partition": 0,
        "upstream_offset": 81,
        "downstream_offset": 75,
        "method": "conservative",
        "error_bound": 19,
        "verdict": "PENDING",
        "reason": "",
    }
    assert row.change == Change(Kind.GROUP_OFFSET, ("g", "x", "0"), 20, 81)


def test_group_behind_goes_on_at_the_last_sync_before_it(stage: Stage) -> None:
    stage.on_a.offsets["g"][X] = 60
    stage.sync(40, 30)
    stage.sync(80, 70)
    row = stage.row()
    assert (row["downstream_offset"], row["method"]) == (31, "conservative")


def test_mm2s_checkpoint_is_taken_where_it_lies_further_on(stage: Stage) -> None:
    stage.on_a.offsets["g"][X] = 60
    stage.sync(40, 30)
    topic = stage.settings.internal.checkpoints
    stage.b.create_log(topic, 1, {})
    stage.b.append_log(topic, [encode_record(Checkpoint("g", AX, 60, 50, "")), (b"junk", b"junk")])
    row = stage.row()
    assert (row["downstream_offset"], row["method"]) == (50, "checkpoint")


def test_group_before_all_that_is_known_says_so(stage: Stage) -> None:
    stage.on_a.offsets["g"][X] = 10
    assert stage.row()["verdict"] == "NO_OFFSET_SYNC"
    stage.sync(40, 30)
    assert stage.row()["verdict"] == "TOO_OLD"


def test_command_that_looks_once_does_not_use_what_the_ledger_has_of_a_topic_that_was_recreated(stage: Stage) -> None:
    stage.on_a.offsets["g"][X] = 60
    stage.sync(40, 30)
    memory = stage.memory()
    memory.recognize({"x": "a.x"}, {"x": "id-of-x"}, {"a.x": "id-of-a.x"})
    memory.save(Ledger(stage.settings.internal.ledger, stage.b, stage.b, 1), {"x": 1})
    assert stage.row()["downstream_offset"] == 31
    stage.on_b.ids["a.x"] = "another"
    assert stage.row()["verdict"] == "NO_OFFSET_SYNC"


def test_offset_that_is_there_already_is_synced(stage: Stage) -> None:
    stage.on_b.offsets["g"] = {AX: 90}
    assert stage.row()["verdict"] == "SYNCED"


def test_group_that_works_on_the_target_is_active(stage: Stage) -> None:
    stage.on_b.active["g"] = 2
    assert stage.row()["verdict"] == "GROUP_ACTIVE"


def test_partition_that_the_target_lacks_is_missing(stage: Stage) -> None:
    del stage.on_b.logs[AX]
    assert stage.row()["verdict"] == "TOPIC_MISSING"


def test_groups_are_those_that_the_filter_lets_through_with_offsets_on_replicated_topics(stage: Stage) -> None:
    stage.settings = flow_settings({"topics.exclude": "y", "groups.exclude": "h"})
    put_topic(stage.a, "y")
    stage.on_a.offsets |= {"h": {X: 1}, "only-y": {TopicPartition("y", 0): 1}, "none": {}}
    assert chosen_groups(stage.settings, stage.on_a.names()) == ["g", "none", "only-y"]
    assert replicated_offsets(stage.direction(), ["g", "none", "only-y"]).items == {"g": {X: 100}}


def test_only_the_groups_asked_for_are_looked_at(stage: Stage) -> None:
    stage.on_a.offsets["h"] = {X: 1}
    assert [row.group for row in stage.rows("h")] == ["h"]
    assert stage.rows("nobody") == []


def test_where_names_do_not_tell_who_writes_a_topic_its_end_proves_nothing() -> None:
    policy = IdentityReplicationPolicy()
    policy.configure({})
    on_b = MemoryGroups("b", logs={X: LogRange(0, 90)})
    stage = Stage(flow_settings(policy=policy), on_b=on_b)
    put_topic(stage.b, "x")
    assert stage.row()["verdict"] == "NO_OFFSET_SYNC"


def test_partitions_of_groups_without_an_offset_on_the_target_are_counted(stage: Stage) -> None:
    stage.on_a.offsets["h"] = {X: 7}
    stage.on_b.offsets["h"] = {AX: 7}
    assert without_offset_there(stage.direction(), ["g", "h"]) == 1
    stage.on_b.unreadable["g"] = ItemFault("COORDINATOR_NOT_AVAILABLE", "")
    assert without_offset_there(stage.direction(), ["g", "h"]) == stage.on_b.unreadable["g"]
    stage.on_b.unreadable["h"] = ItemFault("GROUP_AUTHORIZATION_FAILED", "Group authorization failed.")
    assert without_offset_there(stage.direction(), ["g", "h"]) == stage.on_b.unreadable["h"]


def test_verdicts_are_counted(stage: Stage) -> None:
    counts = count_verdicts(stage.rows())
    assert counts.pop(Verdict.PENDING) == 1
    assert set(counts.values()) == {0}


RETENTION = [
    # Group, its syncs, the source's log, the target's log: where it goes on, and about how many records it skips.
    (30, [(0, 0), (20, 20)], (0, 100), (80, 100), 80, 50),
    (30, [(0, 0), (20, 20)], (0, 100), (25, 100), 25, 0),
    (85, [(0, 0), (20, 20)], (0, 100), (80, 100), 80, 0),
    (30, [(0, 0), (20, 20)], (80, 100), (80, 100), 80, 0),
    (30, [(0, 0), (20, 20)], (70, 100), (80, 100), 80, 10),
    (100, [(0, 0), (20, 20)], (0, 100), (100, 100), 100, 0),
    (100, [(0, 0)], (100, 100), (90, 100), 100, 0),
]


@pytest.mark.parametrize(("at", "syncs", "source", "target", "goes_on_at", "skipped"), RETENTION)
def test_a_log_that_lost_what_the_source_still_has_is_ahead_of_the_group_by_about_that(
    at: int,
    syncs: list[tuple[int, int]],
    source: tuple[int, int],
    target: tuple[int, int],
    goes_on_at: int,
    skipped: int,
) -> None:
    stage = Stage()
    stage.on_a.offsets["g"] = {X: at}
    for sync in syncs:
        stage.sync(*sync)
    stage.on_a.logs[X], stage.on_b.logs[AX] = LogRange(*source), LogRange(*target)
    (row,) = stage.rows()
    assert (row.goes_on_at, row.judgement.verdict) == (
        goes_on_at,
        Verdict.TARGET_AHEAD if skipped else Verdict.PENDING,
    )
    assert (f"about {skipped} records" in row.judgement.reason) is bool(skipped)
    stage.on_b.offsets["g"] = {AX: goes_on_at}
    (written,) = stage.rows()
    assert written.judgement.verdict is (Verdict.TARGET_AHEAD if skipped else Verdict.SYNCED)
    assert not written.judgement.writes


def test_the_way_back_over_a_log_start_skips_records_too() -> None:
    stage = Stage()
    stage.sync(0, 0)
    stage.sync(20, 20)
    del stage.on_a.offsets["g"]
    stage.on_b.offsets["g"] = {AX: 20}
    stage.on_a.logs[X] = LogRange(95, 100)
    listed = list_both(stage.settings, stage.a, stage.b)
    back = Direction(stage.settings, stage.on_a, stage.on_b, listed, back=True)
    (row,) = survey_offsets(back, ["g"], stage.memory())
    assert (row.goes_on_at, row.judgement.verdict) == (95, Verdict.TARGET_AHEAD)
    assert "about 75 records" in row.judgement.reason


def test_a_group_at_the_end_goes_on_at_the_end_of_an_empty_copy_whoever_writes_it() -> None:
    stage = Stage(settings=flow_settings(policy=IdentityReplicationPolicy()))
    put_topic(stage.b, "x")
    stage.on_a.logs[X], stage.on_b.logs[X] = LogRange(100, 100), LogRange(0, 0)
    (row,) = stage.rows()
    assert (row.goes_on_at, row.judgement.verdict) == (0, Verdict.PENDING)
