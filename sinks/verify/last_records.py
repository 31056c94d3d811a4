"""The checks of compacted topics' partitions: what jobs bring of them, and what it proves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sinks.verify.compacted_rules import Keys, OddKey, compacted_report, is_unproven
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_verdicts import PartitionReport
from sinks.verify.record_jobs import RecordJobs
from streaming.mm2.records import TopicPartition
from streaming.verify.rows import KeyRow, KeySums, PartitionRead


@dataclass(frozen=True)
class _Read:
    """What was read of some of the plans, by their numbers."""

    keys: Mapping[int, Keys]
    rows: Sequence[KeyRow]


def last_records(
    jobs: RecordJobs,
    plans: Sequence[PartitionPlan],
    notes: Mapping[TopicPartition, Sequence[str]],
    most: int,
) -> list[PartitionReport]:
    """A report of each partition."""
    first = _read(jobs, plans, [number for number, plan in enumerate(plans) if plan.windows], most)
    unproven = {number for number, keys in first.keys.items() if is_unproven(plans[number], keys)}
    # What a lost deletion would have deleted may lie anywhere before: all that the target has is read for it.
    second = _read(jobs, plans, sorted(unproven), most, older=True) if unproven else _Read({}, ())
    keys = {**first.keys, **second.keys}
    rows = [row for row in first.rows if row.id not in second.keys] + list(second.rows)
    none = Keys(0, 0, None, None, times=True)
    return [
        compacted_report(
            plan,
            keys.get(number, none),
            [OddKey(row.source, row.target) for row in rows if row.id == number],
            notes[plan.where],
            unproven=number in unproven - second.keys.keys(),
        )
        for number, plan in enumerate(plans)
    ]


def _read(
    jobs: RecordJobs, plans: Sequence[PartitionPlan], numbers: Sequence[int], most: int, older: bool = False
) -> _Read:
    """`older`: all that the target has before what is compared, as well."""
    ours, theirs = [], []
    for number in numbers:
        plan = plans[number]
        first, last = plan.windows[0], plan.windows[-1]
        down = [plan.target.start if older else first.downstream, first.downstream, last.downstream_end]
        ours.append(PartitionRead(number, plan.where.topic, plan.where.partition, [first.upstream, last.upstream_end]))
        theirs.append(PartitionRead(number, plan.remote.topic, plan.remote.partition, down))
    sums, rows = jobs.last_values(ours, theirs, most)
    return _Read({one.id: _keys(one, plans[one.id]) for one in sums}, rows)


def _keys(one: KeySums, plan: PartitionPlan) -> Keys:
    return Keys(one.keys, one.different, one.agreed, one.last_ms, not one.appended, plan.resending, one.deletion)
