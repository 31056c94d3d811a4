"""The target as it was when it took over."""

from __future__ import annotations

from sinks.failover.arrival import Arrival, arrivals
from sinks.failover.cut_reader import AsItWas
from sinks.failover.uncopied_records import Behind, Pairs
from sinks.kafka.ports.record_reader import RecordReader
from sinks.ledger.kept_divergences import divergences, takeover_ends
from sinks.ledger.kept_end_offsets import UNSEEN_END
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
    taken, same = takeover_ends(divergences(ledger)), still_drained(ledger, source, target, pairs)
    others = {where: copy for where, copy in pairs.items() if where not in same}
    found = arrivals(source, AsItWas(target, taken), others)
    later = {where: copy for where, copy in others.items() if copy in taken and not found[where].arrived}
    now = arrivals(source, target, later) if later else {}
    arrived = {where: Arrival(where, Behind(0, None, True)) for where in same}
    return arrived | found | {where: one for where, one in now.items() if one.arrived}


def still_drained(
    ledger: Ledger, source: RecordReader, target: RecordReader, pairs: Pairs
) -> dict[TopicPartition, int]:
    """Returns the partitions of the source that were drained without a loss, and that end where they ended then, with
    the ends of their copies.

    Nothing is read again: clients that moved overwrite keys of a compacted copy, and its retention goes on.
    Raises ClusterUnreachable, RightsMissing, LockstepError.
    """
    known, drained = divergences(ledger), dict[TopicPartition, tuple[int, int]]()
    for where in pairs:
        one = known.get(where.topic)
        if one is not None and one.exact and where.partition < len(one.ends) and one.lost[where.partition] == 0:
            drained[where] = one.known[where.partition], one.ends[where.partition]
    if not drained:
        return {}
    here, there = source.latest(list(drained)).items, target.latest([pairs[where] for where in drained]).items
    return {
        where: end
        for where, (known_end, end) in drained.items()
        if here.get(where) == known_end and there.get(pairs[where], UNSEEN_END) >= end > UNSEEN_END
    }
