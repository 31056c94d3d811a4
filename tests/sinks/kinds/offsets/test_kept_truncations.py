"""What a job saw of a truncation holds for every process that comes after it: a command, or the job's next one."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sinks.faults import ItemFault
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.direction import Direction, GroupOffset
from sinks.kinds.offsets.log_tails import LogTails, Truncation
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.mirror_reading import MirrorReading
from sinks.kinds.offsets.mirror_records import MirrorTopics
from sinks.kinds.offsets.stored_memory import TARGET, store_truncations
from sinks.kinds.offsets.survey import survey_offsets
from sinks.kinds.offsets.verdicts import Verdict
from sinks.kinds.shared_listings import list_both
from sinks.ledger.kept_end_offsets import KeptEndOffsets, to_text
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync, TopicPartition
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_groups import MemoryGroups
from tests.sinks.builders import World, flow_settings, put_topic

X, AX = TopicPartition("x", 0), TopicPartition("a.x", 0)
SYNCS = "mm2-offset-syncs.b.internal"
MOST_IN_A_RECORD = 1_000_000
"""Bytes; a broker's message.max.bytes is 1,048,588 by default."""

REST = 61.0
"""Seconds after which everything is compared again."""


def world_of(group: int) -> World:
    """x on a with offsets 0 to 100, all of them on b; the group g on a. Its record 40 is the pair of an offset-sync."""
    world = World(
        flow_settings(),
        source_groups=MemoryGroups("a", {"g": {X: group}}, logs={X: LogRange(0, 100)}),
        target_groups=MemoryGroups("b", logs={AX: LogRange(0, 100)}),
    )
    put_topic(world.source, "x")
    put_topic(world.target, "a.x")
    world.source.create_log(SYNCS, 1, {})
    world.source.append_log(SYNCS, [encode_record(OffsetSync(X, 40, 40))])
    world.run_pass()
    return world


def loses_its_tail(world: World, to: int, then: int) -> None:
    """The source's log is seen to end at `to`, and has other records up to `then` afterwards."""
    world.source_groups.logs[X] = LogRange(0, to)
    world.run_pass(after=REST)
    world.source_groups.logs[X] = LogRange(0, then)
    world.run_pass(after=REST)


def verdict(world: World) -> str:
    report = world.run_pass(after=REST)
    assert report.groups is not None
    (found,) = (verdict for verdict, count in report.groups.verdicts.items() if count)
    return found


def test_group_whose_records_the_source_lost_stays_an_error_for_the_next_process() -> None:
    world = world_of(60)
    world.target_groups.offsets.clear()
    loses_its_tail(world, 50, 120)
    world.target_groups.offsets.clear()
    assert verdict(world) == Verdict.ERROR
    world.restart()
    assert verdict(world) == Verdict.ERROR
    assert world.target_groups.offsets == {}


def test_truncation_is_kept_before_the_next_comparison_of_everything() -> None:
    world = world_of(60)
    world.source_groups.logs[X] = LogRange(0, 50)
    world.source_groups.offsets["h"] = {X: 10}
    world.run_pass(after=REST)
    world.source_groups.logs[X] = LogRange(0, 120)
    world.target_groups.offsets.clear()
    world.restart()
    report = world.run_pass()
    assert report.groups is not None
    assert report.groups.verdicts[Verdict.ERROR] == 1
    assert "g" not in world.target_groups.offsets


def test_group_that_committed_since_the_truncation_goes_on_in_the_next_process() -> None:
    world = world_of(60)
    loses_its_tail(world, 50, 120)
    world.source_groups.offsets["g"] = {X: 70}
    world.run_pass(after=REST)
    world.restart()
    assert verdict(world) == Verdict.SYNCED


def with_an_untrue_offset() -> World:
    """g is at 150 on the source, whose log ended before that when Lockstep saw g first."""
    world = world_of(150)
    world.source_groups.logs[X] = LogRange(0, 200)
    world.run_pass(after=REST)
    return world


def untrue(world: World) -> bool:
    return verdict(world) == Verdict.ERROR


@pytest.mark.parametrize("restarted", [False, True])
def test_group_that_is_recreated_is_not_held_back_by_what_the_former_one_had(restarted: bool) -> None:
    world = with_an_untrue_offset()
    assert untrue(world)
    world.source_groups.offsets.clear()
    if restarted:
        world.restart()
    for _ in range(2):
        world.run_pass(after=REST)
    assert all('"g"' not in text for text in world.ledger().values(Entry.TRUNCATED).values())
    world.source_groups.offsets["g"] = {X: 150}
    assert not untrue(world)


def test_group_that_a_listing_lacks_though_it_is_there_keeps_its_untrue_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = with_an_untrue_offset()
    with monkeypatch.context() as hidden:
        hidden.setattr(world.source_groups, "names", set)
        world.run_pass(after=REST)
    assert untrue(world)


