"""`cutover --verify`: the records of both sides compared, by Spark, before a flow ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from app.settings import Settings
from app.verify.spark_jobs import SparkOnDemand
from sinks.flow_settings import FlowSettings
from sinks.ledger.fence_rules import shown
from sinks.verify.differences import Difference
from sinks.verify.partition_verdicts import FlowReport, PartitionReport
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition
from streaming.number_of import number_of


class NotVerified(LockstepError):
    """Records are missing, changed, out of order or foreign, or could not be compared."""

    code = "NOT_VERIFIED"


class CopyComparison:
    """Of one flow, for one command; Spark runs from the first topics that are compared until it is closed."""

    def __init__(self, settings: Settings, flow: FlowSettings, say: Callable[[str], None]) -> None:
        self._settings, self._flow, self._say = settings, flow, say
        self._spark = SparkOnDemand("lockstep cutover")

    def compare(self, topics: Collection[str], ends: Mapping[TopicPartition, int]) -> None:
        """What was not verified yet of these topics. `ends`: where partitions of the target end, whatever clients wrote
        there since. Raises NotVerified, LockstepError."""
        from app.verify.flow_check import verify_rest

        self._say(f"comparing what was not verified yet of {number_of(len(topics), 'topic')}")
        report = verify_rest(self._settings, self._flow, self._spark, sorted(topics), ends)
        self._say(verdict_line(report))

    def close(self) -> None:
        """Ends Spark, where it was started."""
        self._spark.close()


def verdict_line(report: FlowReport) -> str:
    """In a line, what was found. Records that are there twice are named, and stop nothing: MM2 copies at least once,
    so that after a crash of it some are. Raises NotVerified for any other difference, and for records that are still to
    be copied: all have been waited for, so that one of which that is said was lost at the end."""
    partitions = number_of(len(report.partitions), "partition")
    if bad := [_described(one) for one in report.partitions if one.pending or not one.is_whole]:
        raise NotVerified(
            f"of {partitions} {number_of(len(bad), 'differs', 'differ')} or cannot be compared: {shown(bad)}. "
            "`lockstep verify` says what; the flow stays as it is"
        )
    twice = sum(one.differences.get(Difference.DUPLICATE, 0) for one in report.partitions)
    copies = f", {number_of(twice, 'is', 'are')} there once more (MM2 copies at least once)" if twice else ""
    compared = f"{number_of(report.records, 'record')} of {partitions}"
    return f"compared: {compared}; none is missing, changed or out of order{copies}"


def _described(one: PartitionReport) -> str:
    counts = [f"{count} {kind}" for kind, count in one.differences.items() if count]
    counts += [f"{one.pending} not on the target"] if one.pending else []
    return f"{one.where} {', '.join(counts) or one.verdict.value}"
