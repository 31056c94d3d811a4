"""The target as it was when it took over."""

from __future__ import annotations

from sinks.failover.arrival import Arrival, arrivals
from sinks.failover.cut_reader import AsItWas
from sinks.failover.uncopied_records import Pairs
from sinks.kafka.ports.record_reader import RecordReader
from sinks.ledger.kept_divergences import divergences, takeover_ends
from sinks.ledger.ledger import Ledger
from streaming.mm2.records import TopicPartition


def as_at_takeover(ledger: Ledger, target: RecordReader) -> AsItWas:
    """Returns the target without what came to its copies since the takeover. Raises LockstepError."""
    return AsItWas(target, takeover_ends(divergences(ledger)))


def arrivals_at_takeover(
    ledger: Ledger, source: RecordReader, target: RecordReader, pairs: Pairs
) -> dict[TopicPartition, Arrival]:
    """Returns the same as `arrivals`. Copies with a recorded divergence count as they were then.

    A record missing there may have been copied since. If the copy is certainly complete now, it counts as it is now.
    Raises ClusterUnreachable, RightsMissing, LockstepError.
    """
    taken = takeover_ends(divergences(ledger))
    found = arrivals(source, AsItWas(target, taken), pairs)
    later = {where: copy for where, copy in pairs.items() if copy in taken and not found[where].arrived}
    now = arrivals(source, target, later) if later else {}
    return found | {where: one for where, one in now.items() if one.arrived}
