"""Whatever retention, compaction and truncation did to either log, no group is placed behind a record that it has not
read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sinks.kafka.ports.groups import GroupPartition
from sinks.kinds.offsets.direction import Direction, GroupOffset
from sinks.kinds.offsets.memory import OffsetMemory
from sinks.kinds.offsets.record_finder import Budget, find
from sinks.kinds.offsets.record_search import Question, SearchResult
from sinks.kinds.offsets.survey import survey_offsets
from sinks.kinds.shared_listings import list_both
from streaming.hints import SyncSeen
from streaming.mm2.records import OffsetSync
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_groups import MemoryGroups
from tests.memory.memory_records import MemoryRecords
from tests.sinks.builders import flow_settings, put_topic
from tests.sinks.machine.mirrored_topic import SOURCE, TARGET, MirroredTopic

AMPLE = Budget(records=5000, seconds=60)


class Move(NamedTuple):
    """One thing that happens to the topic: a method of `MirroredTopic`, and its arguments."""

    name: str
    arguments: tuple[object, ...]


SIDES, COUNTS = st.sampled_from([SOURCE, TARGET]), st.integers(1, 15)
MOVES = st.lists(
    st.builds(lambda count: Move("produce", (count,)), COUNTS)
    | st.builds(lambda count: Move("copy", (count,)), COUNTS)
    | st.builds(lambda back: Move("restart_mm2", (back,)), st.integers(0, 12))
    | st.builds(lambda side, share: Move("cut", (side, share)), SIDES, st.sampled_from([0.2, 0.6, 1.0]))
    | st.builds(lambda side, offsets: Move("compact", (side, offsets)), SIDES, st.sets(st.integers(0, 30), min_size=1))
    | st.builds(lambda count: Move("truncate_target", (count,)), st.integers(2, 12))
    | st.builds(lambda count: Move("truncate_source", (count,)), st.integers(1, 12)),
    max_size=8,
)


@dataclass
class Mirrored:
    """A topic that MM2 copies from a to b, a group at each offset of it, and what Lockstep remembers.

    `groups`: the offset that each committed, and the one up to which it has read what the source has now.
    `compacting`: the sides whose `cleanup.policy` has compaction now; each may have been compacted once.
    """

    compacting: frozenset[int] = frozenset()
    syncs: int = 0
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)
    memory: OffsetMemory = field(default_factory=OffsetMemory)

    def __post_init__(self) -> None:
        self.settings = flow_settings(matching=True)
        self.a, self.b = MemoryCluster("a"), MemoryCluster("b")
        put_topic(self.a, "x")
        put_topic(self.b, "a.x")
        self.topic = MirroredTopic("x", self.tell)
        self.memory.recognize({"x": "a.x"}, {"x": "id-of-x"}, {"a.x": "id-of-a.x"})

    def tell(self, sync: OffsetSync) -> None:
        where = sync.topic_partition
        seen = SyncSeen(self.syncs, where.topic, where.partition, sync.upstream_offset, sync.downstream_offset)
        self.syncs += 1
        self.memory.queue.put([seen], ())
        self.memory.take_in_queued()

    def happens(self, move: Move) -> None:
        getattr(self.topic, move.name)(*move.arguments)
        end = len(self.topic.source)
        self.groups = {group: (at, min(read, end)) for group, (at, read) in self.groups.items()}
        self.look()
        # These commit once more after what happened; the others stay where they were.
        self.groups |= {f"moved to {x}": (x, x) for x in range(end + 1)}

    def look(self) -> list[GroupOffset]:
        """The rows of groups that nothing was answered to before."""
        one, (source, target) = self.topic, self.topic.ends
        for x in range(source.end + 1):
            self.groups.setdefault(f"moved to {x}", (0, 0))
            self.groups.setdefault(f"at {x}", (x, x))
        committed = {group: {one.here: at} for group, (at, _) in self.groups.items()}
        here = MemoryGroups("a", committed, logs={one.here: source})
        there = MemoryGroups("b", logs={one.there: target})
        direction = Direction(self.settings, here, there, list_both(self.settings, self.a, self.b))
        self.memory.answers.clear()
        return survey_offsets(direction, committed, self.memory, self.find_records)

    def find_records(self, wanted: Mapping[GroupPartition, Question]) -> dict[GroupPartition, SearchResult]:
        one = self.topic
        source, target = one.logs()
        here = MemoryRecords("a", {one.here: source}, {one.here.topic} if SOURCE in self.compacting else set())
        there = MemoryRecords("b", {one.there: target}, {one.there.topic} if TARGET in self.compacting else set())
        found = find(list(wanted.values()), here, there, AMPLE)
        return {key: found[question] for key, question in wanted.items()}


BOTH, NEITHER = frozenset({SOURCE, TARGET}), frozenset[int]()


@settings(max_examples=300, deadline=None)
@given(MOVES, st.sampled_from([BOTH, NEITHER]))
@example([Move("cut", (SOURCE, 0.6))], BOTH)
@example([Move("compact", (SOURCE, {3, 4}))], BOTH)
@example([Move("compact", (SOURCE, {3, 4}))], NEITHER)
@example([Move("compact", (SOURCE, {12, 13}))], NEITHER)
@example(
    [
        Move("truncate_source", (1,)),
        Move("produce", (2,)),
        Move("copy", (1,)),
        Move("truncate_source", (1,)),
    ],
    BOTH,
)
@example(
    [Move("restart_mm2", (8,)), Move("truncate_target", (2,)), Move("copy", (1,)), Move("cut", (SOURCE, 0.6))], BOTH
)
def test_no_group_is_placed_behind_a_record_of_the_target_that_it_has_not_read(
    moves: list[Move], compacting: frozenset[int]
) -> None:
    mirrored = Mirrored(compacting)
    mirrored.topic.produce(14)
    mirrored.topic.copy(14)
    mirrored.look()
    for move in moves:
        mirrored.happens(move)
    for row in mirrored.look():
        if row.change is not None and row.goes_on_at is not None:
            _, read = mirrored.groups[row.group]
            skipped = mirrored.topic.skipped(read, row.goes_on_at)
            assert not skipped, f"at {row.at} it is sent to {row.goes_on_at} ({row.answer}), and skips {skipped}"
            twice = mirrored.topic.read_twice(read, row.goes_on_at)
            assert row.error_bound is not None
            assert len(twice) <= row.error_bound, f"at {row.at} it is sent to {row.goes_on_at}, and reads {twice} again"
