"""What retention takes before MM2 copied it is reported until the operator has acknowledged it, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sinks.every_kind.controller import PassContext
from sinks.failover import lost_before_copying, source_end_offsets
from sinks.failover.commands import check_nothing_lost, cutover
from sinks.failover.lost_before_copying import (
    ANY_OFFSET,
    FIRST_OFFSETS,
    Found,
    Lost,
    acknowledged,
    acknowledged_as_shown,
    by_topic,
    entries_of,
    find_lost,
    kept_lost,
    lost_as_json,
    lost_by_now,
    merged,
    unacknowledged,
)
from sinks.failover.record_matching import ReadLimits
from sinks.failover.source_end_offsets import SourceEndOffsetStore
from sinks.faults import ClusterUnreachable, LedgerUntrusted
from sinks.kinds.offsets.log_tails import Missed
from sinks.kinds.offsets.sync_history import Histories
from sinks.ledger.failover_record import NotNow
from sinks.ledger.kept_end_offsets import KnownPosition, LatestSync, kept_end_offsets
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from streaming.mm2.records import TopicPartition
from tests.inline_work import inline
from tests.memory.memory_records import MemoryLog
from tests.sinks.builders import put_topic
from tests.sinks.failover.scenes import Stage, look, stage

X0, X1, COPY = TopicPartition("x", 0), TopicPartition("x", 1), TopicPartition("a.x", 0)
LAG = 4
"""Records between two offset-syncs, where nothing else makes one."""


@dataclass
class LossyMirror:
    """Partition x-0, which is written, copied by an MM2 that dies and begins again, and cut by retention."""

    built: Stage = field(default_factory=stage)
    now: float = 1000.0
    reached: int = 10
    committed: int = 10

    def __post_init__(self) -> None:
        self.built.mirrors = False
        self.here, self.there = self.built.here.logs[X0], self.built.there.logs[COPY]
        self.histories, self._syncs = Histories(), 0
        self._last, self._previous = -1000, 9
        self._sync(9, 9)
        self.histories.are_whole = True
        self.restart_job()
        self.look()

    def write(self, records: int) -> None:
        self.built.write("x", 0, records)

    def mark(self) -> None:
        """The end of a transaction, while MM2 stands at it."""
        self.here.skip()

    def copy(self, records: int) -> None:
        """MM2 copies so many, from the first that is there still."""
        for record in [one for one in self.here.records if one.offset >= self.reached][:records]:
            place = self.there.end
            self.there.append(record.key, record.value, record.timestamp)
            if place - self._last > LAG or record.offset - self._previous != 1:
                self._sync(record.offset, place)
            self._previous, self.reached = record.offset, record.offset + 1

    def _sync(self, upstream: int, downstream: int) -> None:
        self.histories.take(TopicPartition("x", 0), upstream, downstream, self._syncs)
        self._last, self._syncs = downstream, self._syncs + 1

    def commit(self) -> None:
        self.committed = self.reached

    def kill(self) -> None:
        """MM2 dies, and begins again where it had committed."""
        self.reached, self._last, self._previous = self.committed, -1000, -1

    def expire(self, records: int) -> None:
        """Retention takes the oldest ones, copied or not."""
        self.here.cut(min(self.here.start + records, self.here.end))

    def restart_job(self) -> None:
        """Another process goes on with what the ledger has."""
        self.job = SourceEndOffsetStore(
            self.built.here,
            5.0,
            lambda: self.now * 1000,
            inline,
            syncs=self.histories.latest,
            target=self.built.there,
        )

    def look(self, seconds: float = 5.0) -> None:
        """A pass of the job."""
        self.now += seconds
        look(self.built, self.now, self.job)

    @property
    def reported(self) -> dict[TopicPartition, Lost]:
        return kept_lost(self.built.ledger())

    @property
    def lost(self) -> int:
        """Records that are on neither side."""
        there = {record.value for record in self.there.records}
        return sum(b"%d" % offset not in there for offset in range(self.here.start))


few = st.integers(1, 9)
Step = Callable[[LossyMirror], None]
STEPS: list[st.SearchStrategy[Step]] = [
    st.builds(lambda number: lambda one: one.write(number), few),
    st.builds(lambda number: lambda one: one.copy(number), few),
    st.builds(lambda number: lambda one: one.expire(number), few),
    st.builds(lambda seconds: lambda one: one.look(seconds), st.sampled_from([5.0, 70.0])),
    st.just(LossyMirror.commit),
    st.just(LossyMirror.kill),
    st.just(LossyMirror.restart_job),
]


def has_gone_on(mirror: LossyMirror) -> None:
    """MM2 goes on behind what it lost, before the job asks where all logs begin."""
    mirror.write(3)
    mirror.look()
    mirror.expire(100)
    mirror.write(2)
    mirror.copy(2)


def many_at_once(mirror: LossyMirror) -> None:
    """The same, and more partitions are overtaken than are looked at in one reading."""
    has_gone_on(mirror)
    mirror.built.there.reachable = False
    mirror.look()
    mirror.built.there.reachable = True
    mirror.write(1)
    mirror.copy(1)


@settings(max_examples=300)
@example([has_gone_on])
@example([many_at_once])
@given(st.lists(st.one_of(STEPS), max_size=30))
def test_lost_records_are_reported_and_never_too_few_of_them_and_nothing_else_is(taken: list[Step]) -> None:
    mirror = LossyMirror()
    for step in taken:
        step(mirror)
    mirror.look()
    mirror.look(70.0)
    reported = mirror.reported.get(X0)
    if mirror.lost:
        assert reported is not None
        assert reported.unknown or reported.records >= mirror.lost
    else:
        assert reported is None


def test_number_is_exact_where_mm2_sent_nothing_again() -> None:
    mirror = LossyMirror()
    mirror.write(50)
    mirror.expire(60)
    mirror.write(7)
    mirror.copy(100)
    mirror.look()
    assert mirror.reported[X0].records == 50
    assert mirror.reported[X0].at_ms == mirror.now * 1000


def test_retention_that_is_faster_while_no_job_runs_is_found_at_the_next_start() -> None:
    mirror = LossyMirror()
    mirror.write(20)
    mirror.copy(5)
    mirror.expire(25)
    mirror.copy(100)
    mirror.restart_job()
    mirror.look()
    assert mirror.reported[X0].records == 10


def test_source_that_retention_has_emptied_lost_what_was_not_copied() -> None:
    mirror = LossyMirror()
    mirror.write(5)
    mirror.copy(2)
    mirror.expire(100)
    mirror.look(70.0)
    assert mirror.reported[X0].records == 3


def test_records_that_are_lost_twice_are_counted_together_and_once_each() -> None:
    mirror = LossyMirror()
    for _ in range(2):
        mirror.write(5)
        mirror.expire(100)
        mirror.look(70.0)
        mirror.restart_job()
        mirror.look(70.0)
    assert mirror.reported[X0].records == 10


def test_compaction_that_took_records_is_no_loss() -> None:
    mirror = LossyMirror()
    mirror.write(9)
    mirror.here.lose(*range(10, 19))
    mirror.write(3)
    mirror.copy(100)
    mirror.look(70.0)
    assert mirror.reported == {}


def test_of_a_compacted_topic_whose_log_begins_later_it_is_not_known() -> None:
    mirror = LossyMirror()
    mirror.built.here.compacting.add("x")
    mirror.write(5)
    mirror.expire(100)
    mirror.look(70.0)
    assert (mirror.reported[X0].compacted, mirror.reported[X0].unknown) == (True, False)
    check_nothing_lost(mirror.built.scene())


def test_where_the_source_shows_no_record_behind_its_start_it_is_not_known() -> None:
    mirror = LossyMirror()
    mirror.write(5)
    mirror.here.skip(3).cut(15)
    mirror.look(70.0)
    assert mirror.reported[X0].unknown


def test_where_a_long_aborted_transaction_begins_the_source_it_is_not_known() -> None:
    mirror = LossyMirror()
    mirror.write(50)
    mirror.expire(60)
    mirror.here.skip(FIRST_OFFSETS + 100)
    mirror.write(80)
    mirror.copy(1000)
    mirror.look(70.0)
    assert mirror.reported[X0].unknown


@pytest.mark.parametrize(("looks", "records"), [(1, 50), (3, 0)])
def test_reading_that_was_cut_short_is_repeated_once(monkeypatch: pytest.MonkeyPatch, looks: int, records: int) -> None:
    mirror = LossyMirror()
    mirror.write(50)
    mirror.expire(60)
    mirror.write(80)
    mirror.copy(1000)
    with monkeypatch.context() as slow:
        slow.setattr(lost_before_copying, "NEW_COPIES_LIMITS", ReadLimits(most=1000, seconds=0.0))
        mirror.look()
        assert mirror.reported == {}
        for _ in range(looks - 1):
            mirror.look(70.0)
    mirror.look(70.0)
    mirror.look()
    assert (mirror.reported[X0].records, mirror.reported[X0].unknown) == (records, not records)


def test_copies_that_mm2_sent_again_do_not_stand_for_records_that_retention_took() -> None:
    mirror = LossyMirror()
    mirror.write(40)
    mirror.copy(40)
    mirror.look(70.0)
    mirror.kill()
    mirror.copy(40)
    mirror.write(30)
    mirror.expire(80)
    mirror.write(10)
    mirror.kill()
    mirror.copy(100)
    mirror.look(70.0)
    assert mirror.reported[X0].unknown


def test_topic_that_was_made_anew_lost_nothing() -> None:
    mirror = LossyMirror()
    mirror.built.here.logs[X0] = mirror.here = MemoryLog(start=4, end=4)
    mirror.write(3)
    mirror.look(70.0)
    assert mirror.reported == {}


def test_copy_that_was_made_anew_and_was_overtaken_lost_an_unknown_number() -> None:
    mirror = LossyMirror()
    mirror.write(5)
    mirror.built.there.logs[COPY] = MemoryLog()
    mirror.expire(100)
    mirror.look(70.0)
    assert (mirror.reported[X0].records, mirror.reported[X0].unknown) == (0, True)


def test_first_contact_with_a_log_that_begins_late_is_no_loss() -> None:
    built = stage()
    built.here.logs[X1].cut(7)
    job = SourceEndOffsetStore(built.here, 5.0, beside=inline, target=built.there)
    look(built, 1000.0, job)
    look(built, 1100.0, job)
    assert kept_lost(built.ledger()) == {}


@pytest.mark.parametrize("leaderless", [False, True])
@pytest.mark.parametrize("readings", [1, 4])
def test_first_contact_with_a_log_that_begins_late_and_has_no_copy_yet_is_no_loss(
    readings: int, leaderless: bool
) -> None:
    built, now, z0 = stage(), 1000.0, TopicPartition("z", 0)
    built.mirrors = False
    put_topic(built.world.source, "z")
    built.here.logs[z0] = MemoryLog(start=5000, end=5000)
    built.write("z", 0, 30)
    built.here.leaderless |= {z0} if leaderless else set()
    syncs = dict[TopicPartition, LatestSync]()
    job = SourceEndOffsetStore(built.here, 5.0, lambda: now * 1000, inline, lambda: dict(syncs), built.there)
    for _ in range(readings):
        look(built, now, job)
        now += 5
    built.here.leaderless.clear()
    look(built, now, job)
    assert kept_end_offsets(built.ledger())["z"].positions == (KnownPosition(5030, 0, 30),)
    put_topic(built.world.target, "a.z")
    built.there.logs[TopicPartition("a.z", 0)] = MemoryLog()
    built.copy()
    syncs[z0] = LatestSync(5000, 0)
    for _ in range(3):
        now += 70
        look(built, now, job)
    assert kept_lost(built.ledger()) == {}


@pytest.mark.parametrize(("topic", "reported"), [("app-repartition", False), ("app", True)])
def test_repartition_topics_from_which_kafka_streams_deletes_are_left_out(topic: str, reported: bool) -> None:
    built, where = stage(), TopicPartition(topic, 0)
    built.mirrors = False
    put_topic(built.world.source, topic)
    log = built.here.logs[where] = MemoryLog()
    job = SourceEndOffsetStore(
        built.here, 5.0, lambda: now * 1000, inline, lambda: {where: LatestSync(1, 1)}, built.there
    )
    now = 1000.0
    look(built, now, job)
    put_topic(built.world.target, f"a.{topic}")
    built.there.logs[TopicPartition(f"a.{topic}", 0)] = MemoryLog()
    built.write(topic, 0, 5)
    built.copy()
    log.skip(4).cut(9)
    for now in (1100.0, 1105.0):
        look(built, now, job)
    assert bool(kept_lost(built.ledger())) is reported


def test_loss_is_found_later_where_the_target_does_not_answer() -> None:
    mirror = LossyMirror()
    mirror.write(5)
    mirror.expire(100)
    mirror.built.there.reachable = False
    with suppress(ClusterUnreachable):
        mirror.look(70.0)
    mirror.built.there.reachable = True
    mirror.look()
    mirror.look()
    assert mirror.reported[X0].records == 5


@pytest.mark.parametrize("where", [X0, COPY])
@pytest.mark.parametrize("looks", [1, 5])
def test_loss_is_found_later_where_a_partition_has_no_leader(where: TopicPartition, looks: int) -> None:
    mirror = LossyMirror()
    reader = mirror.built.here if where == X0 else mirror.built.there
    mirror.write(50)
    mirror.expire(60)
    mirror.write(80)
    mirror.copy(1000)
    reader.leaderless.add(where)
    for _ in range(looks):
        mirror.look()
    assert mirror.reported == {}
    reader.leaderless.clear()
    mirror.look(70.0)
    mirror.look()
    assert mirror.reported[X0].records == 50


@pytest.mark.parametrize("where", [X0, COPY])
def test_partition_without_a_leader_is_not_taken_for_a_copy_that_became_shorter(where: TopicPartition) -> None:
    built = LossyMirror().built
    reader = built.here if where == X0 else built.there
    reader.leaderless.add(where)
    found = find_lost(built.here, built.there, {X0: KnownPosition(5, 5)}, {X0: COPY}, 1000)
    assert found == Found({}, {})


def test_partitions_without_a_leader_do_not_keep_the_job_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_end_offsets, "OVERTAKEN_AT_ONCE", 1)
    built, now, y0 = stage(), 1000.0, TopicPartition("y", 0)
    built.mirrors = False
    job = SourceEndOffsetStore(
        built.here, 5.0, lambda: now * 1000, inline, lambda: dict.fromkeys(at, LatestSync(9, 9)), built.there
    )
    at = [X0, y0]
    look(built, now, job)
    for where in at:
        built.write(where.topic, where.partition, 5)
        built.here.logs[where].cut(15)
    built.there.leaderless.add(COPY)
    for now in (1070.0, 1075.0, 1080.0):
        look(built, now, job)
    assert kept_lost(built.ledger()).keys() == {y0}


def test_markers_that_were_counted_as_none_are_no_loss() -> None:
    mirror = LossyMirror()
    mirror.write(3)
    mirror.mark()
    mirror.copy(3)
    mirror.job.note_counted({X0: KnownPosition(14, 13)})
    mirror.look()
    mirror.expire(100)
    mirror.look(70.0)
    assert mirror.reported == {}


@pytest.mark.parametrize(
    ("kept", "found", "together"),
    [
        (None, Lost(5, 10, 1), Lost(5, 10, 1)),
        (Lost(5, 10, 1), Lost(2, 12, 9), Lost(7, 12, 1)),
        (Lost(5, 10, 1), Lost(5, 10, 9), Lost(5, 10, 1)),
        (Lost(0, 10, 1), Lost(2, 12, 9), Lost(2, 12, 9)),
        (Lost(5, 10, 1), Lost(0, 12, 9, unknown=True), Lost(5, 12, 1, unknown=True)),
        (Lost(0, 10, 1, unknown=True), Lost(2, 12, 9), Lost(2, 12, 1, unknown=True)),
    ],
)
def test_losses_of_a_partition_add_up(kept: Lost | None, found: Lost, together: Lost) -> None:
    assert merged({X0: kept} if kept else {}, {X0: found}) == {X0: together}


def test_what_is_acknowledged_is_reported_no_more_and_what_is_lost_from_then_on_is() -> None:
    mirror = LossyMirror()
    mirror.write(5)
    mirror.expire(100)
    mirror.look(70.0)
    ledger = mirror.built.ledger()
    assert sum(one.records or 0 for one in mirror.reported.values()) == 5
    ledger.put(entries_of(acknowledged(kept_lost(ledger), {"x"})))
    mirror.restart_job()
    mirror.look(70.0)
    assert unacknowledged(mirror.reported) == {}
    mirror.write(3)
    mirror.expire(100)
    mirror.look(70.0)
    assert unacknowledged(mirror.reported)[X0].records == 3


@pytest.mark.parametrize("is_acknowledged", [False, True])
def test_loss_of_a_topic_that_was_made_anew_does_not_hide_behind_that_of_the_former_one(is_acknowledged: bool) -> None:
    mirror = LossyMirror()
    mirror.write(50)
    mirror.expire(60)
    mirror.look(70.0)
    if is_acknowledged:
        ledger = mirror.built.ledger()
        ledger.put(entries_of(acknowledged(kept_lost(ledger), {"x"})))
    mirror.built.here.logs[X0] = mirror.here = MemoryLog()
    mirror.built.there.logs[COPY] = mirror.there = MemoryLog()
    mirror.look(70.0)
    assert sum(one.records or 0 for one in mirror.reported.values()) == (0 if is_acknowledged else 50)
    mirror.reached, mirror.histories = 0, Histories()
    mirror.histories.are_whole = True
    mirror.restart_job()
    mirror.look(70.0)
    mirror._last, mirror._previous = -1000, -1
    mirror.write(5)
    mirror.copy(5)
    mirror.look(70.0)
    mirror.write(5)
    mirror.expire(10)
    mirror.look(70.0)
    assert mirror.reported[X0].records == (5 if is_acknowledged else 55)


def test_acknowledged_loss_of_a_topic_that_is_gone_is_forgotten_and_any_other_is_not() -> None:
    mirror, y0 = LossyMirror(), TopicPartition("y", 0)
    mirror.built.ledger().put(entries_of({X0: Lost(0, 60, 1), X1: Lost(4, 60, 1), y0: Lost(0, 60, 1)}))
    mirror.restart_job()
    mirror.look(70.0)
    del mirror.built.world.source.topics["x"], mirror.built.here.logs[X0], mirror.built.here.logs[X1]
    for _ in range(3):
        mirror.look(40.0)
    assert mirror.reported == {X1: Lost(4, 0, 1), y0: Lost(0, 60, 1)}


def test_what_changed_while_the_operator_was_asked_is_not_acknowledged() -> None:
    before = {X0: Lost(5, 10, 1), X1: Lost(2, 3, 1)}
    shown = before | {TopicPartition("y", 0): Lost(4, 4, 1)}
    now = {X0: Lost(5, 10, 1), X1: Lost(9, 30, 1), TopicPartition("z", 0): Lost(1, 1, 1)}
    assert acknowledged_as_shown(shown, before, now, {"x"}) == {X0: Lost(0, 10, 1), X1: Lost(9, 30, 1)}
    assert acknowledged_as_shown(shown, before, now, {"y"}) == {TopicPartition("y", 0): Lost(0, 4, 1)}


def by_now(mirror: LossyMirror) -> dict[TopicPartition, Lost]:
    """What a command sees."""
    built = mirror.built
    return unacknowledged(lost_by_now(built.ledger(), built.here, built.there, {"x": "a.x"}, 1000))


def test_command_finds_what_no_job_has_found_and_does_not_count_it_twice() -> None:
    mirror = LossyMirror()
    mirror.write(50)
    mirror.expire(60)
    mirror.write(7)
    mirror.copy(100)
    assert by_now(mirror)[X0].records == 50
    mirror.look(70.0)
    assert by_now(mirror)[X0].records == 50
    ledger = mirror.built.ledger()
    ledger.put(entries_of(acknowledged(kept_lost(ledger), {"x"})))
    assert by_now(mirror) == {}


def test_command_does_not_know_what_a_partition_without_a_leader_lost() -> None:
    mirror = LossyMirror()
    mirror.write(50)
    mirror.expire(60)
    mirror.built.there.leaderless.add(COPY)
    assert by_now(mirror)[X0].unknown


def test_an_unknown_loss_hides_no_known_one_from_a_cutover() -> None:
    mirror = LossyMirror()
    mirror.write(50)
    mirror.expire(60)
    mirror.write(7)
    mirror.copy(100)
    mirror.look(70.0)
    mirror.built.here.compacting.add("x")
    mirror.write(3)
    mirror.expire(100)
    mirror.write(2)
    mirror.copy(100)
    mirror.look(70.0)
    mirror.look(70.0)
    assert mirror.reported[X0].records >= 50
    assert mirror.reported[X0].compacted
    with pytest.raises(NotNow, match=r"COPYING: at most 5\d and an unknown number in 1 partition of x are not on b"):
        check_nothing_lost(mirror.built.scene())


@pytest.mark.parametrize(
    "fields", ["[5,5,1000000000000000000,false,false]", "[5,5]", "[-1,5,5,false,false]", "[5,5,5,1,false]"]
)
def test_entry_of_a_loss_that_no_job_wrote_is_not_trusted(fields: str) -> None:
    built = stage()
    built.ledger().put({(Entry.LOST, ("x",)): f'{{"0":{fields}}}'})
    with pytest.raises(LedgerUntrusted):
        kept_lost(built.ledger())


def test_what_was_lost_is_shown_by_topic() -> None:
    built, lost = stage(), {X0: Lost(5, 10, 1_000), X1: Lost(0, 3, 2_000, unknown=True)}
    built.ledger().put(entries_of(lost))
    kept = kept_lost(built.ledger())
    assert kept == lost
    assert [(one.topic, one.records, one.unknown) for one in by_topic(kept)] == [("x", 5, 1)]
    assert lost_as_json(kept) == {
        "records": 5,
        "topics": [
            {"topic": "x", "records": 5, "partitions_not_known": 1, "since": "1970-01-01T00:00:01Z"},
        ],
    }


def not_led() -> None:
    raise ClusterUnreachable("the target has not confirmed this process's lease")


@dataclass
class UnwrittenLoss:
    """Five records that retention took, and that the job found while it could not write the ledger."""

    mirror: LossyMirror = field(default_factory=LossyMirror)

    def __post_init__(self) -> None:
        world = self.mirror.built.world
        self.mirror.write(5)
        self.mirror.expire(100)
        self.mirror.write(3)
        self.mirror.copy(1000)
        self.ledger = Ledger(world.settings.internal.ledger, world.target, world.target, 1, permit=not_led)
        self.look(70.0)
        self.look()
        assert self.mirror.reported == {}

    def look(self, seconds: float = 5.0) -> None:
        """A pass whose writes fail."""
        self.mirror.now += seconds
        self.mirror.job.keep(PassContext(self.mirror.now, self.mirror.built.scene().listed(), self.ledger))


def test_loss_whose_write_failed_is_written_later() -> None:
    mirror = UnwrittenLoss().mirror
    mirror.look()
    assert mirror.reported[X0].records == 5
    mirror.look()
    assert mirror.reported[X0].records == 5


def test_loss_whose_write_failed_adds_up_with_that_of_a_log_made_anew() -> None:
    unwritten = UnwrittenLoss()
    mirror = unwritten.mirror
    mirror.here.records.clear()
    mirror.here.end = mirror.here.start = 1
    unwritten.look()
    mirror.look()
    assert mirror.reported[X0] == Lost(5, 0, 1075_000)


def test_cutover_finds_what_no_job_has_found() -> None:
    mirror = LossyMirror()
    mirror.write(20)
    mirror.look()
    mirror.expire(25)
    mirror.copy(100)
    mirror.write(5)
    mirror.copy(100)
    with pytest.raises(NotNow, match="LOST BEFORE COPYING: at most 15 of x"):
        cutover(mirror.built.scene())


@pytest.mark.parametrize("acknowledged_before", [False, True])
def test_what_a_cut_log_lacks_adds_up_with_what_retention_took(acknowledged_before: bool) -> None:
    """MM2 goes on at the log's start, so both losses end at the same offset."""
    built, told = stage(), [{X0: Missed(5)}]
    kept = {X0: Lost(4, 20, 1)}
    built.ledger().put(entries_of(acknowledged(kept, ["x"]) if acknowledged_before else kept))
    look(built, 0.0, SourceEndOffsetStore(built.here, 5.0, beside=inline, cut=lambda: told.pop() if told else {}))
    assert unacknowledged(kept_lost(built.ledger()))[X0].records == (5 if acknowledged_before else 9)