def test_group_that_cannot_be_read_keeps_its_untrue_offset() -> None:
    world = with_an_untrue_offset()
    offsets = world.source_groups.offsets.pop("g")
    world.source_groups.unreadable["g"] = ItemFault("GROUP_AUTHORIZATION_FAILED", "")
    world.run_pass(after=REST)
    world.source_groups.unreadable.clear()
    world.source_groups.offsets["g"] = offsets
    assert untrue(world)


def test_untrue_offset_on_the_target_is_kept_as_long_as_the_group_has_one_there() -> None:
    world = world_of(60)
    world.target_groups.offsets["g"] = {AX: 60}
    for end in (50, 80, 70, 120):
        world.target_groups.logs[AX] = LogRange(0, end)
        world.run_pass(after=REST)
    kept = [text for (side, *_), text in world.ledger().values(Entry.TRUNCATED).items() if side == TARGET]
    assert any('"g"' in text for text in kept)
    world.source_groups.offsets.clear()
    world.run_pass(after=REST)
    assert any('"g"' in text for text in world.ledger().values(Entry.TRUNCATED).values())
    world.target_groups.offsets.clear()
    world.run_pass(after=REST)
    world.run_pass(after=REST)
    assert all('"g"' not in text for text in world.ledger().values(Entry.TRUNCATED).values())


def test_truncation_while_no_job_ran_is_seen_by_the_ends_that_were_kept() -> None:
    world = world_of(60)
    world.ledger().put({(Entry.SOURCE_ENDS, ("0",)): to_text({"x": KeptEndOffsets((100,), 1)})})
    world.source_groups.logs[X] = LogRange(0, 55)
    world.target_groups.offsets.clear()
    world.restart()
    assert verdict(world) == Verdict.ERROR
    world.source_groups.logs[X] = LogRange(0, 120)
    assert verdict(world) == Verdict.ERROR
    assert world.target_groups.offsets == {}


def test_topic_that_was_recreated_leaves_nothing_of_a_truncation() -> None:
    world = world_of(60)
    loses_its_tail(world, 50, 120)
    world.source_groups.ids["x"] = world.target_groups.ids["a.x"] = "another"
    world.source_groups.logs[X] = world.target_groups.logs[AX] = LogRange(0, 90)
    world.source_groups.offsets["g"] = {X: 90}
    world.run_pass(after=REST)
    assert world.ledger().values(Entry.TRUNCATED) == {}
    world.restart()
    assert verdict(world) != Verdict.ERROR


@pytest.mark.parametrize("ids", [("1", "2"), ("2", "1")], ids=["the target's", "the source's"])
def test_topic_that_was_recreated_on_one_side_leaves_the_truncation_of_the_other(ids: tuple[str, str]) -> None:
    memory, remote = OffsetMemory(), {"x": "a.x"}
    memory.recognize(remote, {"x": "1"}, {"a.x": "1"})
    for logs in (memory.source_logs, memory.target_logs):
        logs.note_beyond("g", X, 150)
    memory.recognize(remote, {"x": ids[0]}, {"a.x": ids[1]})
    stays, goes = memory.source_logs, memory.target_logs
    if ids[0] == "2":
        stays, goes = goes, stays
    assert stays.is_untrue("g", X, 150)
    assert not goes.is_untrue("g", X, 150)


@dataclass
class Rig:
    """x, copied record by record; groups on it; a job that looks now and then, and is started anew."""

    a: MemoryCluster = field(default_factory=lambda: MemoryCluster("a"))
    b: MemoryCluster = field(default_factory=lambda: MemoryCluster("b"))
    source: int = 40
    target: int = 40
    committed: dict[str, int] = field(default_factory=lambda: {"g": 25, "h": 38})
    placed: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settings = flow_settings()
        put_topic(self.a, "x")
        put_topic(self.b, "a.x")
        self.a.create_log("syncs", 1, {})
        self.sync(0, 0)
        self.sync(20, 20)
        self.restart()

    def sync(self, upstream: int, downstream: int) -> None:
        self.a.append_log("syncs", [encode_record(OffsetSync(X, upstream, downstream))])

    def produce(self, count: int) -> None:
        self.source, self.target = self.source + count, self.target + count
        self.sync(self.source - 1, self.target - 1)

    def truncate_source(self, count: int) -> None:
        self.source = max(0, self.source - count)

    def truncate_target(self, count: int) -> None:
        self.target = max(0, self.target - count)

    def commit(self, group: str, share: float) -> None:
        self.committed[group] = round(self.source * share)

    def ledger(self) -> Ledger:
        return Ledger("lockstep-ledger.a.internal", self.b, self.b, 1)

    def restart(self) -> None:
        self.memory = self.begun()

    def begun(self) -> OffsetMemory:
        memory = OffsetMemory()
        MirrorReading(memory, MirrorTopics("syncs", self.a, "none", self.b)).load(self.ledger())
        return memory

    def rows(self, memory: OffsetMemory) -> dict[str, GroupOffset]:
        committed = {group: {X: at} for group, at in self.committed.items()}
        here = MemoryGroups("a", committed, logs={X: LogRange(0, self.source)})
        placed = {group: dict(offsets) for group, offsets in self.placed.items()}
        there = MemoryGroups("b", placed, logs={AX: LogRange(0, self.target)})
        direction = Direction(self.settings, here, there, list_both(self.settings, self.a, self.b))
        rows = survey_offsets(direction, committed, memory)
        return {row.group: row for row in rows}

    def look(self) -> dict[str, GroupOffset]:
        """What a pass of the job does."""
        MirrorReading(self.memory, MirrorTopics("syncs", self.a, "none", self.b)).catch_up()
        rows = self.rows(self.memory)
        self.memory.save_truncations(self.ledger(), {"x": 1})
        return rows

    def write(self) -> None:
        for group, row in self.look().items():
            if row.change is not None and row.goes_on_at is not None:
                self.placed[group] = {AX: row.goes_on_at}


