"""`lockstep verify --export`: the records that differ, as Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from app.settings import Settings
from app.verify.spark_jobs import record_jobs
from sinks.flow_settings import FlowSettings
from sinks.verify.partition_verdicts import FlowReport, PartitionReport
from streaming.verify.rows import SOURCE, TARGET, DifferingRecord, PartitionRead

if TYPE_CHECKING:
    from streaming.verify.jobs import Session


def export_records(
    settings: Settings, flow: FlowSettings, report: FlowReport, spark: Callable[[int], Session], folder: str
) -> str | None:
    """Writes what the findings of a report name into a folder of the flow below this one, a row for each record and
    side, for its owner alone; its path, or None where nothing differs. `folder` is there already (`make_new_folder`).
    Raises what Spark raises, also where the flow's folder is there already.
    """
    found = [one for one in report.partitions if one.findings]
    if not found:
        return None
    # A second of imports, for whoever exports.
    from streaming.verify.export import write_differing

    path = f"{folder.rstrip('/')}/{flow.flow.source}-{flow.flow.target}"
    sides = []
    for side in (SOURCE, TARGET):
        records = [record for number, one in enumerate(found) for record in _records(number, one, side)]
        reads = [_read(number, one, side, records) for number, one in enumerate(found)]
        sides.append((side, [read for read in reads if read is not None], records))
    write_differing(record_jobs(settings, flow, spark(0)), sides, path)
    return path


def _records(number: int, one: PartitionReport, side: int) -> Iterator[DifferingRecord]:
    for finding in one.findings:
        first = finding.upstream if side == SOURCE else finding.downstream
        if first is not None:
            for offset in range(first, first + finding.count):
                yield DifferingRecord(number, offset, finding.difference.value, ", ".join(finding.fields))


def _read(number: int, one: PartitionReport, side: int, records: list[DifferingRecord]) -> PartitionRead | None:
    offsets = [record.offset for record in records if record.id == number]
    if not offsets:
        return None
    topic = one.where.topic if side == SOURCE else one.remote
    return PartitionRead(number, topic, one.where.partition, [min(offsets), max(offsets) + 1])
