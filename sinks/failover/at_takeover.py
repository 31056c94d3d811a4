"""The target as it was when it took over."""

from __future__ import annotations

from collections.abc import Mapping

from sinks.failover.arrival import ALL_THERE, ARRIVAL_LIMITS, Arrival, arrivals
from sinks.failover.cut_reader import AsItWas
from sinks.failover.uncopied_records import Fingerprint, Pairs, fingerprint_of, read_records
from sinks.kafka.ports.record_reader import RecordReader, Why
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
    arrived = {where: Arrival(where, ALL_THERE) for where in same}
    return arrived | found | {where: one for where, one in now.items() if one.arrived}


def still_drained(
    ledger: Ledger, source: RecordReader, target: RecordReader, pairs: Pairs
) -> dict[TopicPartition, int]:
    """Returns the partitions of the source that were drained without a loss, and that end where they ended then, with
    the ends of their copies.

    Of the records only the last one is compared again: clients that moved overwrite keys of a compacted copy, and its
    retention goes on. Where the last one is another record, one of both logs is another log, or lost its tail.
    Raises ClusterUnreachable, RightsMissing, LockstepError.
    """
    known, drained = divergences(ledger), dict[TopicPartition, tuple[int, int]]()
    for where in pairs:
        one, number = known.get(where.topic), where.partition
        if one is not None and one.exact and number < len(one.ends) and one.lost[number] == 0 <= one.ends[number]:
            drained[where] = one.known[number], one.ends[number]
    if not drained:
        return {}
    here, there = source.latest(list(drained)).items, target.latest([pairs[where] for where in drained]).items
    same = {
        where: ends
        for where, ends in drained.items()
        if here.get(where) == ends[0] and there.get(pairs[where], UNSEEN_END) >= ends[1]
    }
    ours = _records_before(source, {where: end for where, (end, _) in same.items()})
    theirs = _records_before(target, {pairs[where]: end for where, (_, end) in same.items()})
    return {where: end for where, (_, end) in same.items() if _are_alike(ours[where], theirs[pairs[where]])}


def _records_before(
    reader: RecordReader, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Fingerprint | Why | None]:
    """Returns the record right before each end; None if there is none, a `Why` if it could not be read."""
    found = dict[TopicPartition, Fingerprint | Why | None]()
    spans = {where: (end - 1, end) for where, end in ends.items() if end > 0}
    endings = read_records(
        reader, spans, ARRIVAL_LIMITS, lambda where, record: found.update({where: fingerprint_of(record)})
    )
    for where in ends:
        why = endings[where].why if where in endings else Why.END
        found.setdefault(where, None if why in (Why.STOP, Why.END) else why)
    return found


def _are_alike(ours: Fingerprint | Why | None, theirs: Fingerprint | Why | None) -> bool:
    """Whether both may be one record: cleaners and retention take either, and a marker is none."""
    if isinstance(ours, Fingerprint) and isinstance(theirs, Fingerprint):
        return ours.digest == theirs.digest
    return not isinstance(ours, Why) and not isinstance(theirs, Why)
