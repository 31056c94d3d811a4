"""Tracks what the running job has compared of a flow, and which partitions are next. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timezone

from sinks.engine.verify_status import MOST_NAMED, STALLED, Comparing, VerifyStatus
from sinks.kafka.ports.groups import LogRange
from sinks.verify.partition_progress import LEFT_OUT, PartitionProgress, Stall
from streaming.mm2.records import TopicPartition

MOST_PARTITIONS = 500
"""Most partitions that one round of the record comparison takes."""

NOT_COMPARED = "NOT_COMPARED"
"""The verdict on partitions or topics that are on one side only, share a name on the target, or could not be read."""

PartitionPair = tuple[TopicPartition, TopicPartition]


def _known(now: tuple[str, str], before: tuple[str, str]) -> tuple[str, str]:
    return now[0] or before[0], now[1] or before[1]


def _differ(now: tuple[str, str], before: tuple[str, str]) -> bool:
    """Whether an id changed. An id that was unknown before has not changed."""
    return any(one != other for one, other in zip(now, before, strict=True) if other)


class FlowProgress:
    """What the job has compared of one flow. `now`: monotonic seconds. `seen_at`: seconds since the epoch."""

    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, PartitionProgress] = {}
        self._ids: dict[str, tuple[str, str]] = {}
        self.unmirrored = 0
        self.records = 0

    def see(
        self,
        found: Mapping[PartitionPair, tuple[LogRange, LogRange]],
        listed: Collection[PartitionPair],
        unmirrored: int,
        now: float,
        seen_at: float,
    ) -> set[TopicPartition]:
        """Takes in the partitions on both sides now. Returns those whose target log lost its tail.

        `found`: logs that could be read. A partition that could not be read, say without a leader, stays as before.
        `unmirrored`: how many topics and partitions cannot be compared.
        """
        there = {where for where, _ in listed}
        self.partitions = {where: one for where, one in self.partitions.items() if where in there}
        unknown = {where for where, _ in listed if where not in self.partitions} - {where for where, _ in found}
        self.unmirrored = unmirrored + len(unknown)
        lost = set()
        for (where, remote), (log, copy) in found.items():
            known = self.partitions.get(where)
            if known is None or known.remote != remote:
                stall = Stall(log.end, copy.end)
                known = self.partitions[where] = PartitionProgress(where, remote, log, copy, stall)
            if known.see(log, copy, now, seen_at):
                lost.add(where)
        return lost

    def recognize(self, ids: Mapping[str, tuple[str, str]]) -> set[str]:
        """Takes in ids of topics on both sides, "" if unknown. Returns topics that were recreated; their comparison
        begins anew."""
        known = {topic: _known(found, self._ids.get(topic, found)) for topic, found in ids.items()}
        recreated = {topic for topic, found in known.items() if _differ(found, self._ids.get(topic, found))}
        self._ids = known
        for where, one in self.partitions.items():
            if where.topic in recreated:
                one.restart()
        return recreated

    def tails(self) -> list[PartitionProgress]:
        """Partitions with something new at their end. The one that was compared longest ago comes first."""
        return self._in_turn(one for one in self.partitions.values() if one.has_uncompared)

    def histories(self, now: float) -> list[PartitionProgress]:
        """Partitions whose history was not compared yet, or is due again."""
        return self._in_turn(one for one in self.partitions.values() if one.history_is_due(now))

    @staticmethod
    def _in_turn(found: Iterable[PartitionProgress]) -> list[PartitionProgress]:
        return sorted(found, key=lambda one: (one.compared_at, one.where))[:MOST_PARTITIONS]

    def status(self, now: float) -> VerifyStatus:
        """Returns the state of the comparison while it runs."""
        found = list(self.partitions.values())
        stalled = sorted(one.where for one in found if one.stall.is_stalled(now))
        verdicts = Counter(one.verdict(now) for one in found)
        if self.unmirrored:
            verdicts[NOT_COMPARED] = self.unmirrored
        differences: Counter[tuple[str, str]] = Counter()
        for one in found:
            differences.update({(one.where.topic, str(kind)): count for kind, count in one.known.counts.items()})
        differences.update((where.topic, STALLED) for where in stalled)
        left_out = sum(one.end - one.start for progress in found for one in progress.left_out)
        return VerifyStatus(
            state=Comparing.RUNNING,
            reason=LEFT_OUT.format(left_out) if left_out else None,
            through=self._through(found),
            partitions=dict(sorted(verdicts.items())),
            differences=differences,
            stalled=tuple(f"{where.topic}-{where.partition}" for where in stalled[:MOST_NAMED]),
            dropped=sum(one.known.dropped_count for one in found),
            records=self.records,
            history=self._history(found),
        )

    @staticmethod
    def _through(found: Sequence[PartitionProgress]) -> datetime | None:
        times = [one.through_at for one in found]
        if not times or None in times:
            return None
        return datetime.fromtimestamp(min(time for time in times if time is not None), timezone.utc)

    @staticmethod
    def _history(found: Sequence[PartitionProgress]) -> float | None:
        if not found or any(one.history_end is None for one in found):
            return None
        there = sum(one.history_offsets for one in found)
        return sum(one.history_compared for one in found) / there if there else 1.0
