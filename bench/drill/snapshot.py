"""Both clusters as they are: logs record by record, offsets committed on the target, MM2's checkpoints."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as RdTopicPartition

from bench.drill.count import Entry
from bench.drill.readers import Commits
from bench.drill.source_load import name_of
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.cluster import Tail
from sinks.kafka.ports.groups import Offsets
from streaming.errors import LockstepError
from streaming.mm2.codec import decode_checkpoint
from streaming.mm2.records import TopicPartition

READ_WITHIN = 60.0
CHECKPOINTS: Final = "a.checkpoints.internal"

Logs = Mapping[TopicPartition, list[Entry]]
ByGroup = dict[str, dict[TopicPartition, int]]


def remote(where: TopicPartition) -> TopicPartition:
    """Its name on the target."""
    return TopicPartition(f"a.{where.topic}", where.partition)


def read_logs(bootstrap: str, starts: Mapping[TopicPartition, int]) -> Logs:
    """Committed records from these offsets to the end that the log has now."""
    config = {"bootstrap.servers": bootstrap, "group.id": "drill-reader", "isolation.level": "read_committed"}
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
    """What counts if the source is lost now. Partitions by their names on the source.

    `positions` on the source, `committed` and `checkpoints` on the target, `ends` of the target's logs.
    """

    positions: Mapping[str, Offsets]
    committed: ByGroup
    checkpoints: ByGroup
    ends: Mapping[TopicPartition, int]


class Target:
    """Looks at the groups of one round."""

    def __init__(self, target: KafkaCluster, groups: Collection[str], partitions: Iterable[TopicPartition]) -> None:
        self._target, self._groups = target, groups
        self._names = {remote(where): where for where in partitions}
        self._checkpoints: ByGroup = {group: {} for group in groups}
        self._tail: Tail = target.follow_log(CHECKPOINTS)

    def close(self) -> None:
        """Ends the reading of the checkpoints."""
        self._tail.close()

    def moment(self, commits: Commits) -> Snapshot:
        """Now. Nothing is committed on the source meanwhile; the ends come last, for the offsets must be below them."""
        with commits.lock:
            positions = dict(commits.committed)
            seen = self._target.groups.committed(self._groups)
            if seen.errors:
                raise LockstepError(f"offsets on the target cannot be read: {next(iter(seen.errors.items()))}")
            committed = {group: self._ours(seen.items[group]) for group in self._groups}
            checkpoints = self._newest_checkpoints()
            return Snapshot(positions, committed, checkpoints, self.ends())

    def ends(self) -> dict[TopicPartition, int]:
        """Of the target's logs that are there."""
        return {self._names[at]: log.end for at, log in self._target.groups.ends(self._names).items.items()}

    def last_copied(self, bootstrap: str) -> dict[TopicPartition, int]:
        """The id of the last record of each log that has one."""
        starts = {remote(where): end - 1 for where, end in self.ends().items() if end}
        return {self._names[at]: log[-1][1] for at, log in read_logs(bootstrap, starts).items() if log}

    def _ours(self, offsets: Offsets) -> dict[TopicPartition, int]:
        return {self._names[at]: offset for at, offset in offsets.items() if at in self._names}

    def _newest_checkpoints(self) -> ByGroup:
        while records := self._tail.next(0.3):
            for key, value in records:
                found = decode_checkpoint(key, value)
                if found.group in self._checkpoints and found.topic_partition in self._names:
                    where = self._names[found.topic_partition]
                    self._checkpoints[found.group][where] = found.downstream_offset
        return {group: dict(offsets) for group, offsets in self._checkpoints.items()}
