"""Offset commits as the source's group coordinators write them, and their bytes, in plain Python.

A record of `__consumer_offsets` begins, in key and value, with an INT16 version. In a key it says of what type the
record is (Kafka's CoordinatorRecordType): 0 and 1 are offset commits, the others tell of members and assignments. Of a
commit's value the offset comes first in every version (OffsetCommitValue; 4 is Kafka 4.1's, with the topic's id at its
end), and nothing behind it is needed. `commit_columns` reads the same bytes with Spark's columns; this module is what
that is measured against.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from streaming.mm2.records import TopicPartition

COMMITS_TOPIC: Final = "__consumer_offsets"

GROUP_PREFIX: Final = "lockstep-commits"
"""With which the consumer group begins that reads it; it never commits, and has no members."""

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


Committed = Mapping[TopicPartition, int | None]
"""What one group committed last of each partition."""


@dataclass(frozen=True, slots=True)
class CommitBatch:
    """What a micro-batch brought. `commits`: the last of each group and partition, by group. `unread`: groups that
    committed something that is not understood. `undecodable`: how many records, by reason. `rows`: all records.
    `seconds`: what reading them took."""

    commits: Mapping[str, Committed] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    undecodable: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    seconds: float = 0.0


def commit_partition(group: str, partitions: int) -> int:
    """The partition of `__consumer_offsets`, of so many, that has a group's commits: Kafka's
    `GroupCoordinatorService.partitionFor`, which is `Utils.abs(group.hashCode()) % partitions`.
    """
    hashed = 0
    for (unit,) in struct.iter_unpack(">H", group.encode("utf-16-be", "surrogatepass")):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed >> 31 else hashed
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


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
