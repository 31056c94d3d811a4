"""What a failover at a moment would lose: as it is counted, as it is predicted without the source, and as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from app.local.local_cluster import LocalCluster
from bench.drill.snapshot import Logs, read_logs, remote
from bench.drill.source_load import Topic
from sinks.failover.arrival import Arrival, arrivals
from sinks.failover.cut_reader import AsItWas
from sinks.failover.unplanned import predicted
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.groups import LogRange
from sinks.kinds.offsets.stored_memory import stored_histories
from sinks.ledger.kept_end_offsets import kept_end_offsets
from sinks.ledger.ledger import Ledger
from streaming.mm2.records import TopicPartition

LEDGER = "lockstep-ledger.a.internal"


@dataclass(frozen=True, slots=True)
class Loss:
    """Of one partition at one moment. Records.

    `counted` and `exact`: as `preflight`, `failover` and `cutover` count with the source; None: unknown.
    `measured`: records that a consumer of the source could read and that the target did not have, by their ids.
    `predicted`: from what the job had kept in the ledger, as `failover` without the source; `measured_known`: what was
    missing of what the job had seen. None where no job kept anything of the partition.
    """

    round: int
    moment: str
    topic: str
    counted: int | None
    exact: bool
    measured: int
    predicted: int | None
    measured_known: int | None


@dataclass(frozen=True)
class Cut:
    """Both clusters at one moment, the target first, as commands do. `known`: the source's ends in the ledger.

    Partitions by their names on the source; `source` up to what a consumer could read.
    """

    source: Mapping[TopicPartition, int]
    target: Mapping[TopicPartition, LogRange]
    known: Mapping[TopicPartition, int]
    predictions: Mapping[TopicPartition, Arrival]


def cut(source: KafkaCluster, target: KafkaCluster, topics: Sequence[Topic], isolation: str) -> Cut:
    """Now. The ledger comes first, as for `failover`: what it says of the target lies in the past."""
    partitions = [where for topic in topics for where in topic.partitions]
    ledger = Ledger(LEDGER, target, None, 1)
    names = {topic.name: remote(topic.partitions[0]).topic for topic in topics}
    kept = {topic: one for topic, one in kept_end_offsets(ledger).items() if topic in names}
    histories = dict(stored_histories(ledger))
    with closing(source.records(isolation)) as ours, closing(target.records("read_committed")) as theirs:
        there = theirs.ends([remote(where) for where in partitions]).items
        here = ours.readable(partitions).items
        as_it_was = AsItWas(theirs, {copy: log.end for copy, log in there.items()})
        predictions = predicted(kept, histories, as_it_was, names)
    return Cut(
        {where: log.end for where, log in here.items()},
        {where: there.get(remote(where), LogRange(0, 0)) for where in partitions},
        {TopicPartition(topic, number): end for topic, one in kept.items() for number, end in enumerate(one.ends)},
        predictions,
    )


def losses(
    number: int,
    moment: str,
    source: tuple[LocalCluster, KafkaCluster],
    target: tuple[LocalCluster, KafkaCluster],
    topics: Sequence[Topic],
    seen: Cut,
    isolation: str,
) -> Iterator[Loss]:
    """A row for each partition, from both clusters as they were at the cut."""
    pairs = {where: remote(where) for where in seen.source}
    with closing(source[1].records(isolation)) as ours, closing(target[1].records()) as theirs:
        ends = {remote(where): log.end for where, log in seen.target.items()}
        counted = arrivals(AsItWas(ours, seen.source), AsItWas(theirs, ends), pairs)
    here = read_logs(source[0].bootstrap, dict.fromkeys(pairs, 0))
    there = read_logs(target[0].bootstrap, dict.fromkeys(pairs.values(), 0))
    copied: Logs = {where: there[copy] for where, copy in pairs.items()}
    for topic in topics:
        for where in topic.partitions:
            behind, told = counted[where].behind, seen.predictions.get(where)
            known = seen.known.get(where)
            yield Loss(
                number,
                moment,
                topic.kind.name,
                behind.records if behind else None,
                behind is not None and behind.exact,
                _missing(topic, where, here, copied, seen.source[where], seen.target[where].end),
                told.behind.records if told and told.behind else None,
                None if known is None else _missing(topic, where, here, copied, known, seen.target[where].end),
            )


def _missing(topic: Topic, where: TopicPartition, source: Logs, target: Logs, end: int, copied_to: int) -> int:
    """Records of the source before `end` that the target did not have when it ended at `copied_to`.

    What compaction has taken from the target since was there: of such a topic what is later than all copies is missing.
    """
    have = {name for offset, name in target[where] if offset < copied_to}
    needed = [(offset, name) for offset, name in source[where] if offset < end]
    if not topic.kind.configs:
        return sum(name not in have for _, name in needed)
    last = max((offset for offset, name in topic.written[where] if name in have), default=-1)
    return sum(offset > last for offset, _ in needed)
