"""Compacted topics: the last record of each key counts, as far as it must have arrived."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.sync_history import Pair
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_verdicts import PartitionReport, PartitionVerdict
from sinks.verify.record_checks import compacted_report, last_records
from sinks.verify.record_jobs import ByteBudget, MeteredJobs, RecordJobs
from sinks.verify.windows import cut
from streaming.mm2.records import TopicPartition
from streaming.verify.rows import KeyRow, KeySums, LastRecord
from tests.sinks.verify.compacted_log import CompactedLog, compacted_log
from tests.sinks.verify.memory_jobs import MemoryJobs, Reads
from tests.sinks.verify.mirrored_log import Record
from tests.sinks.verify.verified_world import VerifiedWorld


def last(offset: int, value: int = 1, ms: int = 5, tombstone: bool = False) -> LastRecord:
    return LastRecord(offset, value, 0, ms, tombstone)


def report(
    odd: Sequence[KeyRow],
    arrived: int | None = 50,
    *,
    starts: tuple[int, int] = (0, 0),
    pairs: Sequence[Pair] = (Pair(20, 20),),
    times: bool = True,
    resending: bool = False,
    unseen: int = 0,
) -> PartitionReport:
    logs = LogRange(starts[0], 100), LogRange(starts[1], 90)
    windows = cut(pairs, (), *logs, least=1)
    where, remote = TopicPartition("profiles", 0), TopicPartition("a.profiles", 0)
    keys = KeySums(0, 10, len(odd) + unseen, arrived, 0 if times else 1, 9)
    return compacted_report(PartitionPlan(where, remote, *logs, windows, resending=resending), keys, odd)


def named(found: PartitionReport) -> list[tuple[str, int | None, int | None, tuple[str, ...]]]:
    return [(str(one.difference), one.upstream, one.downstream, one.fields) for one in found.findings]


def test_another_last_value_that_must_have_arrived_was_changed() -> None:
    found = report([KeyRow(0, last(40), last(35, value=2))])
    assert (found.verdict, named(found)) == (PartitionVerdict.DIFFERENT, [("CHANGED", 40, 35, ("value",))])


def test_another_timestamp_is_a_change_only_where_timestamps_count() -> None:
    assert named(report([KeyRow(0, last(40), last(35, ms=6))])) == [("CHANGED", 40, 35, ("timestamp",))]


def test_a_last_value_behind_all_that_arrived_is_pending() -> None:
    found = report([KeyRow(0, last(70), last(35, value=2)), KeyRow(0, last(60), None)])
    assert (found.verdict, found.pending, found.through) == (PartitionVerdict.VERIFIED, 2, 60)


def test_a_key_on_one_side_alone_is_missing_or_extra() -> None:
    found = report([KeyRow(0, last(40), None), KeyRow(0, None, last(30))])
    assert named(found) == [("MISSING", 40, None, ()), ("EXTRA", None, 30, ())]


def test_what_retention_may_have_deleted_is_no_difference() -> None:
    assert report([KeyRow(0, last(15), None)], starts=(0, 10)).verdict is PartitionVerdict.VERIFIED
    assert report([KeyRow(0, last(25), None)], starts=(0, 10)).verdict is PartitionVerdict.DIFFERENT
    assert report([KeyRow(0, None, last(5))], starts=(10, 0)).verdict is PartitionVerdict.VERIFIED


def test_where_one_side_has_deleted_all_it_had_nothing_is_verified() -> None:
    late = report([KeyRow(0, last(40), None)] * 10, None, starts=(0, 90), pairs=())
    assert (late.verdict, late.records, late.checked) == (PartitionVerdict.UNVERIFIABLE, 0, None)
    old = report([KeyRow(0, None, last(5))] * 10, None, starts=(100, 0), pairs=())
    assert old.verdict is PartitionVerdict.UNVERIFIABLE
    assert report([KeyRow(0, last(40), None)] * 10, None, pairs=()).verdict is PartitionVerdict.VERIFIED


def test_while_mm2_sends_again_older_values_come_last_and_nothing_is_wrong() -> None:
    found = report([KeyRow(0, last(40), last(35, value=2))], resending=True)
    assert (found.verdict, found.pending) == (PartitionVerdict.VERIFIED, 1)


def test_keys_that_were_not_brought_prove_nothing() -> None:
    found = report([KeyRow(0, last(70), last(35, value=2))], unseen=7)
    assert (found.verdict, found.is_whole, found.checked) == (PartitionVerdict.UNVERIFIABLE, False, None)
    assert "7 more keys do not agree" in (found.reason or "")
    worse = report([KeyRow(0, last(40), None)], unseen=7)
    assert (worse.verdict, worse.is_whole) == (PartitionVerdict.DIFFERENT, False)


def test_one_partition_with_many_keys_that_differ_leaves_those_of_another_to_be_seen() -> None:
    late = [Record(at, b"%d" % at, b"v", None, at) for at in range(60)]
    known = Record(99, b"known", b"v", None, 99)
    lost = [Record(50, b"lost", b"v", None, 50), known]
    jobs = MemoryJobs({"t0": late, "t1": lost}, {"a.t0": [], "a.t1": [known]})
    log = LogRange(0, 100)
    plans = [
        PartitionPlan(TopicPartition(name, 0), TopicPartition(f"a.{name}", 0), log, log, cut([], (), log, log))
        for name in ("t0", "t1")
    ]
    found = last_records(jobs, plans, 50)
    assert [one.verdict for one in found] == [PartitionVerdict.UNVERIFIABLE, PartitionVerdict.DIFFERENT]
    assert named(found[1]) == [("MISSING", 50, None, ())]


def test_what_the_job_could_not_tell_of_all_keys_is_unverifiable_and_not_kept_as_verified() -> None:
    made = VerifiedWorld()
    made.world.source_records.compacting.add("profiles")
    known = Record(99, b"known", b"v", None, 99)
    made.put("profiles", [*(Record(at, b"%d" % at, b"v", None, at) for at in range(60)), known], [known])
    made.jobs.last_values = partial(few_keys, made.jobs)  # type: ignore[method-assign]
    made.run(2)
    assert made.progress.status(made.now).partitions == {"UNVERIFIABLE": 1}


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_a_lost_value_or_deletion_is_found_wherever_the_comparison_begins_and_nothing_else_is(seed: int) -> None:
    log = compacted_log(0, random.Random(seed))
    (found,) = last_records_of(log, MemoryJobs({"c0": log.source}, {"a.c0": log.target}))
    assert found.verdict is (PartitionVerdict.DIFFERENT if log.differs else PartitionVerdict.VERIFIED), (log, found)


def last_records_of(log: CompactedLog, jobs: RecordJobs) -> list[PartitionReport]:
    return last_records(jobs, [log.plan()], 50)


def test_the_job_reads_no_more_for_a_deletion_than_at_once_and_says_that_it_is_not_proven() -> None:
    head = [Record(at, b"k%d" % at, b"v", None, at) for at in range(50)]
    tail = [Record(50, b"k3", None, None, 50), Record(51, b"last", b"v", None, 51)]
    log = CompactedLog(0, 50, [*head, *tail], [*head, replace(tail[1], offset=50)], {50}, Pair(50, 50))
    jobs = MemoryJobs({"c0": log.source}, {"a.c0": log.target})
    plan = replace(log.plan(), source=LogRange(0, 52), target=LogRange(0, 51))
    plan = replace(plan, windows=cut([Pair(50, 50)], (), plan.source, plan.target, 50, 1))
    for largest, verdict in ((100, PartitionVerdict.DIFFERENT), (10, PartitionVerdict.UNVERIFIABLE)):
        metered = MeteredJobs(jobs, ByteBudget(1, 1.0, 0.0, cautious=largest))
        (found,) = last_records(metered, [plan], 50)
        assert (found.verdict, found.is_whole) == (verdict, False)


def few_keys(jobs: MemoryJobs, source: Reads, target: Reads, most: int) -> tuple[list[KeySums], list[KeyRow]]:
    """None at all, in place of 50,000."""
    return MemoryJobs.last_values(jobs, source, target, 0)
