"""The checks of compacted topics' partitions: what jobs bring of them, and what it proves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sinks.verify.compacted_rules import Keys, OddKey, compacted_report
from sinks.verify.partition_check import PartitionPlan
from sinks.verify.partition_verdicts import PartitionReport
from sinks.verify.record_jobs import RecordJobs
from streaming.mm2.records import TopicPartition
from streaming.verify.rows import PartitionRead


def last_records(
    jobs: RecordJobs,
    plans: Sequence[PartitionPlan],
    notes: Mapping[TopicPartition, Sequence[str]],
    most: int,
) -> list[PartitionReport]:
    """A report of each partition."""
    ours, theirs = [], []
    for number, plan in enumerate(plans):
        if not plan.windows:
            continue
        first, last = plan.windows[0], plan.windows[-1]
        up, down = [first.upstream, last.upstream_end], [first.downstream, last.downstream_end]
        ours.append(PartitionRead(number, plan.where.topic, plan.where.partition, up))
        theirs.append(PartitionRead(number, plan.remote.topic, plan.remote.partition, down))
    sums, rows = jobs.last_values(ours, theirs, most)
    keys = {
        one.id: Keys(one.keys, one.different, one.agreed, one.last_ms, not one.appended, plans[one.id].resending)
        for one in sums
    }
    none = Keys(0, 0, None, None, times=True)
    return [
        compacted_report(
            plan,
            keys.get(number, none),
            [OddKey(row.source, row.target) for row in rows if row.id == number],
            notes[plan.where],
        )
        for number, plan in enumerate(plans)
    ]
