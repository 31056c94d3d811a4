"""Records that the source alone has, once it is back after a failover. Reads both clusters, writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from sinks.failover.arrival import arrivals
from sinks.failover.divergence import Divergence, divergences
from sinks.failover.scene import Scene
from sinks.failover.tails import print_of
from sinks.faults import ItemFault, Observed
from sinks.kafka.ports.groups import LogRange
from sinks.kafka.ports.record_reader import Ending, PartitionTime, Record, RecordReader, Span, Why
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

MOST = 1_000_000
"""Records of a partition that are read; more cannot be handed on at once."""

READ_WITHIN = 300.0
"""Seconds for all of them."""


@dataclass(frozen=True)
class Unreplicated:
    """By partition of the source, the records that never reached the target, those without any left out.

    `problems`: partitions of which nobody can tell. `exact`: whether no record of these was copied after all.
    """

    records: Mapping[TopicPartition, list[Record]]
    problems: Mapping[TopicPartition, str]
    exact: bool = True

    @property
    def count(self) -> int:
        """In all."""
        return sum(map(len, self.records.values()))

    def by_topic(self) -> dict[str, int]:
        """Records of each topic that has any."""
        found: Counter[str] = Counter()
        for where, records in self.records.items():
            found[where.topic] += len(records)
        return dict(sorted(found.items()))


class _AsItWas:
    """A reader of the target as it was when it took over: what clients wrote since is not there."""

    def __init__(self, reader: RecordReader, ends: Mapping[TopicPartition, int]) -> None:
        self._reader, self._ends, self.alias = reader, ends, reader.alias

    def ends(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        return self._cut(self._reader.ends(partitions))

    def readable(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        return self._cut(self._reader.readable(partitions))

    def _cut(self, seen: Observed[TopicPartition, LogRange]) -> Observed[TopicPartition, LogRange]:
        items = {
            where: replace(log, end=max(log.start, min(log.end, self._ends.get(where, log.end))))
            for where, log in seen.items.items()
        }
        return Observed(items, seen.errors)

    def offsets_for_times(self, moments: Collection[PartitionTime]) -> Observed[PartitionTime, int | None]:
        return self._reader.offsets_for_times(moments)

    def compacted(self, topics: Collection[str]) -> set[str]:
        return self._reader.compacted(topics)

    def scan(self, spans: Collection[Span], seconds: float) -> dict[Span, Ending]:
        return self._reader.scan(spans, seconds)

    def close(self) -> None:
        self._reader.close()


def unreplicated(scene: Scene) -> Unreplicated:
    """What lies beyond the divergence on the source, and is not on the target since. Raises LockstepError.

    Where MM2 went on after the takeover, what it copied then counts as copied.
    """
    known = divergences(scene.journal.ledger)
    pairs = {
        TopicPartition(topic, number): TopicPartition(one.remote, number)
        for topic, one in known.items()
        for number in range(len(one.ends))
    }
    with (
        closing(scene.source.records(scene.settings.isolation)) as source,
        closing(scene.target.records("read_uncommitted")) as target,
    ):
        taken = _takeover_ends(known)
        seen = arrivals(source, _AsItWas(target, taken), pairs)
        since = {where: one.behind.since for where, one in seen.items() if one.behind and one.behind.since is not None}
        here = _records(source, since)
        later = _records(target, {pairs[where]: taken.get(pairs[where], 0) for where in since})
    left = {where: _left(records, later[pairs[where]]) for where, records in here.items()}
    problems = {where: one.problem for where, one in seen.items() if one.problem}
    exact = all(one.behind is None or one.behind.exact for one in seen.values())
    return Unreplicated({where: records for where, records in left.items() if records}, problems, exact)


def _takeover_ends(known: Mapping[str, Divergence]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(one.remote, number): end
        for one in known.values()
        for number, end in enumerate(one.ends)
        if end >= 0
    }


def _left(records: list[Record], copied: list[Record]) -> list[Record]:
    """Those that have no copy among what came to the target later."""
    later = Counter((one.timestamp, one.digest) for one in map(print_of, copied))
    left = []
    for record in records:
        mark = (print_of(record).timestamp, print_of(record).digest)
        if later[mark]:
            later[mark] -= 1
        else:
            left.append(record)
    return left


def _records(reader: RecordReader, starts: Mapping[TopicPartition, int]) -> dict[TopicPartition, list[Record]]:
    """All records from these offsets on."""
    found: dict[TopicPartition, list[Record]] = {where: [] for where in starts}

    spans = [Span(where, start, None, MOST, _keeper(found[where])) for where, start in starts.items()]
    for span, ending in (reader.scan(spans, READ_WITHIN) if spans else {}).items():
        if ending.why is not Why.END:
            fault = ending.fault or ItemFault("TOO_MANY", ending.why.value)
            raise LockstepError(f"{span.where} on {reader.alias} could not be read to its end: {fault}")
    return found


def _keeper(found: list[Record]) -> Callable[[Record], bool]:
    def keep(record: Record) -> bool:
        found.append(record)
        return False

    return keep
