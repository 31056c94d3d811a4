"""Where each partition diverged when the target took over: kept in the ledger, and what counts as missing since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import orjson

from sinks.failover.arrival import Arrival, arrivals
from sinks.failover.cut_reader import AsItWas
from sinks.failover.resent import Pairs
from sinks.kafka.ports.record_reader import RecordReader
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import Entry
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition


@dataclass(frozen=True, slots=True)
class Divergence:
    """Of one topic, by partition: the target's `ends` at the takeover, the source's `known` ends, and the records that
    were predicted to be lost (`exact`: no fewer). `remote`: its name on the target."""

    remote: str
    ends: Sequence[int]
    known: Sequence[int]
    lost: Sequence[int]
    exact: bool

    def to_text(self) -> str:
        """As the ledger keeps it."""
        return orjson.dumps(asdict(self)).decode()


def keep_divergences(ledger: Ledger, found: Mapping[str, Divergence]) -> None:
    """Keeps those that are not kept yet: a second run comes after clients have begun to write."""
    known = ledger.values(Entry.DIVERGENCE)
    ledger.put({(Entry.DIVERGENCE, (topic,)): one.to_text() for topic, one in found.items() if (topic,) not in known})


def divergences(ledger: Ledger) -> dict[str, Divergence]:
    """By topic of the source. Raises LockstepError for what cannot be read."""
    try:
        return {topic: Divergence(**orjson.loads(text)) for (topic,), text in ledger.values(Entry.DIVERGENCE).items()}
    except (ValueError, TypeError) as error:
        raise LockstepError(f"where partitions diverged cannot be read in {ledger.topic}: {error}") from error


def forget_divergences(ledger: Ledger) -> None:
    """The flow mirrors again."""
    ledger.put({(Entry.DIVERGENCE, key): None for key in ledger.values(Entry.DIVERGENCE)})


def takeover_ends(known: Mapping[str, Divergence]) -> dict[TopicPartition, int]:
    """Where the copies ended when the target took over, by partition there."""
    return {
        TopicPartition(one.remote, number): end
        for one in known.values()
        for number, end in enumerate(one.ends)
        if end >= 0
    }


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
