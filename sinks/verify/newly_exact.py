"""What the running job has compared since it wrote it down last: exact offsets, and the stretches that are whole."""

from __future__ import annotations

from collections.abc import Collection

from sinks.engine.ledger import Ledger
from sinks.kinds.offsets.exact_runs import ExactOffsets, ExactRuns, remember
from sinks.kinds.offsets.verified_stretches import Checked
from sinks.verify.partition_verdicts import PartitionReport
from streaming.mm2.records import TopicPartition


class NewlyExact:
    """Of one flow. `position`: how far the offset-syncs topic was read when the first of it was compared."""

    def __init__(self, position: int) -> None:
        self._position = position
        self._runs: dict[TopicPartition, ExactRuns] = {}
        self._checked: dict[TopicPartition, list[Checked]] = {}

    def keep(self, report: PartitionReport, known: ExactRuns | None, position: int) -> None:
        """What a report says; `known`: what the ledger has of the partition."""
        if not self._runs and not self._checked:
            self._position = position
        where = report.where
        if report.runs:
            before = self._runs.get(where) or ExactRuns(known.runs if known else (), position)
            self._runs[where] = before.renewed(report.runs, position)
        if report.checked is not None:
            self._checked.setdefault(where, []).append(report.checked)

    def forget(self, gone: Collection[TopicPartition] = (), topics: Collection[str] = ()) -> None:
        """Partitions that lost records, and topics that were recreated."""
        for where in [one for one in {**self._runs, **self._checked} if one in gone or one.topic in topics]:
            self._runs.pop(where, None)
            self._checked.pop(where, None)

    def write(self, ledger: Ledger, exact: ExactOffsets) -> None:
        """Into the flow's ledger, where there is one; it is forgotten here. Raises NotLeading, ClusterUnreachable."""
        runs, checked = self._runs, self._checked
        self._runs, self._checked = {}, {}
        if not ledger.exists:
            return
        # First what others have found meanwhile, `lockstep verify` say: a difference must not be written over.
        exact.renew(ledger)
        if runs or checked:
            remember(ledger, [(where, one.runs) for where, one in runs.items()], exact, self._position, checked)
            exact.renew(ledger)
