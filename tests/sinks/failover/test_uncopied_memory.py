"""What is missing on the target, asked again and again."""

from __future__ import annotations

from sinks.failover.commands import drain, fence
from sinks.failover.uncopied_records import ALL_THERE, ArrivalMemory, as_at_takeover, pairs_of
from streaming.mm2.records import TopicPartition
from tests.sinks.failover.scenes import Stage, stage

X1, Y0 = TopicPartition("x", 1), TopicPartition("y", 0)


def observe(built: Stage, memory: ArrivalMemory, source_id: str = "1") -> tuple[dict[TopicPartition, int], int]:
    """Records that are missing, where any are, and how many partitions were read."""
    pairs = pairs_of({"x": "a.x", "y": "a.y"}, {"x": 2, "y": 1}, ["x", "y"])
    seen = memory.observe(built.here, built.there, pairs, {"x": (source_id, "2"), "y": (source_id, "2")})
    missing = {where: one.behind.records for where, one in seen.arrivals.items() if one.behind and one.behind.records}
    return missing, seen.read


def test_partitions_that_stand_still_are_read_once() -> None:
    built, memory = stage(), ArrivalMemory()
    assert observe(built, memory) == ({}, 3)
    read = built.here.read + built.there.read
    assert observe(built, memory) == ({}, 0)
    assert built.here.read + built.there.read == read


def test_what_clients_of_a_drained_topic_wrote_makes_no_record_a_missing_one() -> None:
    built, memory = stage(), ArrivalMemory()
    fence(built.scene(), ("x",))
    drain(built.scene())
    for number in range(3):
        built.there.logs[TopicPartition("a.x", 1)].append(b"moved", b"%d" % number, 9000)
    pairs = pairs_of({"x": "a.x", "y": "a.y"}, {"x": 2, "y": 1}, ["x", "y"])
    for _ in range(2):
        seen = memory.observe(built.here, as_at_takeover(built.ledger(), built.there), pairs, {})
        assert all(one.arrived for one in seen.arrivals.values())
    assert not memory.observe(built.here, built.there, pairs, {}).arrivals[X1].arrived


def test_only_what_moved_is_read_again() -> None:
    built, memory = stage(), ArrivalMemory()
    observe(built, memory)
    built.write("x", 1, 3)
    assert observe(built, memory) == ({X1: 3}, 1)
    built.copy()
    assert observe(built, memory) == ({}, 1)
    assert observe(built, memory) == ({}, 0)


def test_what_is_missing_is_counted_each_time() -> None:
    built, memory = stage(), ArrivalMemory()
    built.write("y", 0, 2)
    assert [observe(built, memory)[0] for _ in range(2)] == [{Y0: 2}, {Y0: 2}]


def test_a_copy_that_lost_its_tail_is_noticed() -> None:
    built, memory = stage(), ArrivalMemory()
    observe(built, memory)
    log = built.there.logs[TopicPartition("a.y", 0)]
    del log.records[7:]
    log.end = 7
    assert observe(built, memory) == ({Y0: 3}, 1)


def test_a_topic_that_was_recreated_is_read_again_though_it_is_as_long_as_before() -> None:
    built, memory = stage(), ArrivalMemory()
    observe(built, memory)
    assert observe(built, memory, source_id="3")[1] == 3


def test_a_count_says_how_far_each_partition_was_copied_before_open_transactions() -> None:
    built, memory = stage(), ArrivalMemory()
    built.write("x", 1, 3)
    built.write("y", 0, 2)
    built.here.logs[Y0].seen = 11
    pairs = pairs_of({"x": "a.x", "y": "a.y"}, {"x": 2, "y": 1}, ["x", "y"])
    for _ in range(2):
        seen = memory.observe(built.here, built.there, pairs, {})
        assert seen.positions == {TopicPartition("x", 0): (10, 10, 0), X1: (13, 10, 3), Y0: (11, 10, 1)}


def test_a_count_that_is_not_exact_says_nothing_of_how_far_a_partition_was_copied() -> None:
    built, memory = stage(), ArrivalMemory()
    log = built.here.logs[Y0]
    for timestamp in (5, 9000):
        log.append(b"late", b"%d" % timestamp, timestamp)
    log.cut(10)
    pairs = pairs_of({"x": "a.x", "y": "a.y"}, {"x": 2, "y": 1}, ["x", "y"])
    seen = memory.observe(built.here, built.there, pairs, {})
    assert (seen.arrivals[Y0].behind or ALL_THERE)[::2] == (2, False)
    assert Y0 not in seen.positions and X1 in seen.positions
