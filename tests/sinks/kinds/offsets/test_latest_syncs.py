"""The last offset-sync of each partition, for what a failover would lose: only where there is no later one."""

from __future__ import annotations

import pytest

from sinks.kafka.ports.cluster import CHUNK
from sinks.kinds.offsets import controller
from sinks.kinds.offsets.controller import offset_memory
from sinks.kinds.offsets.sync_history import Histories
from sinks.ledger.kept_end_offsets import LatestSync
from streaming.mm2.codec import encode_record
from streaming.mm2.records import OffsetSync, TopicPartition
from tests.sinks.builders import World, flow_settings, put_topic
from tests.sinks.kinds.offsets.remembering import SYNCS

X = TopicPartition("x", 0)


def test_while_offset_syncs_are_being_read_none_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "READS_FOR", 0.0)
    world = World(flow_settings())
    memory = offset_memory(world.controllers)
    for topics, name in ((world.source, "x"), (world.target, "a.x")):
        put_topic(topics, name)
    world.source.create_log(SYNCS, 1, {})
    world.source.append_log(SYNCS, [encode_record(OffsetSync(X, at, at)) for at in range(CHUNK + 1)])
    seen = []
    for _ in range(3):
        world.run_pass(after=0.2)
        seen.append(memory.histories.latest())
    assert seen == [None, None, {X: LatestSync(CHUNK, CHUNK)}]


@pytest.mark.parametrize(
    ("syncs", "gap"),
    [([(0, 0)], False), ([(0, 0), (5, 5)], False), ([(0, 0), (6, 5)], True), ([(0, 0), (6, 7)], False)],
)
def test_a_last_sync_says_whether_offsets_before_it_are_no_records(syncs: list[tuple[int, int]], gap: bool) -> None:
    histories = Histories()
    for position, (upstream, downstream) in enumerate(syncs):
        histories.take(TopicPartition("x", 0), upstream, downstream, position)
    histories.are_whole = True
    latest = histories.latest()
    assert latest is not None
    assert latest[X].gap is gap


def test_a_last_sync_says_whether_mm2_is_sending_again_and_a_truncated_partition_has_none() -> None:
    histories = Histories()
    for position, (upstream, downstream) in enumerate([(10, 10), (5, 15)]):
        histories.take(TopicPartition("x", 0), upstream, downstream, position)
    histories.take(TopicPartition("y", 0), 1, 1, 2)
    histories.are_whole = True
    assert histories.latest() == {X: LatestSync(5, 15, resending=True), TopicPartition("y", 0): LatestSync(1, 1)}
    truncated = histories.with_empty(TopicPartition("y", 0))
    assert truncated is not None
    truncated.empty()
    assert histories.latest() == {X: LatestSync(5, 15, resending=True)}