def test_retention_is_found_behind_the_place_where_a_cut_was_told() -> None:
    cut, retention = {X0: Lost(600, ANY_OFFSET, 1)}, {X0: Lost(400, 1400, 1)}
    assert merged(cut, retention)[X0].records == 1000


def test_copy_that_became_shorter_and_was_overtaken_lost_an_unknown_number() -> None:
    mirror = LossyMirror()
    mirror.job.note_counted({X0: KnownPosition(10, 10)})
    mirror.look()
    mirror.write(30)
    mirror.look()
    mirror.there.records[:], mirror.there.end = mirror.there.records[:8], 8
    mirror.expire(30)
    mirror.look(120.0)
    assert mirror.reported[X0].unknown


def test_loss_that_the_operator_acknowledged_before_the_job_found_it_stays_acknowledged() -> None:
    one = LossyMirror()
    ledger, remote = one.built.ledger(), one.built.scene().listed().desired.remote

    def look_with_what_was_read(seconds: float) -> None:
        one.now += seconds
        one.job.keep(PassContext(one.now, one.built.scene().listed(), ledger))

    one.write(9)
    look_with_what_was_read(5.0)
    one.expire(15)
    command = one.built.ledger()
    shown = lost_by_now(command, one.built.here, one.built.there, remote, int(one.now * 1000))
    assert unacknowledged(shown)
    command.put(entries_of(acknowledged_as_shown(shown, {}, {}, ["x"])))
    for seconds in (61.0, 5.0):
        look_with_what_was_read(seconds)
    assert not unacknowledged(one.reported)