COUNTS, GROUPS = st.integers(1, 25), st.sampled_from(["g", "h", "i"])
Move = tuple[str, tuple[object, ...]]
MOVES = st.lists(
    st.tuples(st.sampled_from(["produce", "truncate_source", "truncate_target"]), st.tuples(COUNTS))
    | st.tuples(st.just("commit"), st.tuples(GROUPS, st.sampled_from([0.3, 0.6, 0.9, 1.0])))
    | st.tuples(st.sampled_from(["look", "write", "restart"]), st.just(())),
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(MOVES)
@example([("truncate_source", (20,)), ("look", ()), ("produce", (25,))])
@example([("truncate_source", (20,)), ("look", ()), ("produce", (25,)), ("commit", ("g", 0.9)), ("look", ())])
@example([("write", ()), ("truncate_target", (20,)), ("look", ()), ("produce", (25,))])
def test_no_process_moves_a_group_farther_than_the_job_that_saw_the_truncations(moves: list[Move]) -> None:
    rig = Rig()
    for name, arguments in moves:
        getattr(rig, name)(*arguments)
    job, fresh = rig.look(), rig.rows(rig.begun())
    for group, row in fresh.items():
        known = job[group]
        assert (row.verdict == Verdict.ERROR) == (known.verdict == Verdict.ERROR), (row, known)
        if row.change is not None:
            assert row.goes_on_at is not None
            assert known.goes_on_at is not None
            assert row.goes_on_at <= known.goes_on_at


def test_truncation_that_only_who_reads_the_ends_saw_holds_for_groups_as_well() -> None:
    world = world_of(60)
    memory = OffsetMemory()
    MirrorReading(memory, MirrorTopics(SYNCS, world.source, "none", world.target)).load(world.ledger())
    memory.note_source_shrunk(world.ledger(), {"x": 1}, {X: 50})
    world.target_groups.offsets.clear()
    world.source_groups.logs[X] = LogRange(0, 120)
    world.restart()
    assert verdict(world) == Verdict.ERROR


def records_of(world: World) -> list[bytes]:
    return [value or b"" for topic in world.target.topics.values() for _, value in topic.records]


def test_groups_of_long_names_beyond_the_end_make_no_record_that_a_broker_refuses() -> None:
    world = world_of(60)
    names = [f"{'x' * 30_000}{number}" for number in range(60)]
    for name in names:
        world.source_groups.offsets[name] = {X: 150}
    world.run_pass(after=REST)
    assert max(map(len, records_of(world))) < MOST_IN_A_RECORD
    world.source_groups.logs[X] = LogRange(0, 200)
    world.target_groups.offsets.clear()
    world.restart()
    world.run_pass(after=REST)
    assert not world.target_groups.offsets.keys() & set(names)


def test_truncation_in_parts_is_read_as_it_was_written() -> None:
    groups = {f"{'x' * 30_000}{number}": number for number in range(20)}
    for one in (Truncation(5), Truncation(5, False, groups, {}), Truncation(5, True, {"g": 7}, groups)):
        assert Truncation.parse(one.as_texts()) == one


def test_parts_that_are_needed_no_more_are_forgotten() -> None:
    ledger, logs = world_of(60).ledger(), LogTails()
    for number in range(20):
        logs.note_beyond(f"{'x' * 30_000}{number}", X, 150)
    store_truncations(ledger, logs, LogTails(), {"x": 1})
    assert len(ledger.values(Entry.TRUNCATED)) > 1
    logs.forget("x")
    store_truncations(ledger, logs, LogTails(), {"x": 1})
    assert ledger.values(Entry.TRUNCATED) == {}
