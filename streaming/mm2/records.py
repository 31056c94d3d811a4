"""MirrorMaker 2's records as values: heartbeats, checkpoints and offset-syncs.

The names come from Kafka's `org.apache.kafka.connect.mirror` classes. Every value can be written in MM2's bytes: one
that could not (a negative offset, a name longer than 32,767 bytes) raises ValueError when it is built.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.message_words import Word

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
MAX_STRING_BYTES = 2**15 - 1
"""Most bytes of a Kafka STRING, whose length is a signed INT16."""


class RecordKind(Word):
    """Which of MM2's three internal topics a record comes from."""

    HEARTBEAT = "heartbeat"
    CHECKPOINT = "checkpoint"
    OFFSET_SYNC = "offset-sync"


def _check_string(what: str, text: str) -> None:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} {text!r} is not Unicode text: {error.reason}") from error
    if size > MAX_STRING_BYTES:
        raise ValueError(f"{what} has {size} bytes in UTF-8; a record of MM2 holds at most {MAX_STRING_BYTES}")


def _check_number(what: str, number: int, most: int) -> None:
    if not 0 <= number <= most:
        raise ValueError(f"{what} is {number}, it must lie between 0 and {most}")


@dataclass(frozen=True, order=True, slots=True)
class TopicPartition:
    """A partition of a topic, named as the cluster it is on names it."""

    topic: str
    partition: int

    def __post_init__(self) -> None:
        _check_string("the topic", self.topic)
        _check_number("the partition", self.partition, MAX_INT32)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """One beat of the heartbeat connector of the flow `source` -> `target`; `timestamp` in ms since the epoch."""

    source: str
    target: str
    timestamp: int

    def __post_init__(self) -> None:
        _check_string("the source alias", self.source)
        _check_string("the target alias", self.target)
        _check_number("the timestamp", self.timestamp, MAX_INT64)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """MM2's checkpoint of a consumer group: `upstream_offset` on the source, translated to `downstream_offset`.
    `topic_partition` has the topic's name on the *target*, as MirrorCheckpointTask writes it."""

    group: str
    topic_partition: TopicPartition
    upstream_offset: int
    downstream_offset: int
    metadata: str

    def __post_init__(self) -> None:
        _check_string("the group", self.group)
        _check_string("the metadata", self.metadata)
        _check_number("the upstream offset", self.upstream_offset, MAX_INT64)
        _check_number("the downstream offset", self.downstream_offset, MAX_INT64)


@dataclass(frozen=True, slots=True)
class OffsetSync:
    """The record at `upstream_offset` on the source arrived at `downstream_offset` on the target. `topic_partition` has
    the topic's name on the *source*, as MirrorSourceTask writes it."""

    topic_partition: TopicPartition
    upstream_offset: int
    downstream_offset: int

    def __post_init__(self) -> None:
        _check_number("the upstream offset", self.upstream_offset, MAX_INT64)
        _check_number("the downstream offset", self.downstream_offset, MAX_INT64)
