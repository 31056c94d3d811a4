"""What is missing on a target to which clients of some topics may have moved already. Reads, writes nothing."""

from __future__ import annotations

from sinks.engine.ledger import Ledger
from sinks.failover.arrival import Arrival, arrivals
from sinks.failover.cut_reader import AsItWas
from sinks.failover.divergence import divergences, takeover_ends
from sinks.failover.resent import Pairs
from sinks.kafka.ports.record_reader import RecordReader
from streaming.mm2.records import TopicPartition


def as_at_takeover(ledger: Ledger, target: RecordReader) -> AsItWas:
    """The target without what came to copies since the ledger keeps where they diverged. Raises LockstepError."""
    return AsItWas(target, takeover_ends(divergences(ledger)))


def arrivals_at_takeover(
    ledger: Ledger, source: RecordReader, target: RecordReader, pairs: Pairs
) -> dict[TopicPartition, Arrival]:
    """As `arrivals`; copies of which the ledger keeps where they diverged count as they were then.

    Where that leaves a record missing, the copy counts as it is now if all is there for certain: MM2 may have copied
    it since. Raises ClusterUnreachable, RightsMissing, LockstepError.
    """
    taken = takeover_ends(divergences(ledger))
    found = arrivals(source, AsItWas(target, taken), pairs)
    later = {where: copy for where, copy in pairs.items() if copy in taken and not found[where].arrived}
    now = arrivals(source, target, later) if later else {}
    return found | {where: one for where, one in now.items() if one.arrived}
