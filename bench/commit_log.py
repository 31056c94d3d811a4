"""What groups commit on a cluster, as its coordinators log it: no request for any group, and the time of each.

A record of `__consumer_offsets` begins, in key and value, with an INT16 version. In a key it says of what type the
record is (Kafka's CoordinatorRecordType): 0 and 1 are offset commits, the others tell of members and assignments. Of a
commit's value the offset comes first in every version (OffsetCommitValue; 4 is Kafka 4.1's, with the topic's id at its
end), and nothing behind it is needed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import Enum
from typing import Final, NamedTuple

import confluent_kafka as rd

from sinks.kinds.offsets.commit_ends import COMMITS_TOPIC
from streaming.mm2.records import TopicPartition

COMMIT_KEYS: Final = (0, 1)
"""Versions of keys that say: an offset commit (LegacyOffsetCommit, OffsetCommit)."""

LAST_OTHER_KEY: Final = 23
"""The highest that is known of the others (StreamsGroupTopology, Kafka 4.3)."""

LAST_VALUE: Final = 4
"""The highest version of a commit's value that is known."""

VERSION, LENGTH, PARTITION, OFFSET = 2, 2, 4, 8
"""Sizes in bytes."""

SHORTEST_KEY: Final = VERSION + LENGTH + LENGTH + PARTITION
SHORTEST_VALUE: Final = VERSION + OFFSET


WITHIN: Final = 10.0
AT_ONCE: Final = 1000
"""Records of one reading."""


class Seen(str, Enum):
    """What a record is. OTHER: of no commit. UNKNOWN_TYPE, UNKNOWN_VALUE: written by a Kafka that this does not know.

    MALFORMED: bytes that no Kafka writes.
    """

    COMMIT = "commit"
    OTHER = "other"
    UNKNOWN_TYPE = "unknown record type"
    UNKNOWN_VALUE = "unknown version"
    MALFORMED = "malformed"


class Commit(NamedTuple):
    """What a group committed of a partition; `offset` None: it was deleted, or expired."""

    group: str
    where: TopicPartition
    offset: int | None


class LoggedCommit(NamedTuple):
    """A commit; `at`: seconds since 1970, by the clock of its coordinator."""

    commit: Commit
    at: float


class CommitLog:
    """Reads on from where it was opened."""

    def __init__(self, consumer: rd.Consumer) -> None:
        self._consumer = consumer

    def read(self, seconds: float) -> list[LoggedCommit]:
        """What came, after a wait of so long for the first of it."""
        first = self._consumer.poll(seconds)
        records = [] if first is None else [first, *self._consumer.consume(AT_ONCE, timeout=0)]
        found = []
        for record in records:
            _, commit = read_record(record.key(), record.value())
            if record.error() is None and commit is not None and commit.offset is not None:
                found.append(LoggedCommit(commit, record.timestamp()[1] / 1000))
        return found


@contextmanager
def commit_log(bootstrap: str) -> Iterator[CommitLog]:
    """From the present end of `__consumer_offsets` on, which must be there."""
    config = {"bootstrap.servers": bootstrap, "group.id": "bench-reads-without-group", "enable.auto.commit": False}
    with closing(rd.Consumer(config)) as consumer:
        numbers = consumer.list_topics(COMMITS_TOPIC, timeout=WITHIN).topics[COMMITS_TOPIC].partitions
        places = [rd.TopicPartition(COMMITS_TOPIC, number) for number in numbers]
        for place in places:
            _, place.offset = consumer.get_watermark_offsets(place, timeout=WITHIN)
        consumer.assign(places)
        yield CommitLog(consumer)


def read_record(key: bytes | None, value: bytes | None) -> tuple[Seen, Commit | None]:
    """What a record is, and the commit where it is one. Of an unknown value the group and the partition are known."""
    if key is None or len(key) < VERSION:
        return Seen.MALFORMED, None
    version = _int16(key, 0)
    if version not in COMMIT_KEYS:
        return (Seen.OTHER if 0 <= version <= LAST_OTHER_KEY else Seen.UNKNOWN_TYPE), None
    found = _partition_of(key)
    if found is None:
        return Seen.MALFORMED, None
    group, where = found
    if value is None:
        return Seen.COMMIT, Commit(group, where, None)
    if len(value) < SHORTEST_VALUE:
        return Seen.MALFORMED, None
    if not 0 <= _int16(value, 0) <= LAST_VALUE:
        return Seen.UNKNOWN_VALUE, Commit(group, where, None)
    offset = int.from_bytes(value[VERSION:SHORTEST_VALUE], "big", signed=True)
    return (Seen.COMMIT, Commit(group, where, offset)) if offset >= 0 else (Seen.MALFORMED, None)


def _partition_of(key: bytes) -> tuple[str, TopicPartition] | None:
    """The group and the partition of a commit's key; None where the bytes are none."""
    if len(key) < SHORTEST_KEY:
        return None
    group_size = _int16(key, VERSION)
    group_end = VERSION + LENGTH + group_size
    if group_size < 0 or group_end + LENGTH + PARTITION > len(key):
        return None
    topic_size = _int16(key, group_end)
    topic_end = group_end + LENGTH + topic_size
    if topic_size < 0 or topic_end + PARTITION != len(key):
        return None
    partition = int.from_bytes(key[topic_end:], "big", signed=True)
    try:
        group = key[VERSION + LENGTH : group_end].decode("utf-8")
        topic = key[group_end + LENGTH : topic_end].decode("utf-8")
        return group, TopicPartition(topic, partition)
    except ValueError:
        return None


def _int16(data: bytes, at: int) -> int:
    (number,) = struct.unpack_from(">h", data, at)
    return int(number)
