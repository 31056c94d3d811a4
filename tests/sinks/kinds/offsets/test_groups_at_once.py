"""Thousands of groups that commit at once: in how many passes all are synced, and what each pass asks for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.polled_groups import COMMITS_TOPIC, LEAST_IN_A_PASS, POLL_LONGEST
from streaming.hints import CheckpointSeen
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync, TopicPartition
from tests.memory.memory_groups import MemoryGroups
from tests.sinks.builders import World, flow_settings, put_topic

MANY = 3000
PARTITIONS = 5
X, AX = TopicPartition("x", 0), TopicPartition("a.x", 0)
SYNCS = "mm2-offset-syncs.b.internal"


@dataclass
class Counted(MemoryGroups):
    """Counts requests, and the groups that they are about."""

    requests: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)

    def _note(self, request: str, groups: int) -> None:
        self.requests[request] += 1
        self.most[request] = max(self.most[request], groups)

    def committed(self, groups):  # type: ignore[no-untyped-def]  # as MemoryGroups has it
        self._note("committed", len(groups))
        return super().committed(groups)

    def members(self, groups):  # type: ignore[no-untyped-def]  # as MemoryGroups has it
        self._note("members", len(groups))
        return super().members(groups)

    def commit(self, offsets):  # type: ignore[no-untyped-def]  # as MemoryGroups has it
        self._note("commit", len(offsets))
        return super().commit(offsets)


@pytest.fixture
def world() -> World:
    """x on a with offsets 0 to 100, copied to a.x; many groups at 40, all of them synced and at rest."""
    ends = {TopicPartition(COMMITS_TOPIC, number): LogRange(0, MANY) for number in range(PARTITIONS)}
    names = [f"g{number:05d}" for number in range(MANY)]
    built = World(
        flow_settings(),
        source_groups=Counted("a", {name: {X: 40} for name in names}, logs={X: LogRange(0, 100), **ends}),
        target_groups=Counted("b", logs={AX: LogRange(0, 100)}),
    )
    put_topic(built.source, "x")
    put_topic(built.target, "a.x")
    put_topic(built.source, COMMITS_TOPIC, PARTITIONS)
    built.source.create_log(SYNCS, 1, {})
    built.source.append_log(SYNCS, [encode_record(OffsetSync(X, at, at)) for at in (0, 40, 99)])
    for _ in range(20):
        if not built.run_pass().outcomes:
            break
    assert synced(built, 40) == MANY
    return built


def synced(world: World, offset: int) -> int:
    return sum(offsets.get(AX) == offset for offsets in world.target_groups.offsets.values())


def commit_all(world: World) -> None:
    """All at the end; MM2 sees it at once, and writes a checkpoint for each."""
    for offsets in world.source_groups.offsets.values():
        offsets[X] = 100
    for number in range(PARTITIONS):
        world.source_groups.logs[TopicPartition(COMMITS_TOPIC, number)] = LogRange(0, 2 * MANY)
    seen = [CheckpointSeen(at, group, "a.x", 0, 99, 99) for at, group in enumerate(world.source_groups.offsets)]
    world.reconcile.take_in([], seen)


def test_all_are_synced_in_a_few_passes_whatever_mm2_writes_of_them(world: World) -> None:
    commit_all(world)
    passes = 0
    while synced(world, 100) < MANY:
        world.run_pass(after=POLL_LONGEST)
        passes += 1
        assert passes <= MANY // LEAST_IN_A_PASS


def test_all_that_may_have_committed_are_polled_together(world: World) -> None:
    commit_all(world)
    assert isinstance(world.source_groups, Counted)
    world.source_groups.most.clear()
    world.run_pass(after=POLL_LONGEST)
    assert world.source_groups.most["committed"] == MANY


def test_a_pass_that_writes_thousands_looks_at_members_twice_and_at_rest_never(world: World) -> None:
    assert isinstance(world.target_groups, Counted)
    commit_all(world)
    world.target_groups.requests.clear()
    world.run_pass(after=POLL_LONGEST)
    assert world.target_groups.requests == {"committed": 2, "members": 2, "commit": 1}
    while world.run_pass(after=POLL_LONGEST).outcomes:
        pass
    world.target_groups.requests.clear()
    world.source_groups.requests.clear()  # type: ignore[attr-defined]  # it is a Counted, too
    for _ in range(5):
        world.run_pass(after=0.6)
    assert world.target_groups.requests == world.source_groups.requests == {}  # type: ignore[attr-defined]  # as above
