"""A target that lost its tail and grew again: nothing that was known of the lost records counts any more."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.direction import Direction, GroupOffset
from sinks.kinds.offsets.log_tails import LogTails
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.mirror_records import MirrorTopics
from sinks.kinds.offsets.survey import survey_offsets
from sinks.kinds.offsets.sync_history import NOWHERE, Pair
from sinks.kinds.offsets.translation import Answer, Evidence, translate
from sinks.kinds.offsets.verdicts import Verdict
from sinks.kinds.shared_listings import list_both
from sinks.ledger.ledger import Ledger
from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.codec import encode_record
from streaming.mm2.records import Checkpoint, OffsetSync, TopicPartition
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_groups import MemoryGroups
from tests.sinks.builders import flow_settings, put_topic
from tests.sinks.kinds.offsets.mm2_partition import WITH_TRUNCATIONS, Partition, Step

X, AX = TopicPartition("x", 0), TopicPartition("a.x", 0)


@dataclass
class Truncated:
    """x on a, read by g to its end 1000 and copied to a.x; then a.x loses its last 140 records."""

    settings: FlowSettings = field(default_factory=flow_settings)
    a: MemoryCluster = field(default_factory=lambda: MemoryCluster("a"))
    b: MemoryCluster = field(default_factory=lambda: MemoryCluster("b"))
    on_a: MemoryGroups = field(default_factory=lambda: MemoryGroups("a", {"g": {X: 1000}}, logs={X: LogRange(0, 1000)}))
    on_b: MemoryGroups = field(default_factory=lambda: MemoryGroups("b", logs={AX: LogRange(0, 1000)}))
    memory: OffsetMemory = field(default_factory=OffsetMemory)
    told: int = 0

    def __post_init__(self) -> None:
        put_topic(self.a, "x")
        put_topic(self.b, "a.x")
        self.a.create_log("syncs", 1, {})

    def sync(self, upstream: int, downstream: int) -> None:
        self.memory.queue.put([SyncSeen(self.told, "x", 0, upstream, downstream)], [])
        self.memory.take_in_queued()
        self.told += 1
        self.a.append_log("syncs", [encode_record(OffsetSync(X, upstream, downstream))])

    def ends(self, source: int, target: int) -> None:
        self.on_a.logs[X], self.on_b.logs[AX] = LogRange(0, source), LogRange(0, target)

    def row(self) -> GroupOffset:
        listed = list_both(self.settings, self.a, self.b)
        direction = Direction(self.settings, self.on_a, self.on_b, listed)
        (row,) = survey_offsets(direction, ["g"], self.memory)
        return row

    def restart(self, checkpoints: str = "none") -> None:
        self.memory.save(Ledger("lockstep-ledger.a.internal", self.b, self.b, 1), {"x": 1})
        self.memory = OffsetMemory()
        ledger = Ledger("lockstep-ledger.a.internal", self.b, self.b, 1)
        MirrorReading(self.memory, MirrorTopics("syncs", self.a, checkpoints, self.b)).load(ledger)

    def write(self) -> None:
        """The group gets the offset that is found for it."""
        found = self.row().goes_on_at
        assert found is not None
        self.on_b.offsets["g"] = {AX: found}


@pytest.fixture
def world() -> Truncated:
    made = Truncated()
    made.sync(0, 0)
    made.sync(800, 800)
    made.write()
    assert made.row().judgement.verdict is Verdict.SYNCED
    return made


def test_group_whose_offset_was_truncated_away_is_an_error_though_the_log_grew_again(world: Truncated) -> None:
    world.ends(1000, 860)
    assert "beyond the end of the log" in world.row().judgement.reason
    world.ends(1300, 1160)
    row = world.row()
    assert row.judgement.verdict is Verdict.ERROR
    assert "lost its tail" in row.judgement.reason


def test_end_below_the_newest_sync_is_a_truncation_though_no_end_was_seen_before() -> None:
    made = Truncated()
    made.sync(0, 0)
    made.sync(999, 999)
    made.on_a.offsets["g"] = {X: 900}
    made.ends(1000, 860)
    row = made.row()
    assert (row.goes_on_at, row.judgement.verdict) == (None, Verdict.ERROR)
    assert "truncated or recreated" in row.judgement.reason
    made.ends(1300, 1160)
    assert made.row().goes_on_at is None, "what was known before the truncation came back"
    made.sync(1000, 860)
    made.on_a.offsets["g"] = {X: 1000}
    assert made.row().goes_on_at == 860


def test_sync_that_goes_back_makes_the_groups_offset_untrue(world: Truncated) -> None:
    world.sync(999, 999)
    world.ends(1300, 1160)
    world.sync(1000, 860)
    row = world.row()
    assert (row.goes_on_at, row.judgement.verdict) == (860, Verdict.ERROR)


def test_truncation_that_neither_an_end_nor_a_sync_shows_is_known_by_a_record_that_would_be_skipped(
    world: Truncated,
) -> None:
    world.ends(1300, 1160)
    world.sync(1000, 860)
    row = world.row()
    assert (row.goes_on_at, row.judgement.verdict) == (860, Verdict.ERROR)


def test_offset_that_was_reset_after_a_truncation_is_written_anew(world: Truncated) -> None:
    world.ends(1000, 860)
    world.row()
    world.ends(1300, 1160)
    world.sync(1000, 860)
    world.on_b.offsets["g"] = {AX: 0}
    assert (world.row().goes_on_at, world.row().judgement.verdict) == (860, Verdict.PENDING)
    world.write()
    assert world.row().judgement.verdict is Verdict.SYNCED


def test_group_that_went_on_on_the_target_since_the_truncation_is_ahead_and_no_error(world: Truncated) -> None:
    world.ends(1000, 860)
    world.row()
    world.ends(1300, 1160)
    world.sync(1000, 860)
    world.on_b.offsets["g"] = {AX: 1100}
    assert world.row().judgement.verdict is Verdict.TARGET_AHEAD


def test_checkpoint_from_before_a_truncation_does_not_count_whether_heard_or_loaded(world: Truncated) -> None:
    stale = Checkpoint("g", AX, 1000, 1000, "")
    topic = world.settings.internal.checkpoints
    world.b.create_log(topic, 1, {})
    world.b.append_log(topic, [encode_record(stale)])
    world.memory.queue.put([], [CheckpointSeen(0, "g", "a.x", 0, 1000, 1000)])
    world.ends(1000, 860)
    world.row()
    world.ends(1300, 1160)
    assert world.row().goes_on_at == 860
    world.memory.queue.put([], [CheckpointSeen(0, "g", "a.x", 0, 1000, 1000)])
    world.sync(1000, 860)
    assert world.row().goes_on_at == 860
    world.restart(topic)
    assert world.row().goes_on_at == 860


def test_syncs_from_before_a_truncation_do_not_come_back_with_a_restart(world: Truncated) -> None:
    world.ends(1000, 860)
    world.row()
    world.ends(1300, 1160)
    world.restart()
    world.told = 0
    world.sync(0, 0)
    world.sync(800, 800)
    assert world.row().goes_on_at is None


def test_a_question_from_before_a_truncation_is_another_one(world: Truncated) -> None:
    asked = []
    world.on_a.offsets["g"] = {X: 900}
    listed = list_both(world.settings, world.a, world.b)
    sides = world.on_a, world.on_b
    direction = Direction(world.settings, *sides, listed)
    for source, target in ((1000, 1000), (1000, 860), (1300, 1160)):
        world.ends(source, target)
        if target == 1160:
            world.sync(0, 0)
            world.sync(800, 800)
        survey_offsets(
            direction,
            ["g"],
            world.memory,
            lambda questions: asked.extend(questions.values()) or {},  # type: ignore[func-returns-value]  # a note
        )
    assert len(asked) == len(set(asked)) == 2


@settings(max_examples=200, deadline=None)
@given(WITH_TRUNCATIONS, st.data())
def test_no_answer_skips_a_record_while_the_target_loses_its_tail(steps: list[Step], data: st.DataObject) -> None:
    made, logs = Partition(), LogTails()
    previous: Answer | None = None
    checkpoint: Pair | None = None
    upstream = truncations = 0
    for step in steps:
        made.step(step)
        if data.draw(st.booleans(), "the job is restarted"):
            previous, logs = None, LogTails()
        if not data.draw(st.booleans(), "the group is looked at"):
            continue
        known = made.history
        # As a survey does: no answer is given by an end that is not noted.
        if known is not None and logs.note_end(X, len(made.target), 0 if known.is_empty else known.reached):
            known.empty()
            made.lost_copies.clear()
            truncations = NOWHERE
        if made.truncations != truncations:
            previous, checkpoint, truncations = None, None, made.truncations
        history = None if known is None or known.is_empty else known
        upstream = data.draw(st.integers(upstream, made.source_end))
        answer = translate(upstream, made.ends, Evidence(history, None, checkpoint, previous))
        if isinstance(answer, Answer):
            # Other records took the place of the lost copies before a look: the syncs look like a source with gaps.
            assert made.skipped(upstream, answer.downstream) <= made.lost_copies
            previous = answer
            checkpoint = Pair(upstream, answer.downstream) if data.draw(st.booleans()) else checkpoint


def test_second_truncation_makes_untrue_what_was_committed_since_the_first_though_no_sync_located_that() -> None:
    logs = LogTails()
    logs.note_end(X, 100)
    logs.note_end(X, 50)
    assert logs.is_untrue("g", X, 60)
    assert not logs.is_untrue("g", X, 55), "it was committed since"
    logs.note_end(X, 58)
    logs.note_end(X, 52)
    assert logs.is_untrue("g", X, 55)


def test_group_that_was_first_seen_beyond_the_sources_end_stays_where_it_is_until_it_commits_anew() -> None:
    made = Truncated()
    made.ends(0, 1000)
    assert made.row().judgement.verdict is Verdict.ERROR
    made.restart()
    made.ends(1000, 2000)
    row = made.row()
    assert row.judgement.verdict is Verdict.ERROR
    assert "lost its tail" in row.judgement.reason
    made.ends(1001, 2001)
    made.sync(1000, 2000)
    made.on_a.offsets["g"] = {X: 1001}
    assert (made.row().judgement.verdict, made.row().goes_on_at) == (Verdict.PENDING, 2001)


def test_no_group_is_moved_past_records_that_the_source_lost_and_the_target_has() -> None:
    made = Truncated()
    made.on_a.offsets["g"] = {X: 500}
    for at in (0, 800, 999):
        made.sync(at, at)
    made.row()
    # After an unclean election on a the records from 900 on are on b alone. The group has read what a has left.
    made.ends(900, 1000)
    made.on_a.offsets["g"] = {X: 900}
    assert (made.row().goes_on_at or 0) <= 900
    # MM2 copies what is written on a since.
    made.ends(950, 1050)
    made.sync(940, 1040)
    made.on_a.offsets["g"] = {X: 950}
    assert made.row().goes_on_at == 1050
