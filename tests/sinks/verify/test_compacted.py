"""Compacted topics: the last record of each key counts, as far as it must have arrived."""

from __future__ import annotations

from collections.abc import Sequence

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.history import Pair
from sinks.verify.compacted_rules import Keys, OddKey, compacted_report
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_verdicts import PartitionReport, PartitionVerdict
from sinks.verify.windows import cut
from streaming.mm2.records import TopicPartition
from streaming.verify.rows import LastRecord


def last(offset: int, value: int = 1, ms: int = 5, tombstone: bool = False) -> LastRecord:
    return LastRecord(offset, value, 0, ms, tombstone)


def report(
    odd: Sequence[OddKey],
    arrived: int | None = 50,
    *,
    starts: tuple[int, int] = (0, 0),
    pairs: Sequence[Pair] = (Pair(20, 20),),
    times: bool = True,
    resending: bool = False,
) -> PartitionReport:
    logs = LogRange(starts[0], 100), LogRange(starts[1], 90)
    windows = cut(pairs, (), *logs, least=1)
    where, remote = TopicPartition("profiles", 0), TopicPartition("a.profiles", 0)
    keys = Keys(10, len(odd), arrived, 9, times, resending)
    return compacted_report(PartitionPlan(where, remote, *logs, windows), keys, odd)


def named(found: PartitionReport) -> list[tuple[str, int | None, int | None, tuple[str, ...]]]:
    return [(str(one.difference), one.upstream, one.downstream, one.fields) for one in found.findings]


def test_another_last_value_that_must_have_arrived_was_changed() -> None:
    found = report([OddKey(last(40), last(35, value=2))])
    assert (found.verdict, named(found)) == (PartitionVerdict.DIFFERENT, [("CHANGED", 40, 35, ("value",))])


def test_another_timestamp_is_a_change_only_where_timestamps_count() -> None:
    assert named(report([OddKey(last(40), last(35, ms=6))])) == [("CHANGED", 40, 35, ("timestamp",))]


def test_a_last_value_behind_all_that_arrived_is_pending() -> None:
    found = report([OddKey(last(70), last(35, value=2)), OddKey(last(60), None)])
    assert (found.verdict, found.pending, found.through) == (PartitionVerdict.VERIFIED, 2, 60)


def test_a_key_on_one_side_alone_is_missing_or_extra() -> None:
    found = report([OddKey(last(40), None), OddKey(None, last(30))])
    assert named(found) == [("MISSING", 40, None, ()), ("EXTRA", None, 30, ())]


def test_what_retention_may_have_deleted_is_no_difference() -> None:
    assert report([OddKey(last(15), None)], starts=(0, 10)).verdict is PartitionVerdict.VERIFIED
    assert report([OddKey(last(25), None)], starts=(0, 10)).verdict is PartitionVerdict.DIFFERENT
    assert report([OddKey(None, last(5))], starts=(10, 0)).verdict is PartitionVerdict.VERIFIED


def test_while_mm2_sends_again_older_values_come_last_and_nothing_is_wrong() -> None:
    found = report([OddKey(last(40), last(35, value=2))], resending=True)
    assert (found.verdict, found.pending) == (PartitionVerdict.VERIFIED, 1)
