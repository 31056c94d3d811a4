"""Both clusters as they are: logs record by record, offsets committed on the target, MM2's checkpoints."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as RdTopicPartition

from bench.drill.source_load import Commits, Entry, Topic, name_of
from bench.pair import BenchPair, remote
from sinks.failover.cut_reader import AsItWas
from sinks.failover.predicted_loss import predicted
from sinks.failover.uncopied_records import arrivals
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import Tail
from sinks.kafka.ports.groups import Offsets
from sinks.ledger.kept_end_offsets import kept_end_offsets
from sinks.ledger.ledger import Ledger
from streaming.errors import LockstepError
from streaming.mm2.codec import decode_checkpoint
from streaming.mm2.records import TopicPartition

READ_WITHIN = 60.0
CHECKPOINTS: Final = "a.checkpoints.internal"
ISOLATION: Final = "read_committed"
"""Of MM2's consumer: it leaves out what was aborted."""

Logs = Mapping[TopicPartition, list[Entry]]
ByGroup = dict[str, dict[TopicPartition, int]]


def read_logs(bootstrap: str, starts: Mapping[TopicPartition, int]) -> Logs:
    """Committed records from these offsets to the end that the log has now."""
    config = {"bootstrap.servers": bootstrap, "group.id": "drill-reader", "isolation.level": ISOLATION}
    options = {"enable.partition.eof": True, "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    consumer = Consumer({**config, **options, "auto.offset.reset": "earliest"})
    logs: dict[TopicPartition, list[Entry]] = {where: [] for where in starts}
    open_, deadline = set(starts), time.monotonic() + READ_WITHIN
    try:
        consumer.assign([RdTopicPartition(at.topic, at.partition, offset) for at, offset in starts.items()])
        while open_:
            if time.monotonic() > deadline:
                raise LockstepError(f"the ends of {len(open_)} partitions were not reached within {READ_WITHIN:g} s")
            for message in consumer.consume(num_messages=5000, timeout=0.1):
                where, error = TopicPartition(message.topic() or "", message.partition() or 0), message.error()
                if error is None:
                    logs[where].append((message.offset() or 0, name_of(message.value())))
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_.discard(where)
                else:
                    raise KafkaException(error)
    finally:
        consumer.close()
    return logs


@dataclass(frozen=True)
class Snapshot:
    """What counts if the source is lost now.

    `positions` on the source, `committed` and `checkpoints` on the target, `ends` of the target's logs.
    """

    positions: Mapping[str, Offsets]
    committed: Mapping[str, Offsets]
    checkpoints: ByGroup
    ends: Mapping[TopicPartition, int]


class Target:
    """Looks at the groups of one round."""

    def __init__(self, target: KafkaCluster, groups: Collection[str], partitions: Iterable[TopicPartition]) -> None:
        self._target, self._groups = target, groups
        self._copies = {remote(where) for where in partitions}
        self._checkpoints: ByGroup = {group: {} for group in groups}
        self._tail: Tail = target.follow_log(CHECKPOINTS)

    def close(self) -> None:
        self._tail.close()

    def moment(self, commits: Commits) -> Snapshot:
        """Now. Nothing is committed on the source meanwhile; the ends come last, for the offsets must be below them."""
        with commits.lock:
            positions = dict(commits.committed)
            seen = self._target.groups.committed(self._groups)
            if seen.errors:
                raise LockstepError(f"offsets on the target cannot be read: {next(iter(seen.errors.items()))}")
            checkpoints = self._newest_checkpoints()
            return Snapshot(positions, seen.items, checkpoints, self.ends())

    def ends(self) -> Mapping[TopicPartition, int]:
        """Of the target's logs that are there."""
        return self._target.groups.latest(self._copies).items

    def last_copied(self, bootstrap: str) -> dict[TopicPartition, int]:
        """The id of the last record of each log that has one."""
        starts = {copy: end - 1 for copy, end in self.ends().items() if end}
        return {copy: log[-1][1] for copy, log in read_logs(bootstrap, starts).items() if log}

    def _newest_checkpoints(self) -> ByGroup:
        while records := self._tail.next(0.3):
            for key, value in records:
                found = decode_checkpoint(key, value)
                if found.group in self._checkpoints:
                    self._checkpoints[found.group][found.topic_partition] = found.downstream_offset
        return {group: dict(offsets) for group, offsets in self._checkpoints.items()}


# What a failover at a moment would lose: as it is counted, as it is predicted without the source, and as it was.

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


def losses(number: int, moment: str, pair: BenchPair, topics: Sequence[Topic]) -> Iterator[Loss]:
    """A row for each partition, if the source were lost now.

    The ledger comes first, as for `failover`: what it says of the target lies in the past. Then the target, then the
    source up to what a consumer could read, as commands do.
    """
    pairs = {where: remote(where) for topic in topics for where in topic.partitions}
    names = {topic.name: remote(topic.partitions[0]).topic for topic in topics}
    ledger = Ledger(LEDGER, pair.target, None, 1)
    kept = {topic: one for topic, one in kept_end_offsets(ledger).items() if topic in names}
    known = {TopicPartition(topic, number): end for topic, one in kept.items() for number, end in enumerate(one.ends)}
    with closing(pair.source.records(ISOLATION)) as ours, closing(pair.target.records(ISOLATION)) as theirs:
        copied_to = dict(theirs.latest([*pairs.values()]).items)
        ends = {where: log.end for where, log in ours.readable([*pairs]).items.items()}
        told = predicted(kept, AsItWas(theirs, copied_to), names, kept.keys())
    copied_to = {copy: copied_to.get(copy, 0) for copy in pairs.values()}
    with closing(pair.source.records(ISOLATION)) as ours, closing(pair.target.records()) as theirs:
        counted = arrivals(AsItWas(ours, ends), AsItWas(theirs, copied_to), {where: pairs[where] for where in ends})
    here = read_logs(pair.a.bootstrap, dict.fromkeys(pairs, 0))
    there = read_logs(pair.b.bootstrap, dict.fromkeys(pairs.values(), 0))
    for topic in topics:
        for where in topic.partitions:
            behind, prediction, copy = counted[where].behind, told.get(where), pairs[where]
            missing = partial(_missing, topic, topic.written[where], here[where], there[copy], copied_to[copy])
            yield Loss(
                number,
                moment,
                topic.kind.name,
                behind.records if behind else None,
                behind is not None and behind.exact,
                missing(ends[where]),
                prediction.behind.records if prediction and prediction.behind else None,
                missing(known[where]) if where in known else None,
            )


def _missing(
    topic: Topic, written: Sequence[Entry], source: Sequence[Entry], target: Sequence[Entry], copied_to: int, end: int
) -> int:
    """Records of the source before `end` that the target did not have when it ended at `copied_to`.

    What compaction has taken from the target since was there: of such a topic what is later than all copies is missing.
    """
    have = {name for offset, name in target if offset < copied_to}
    needed = [(offset, name) for offset, name in source if offset < end]
    if not topic.kind.configs:
        return sum(name not in have for _, name in needed)
    last = max((offset for offset, name in written if name in have), default=-1)
    return sum(offset > last for offset, _ in needed)
