"""Decodes records of MM2's own topics that are not read with the stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Placed, Reader
from streaming.errors import MalformedRecord
from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.codec import decode_checkpoint, decode_offset_sync


def sync_of(record: Placed) -> SyncSeen | None:
    """Returns the offset-sync in a record; None if it is none."""
    try:
        sync = decode_offset_sync(record.key, record.value)
    except MalformedRecord:
        return None
    where = sync.topic_partition
    return SyncSeen(record.position, where.topic, where.partition, sync.upstream_offset, sync.downstream_offset)


def checkpoints_of(records: Iterable[Placed]) -> Iterator[CheckpointSeen]:
    """Yields the checkpoints among records, in their order."""
    for position, key, value in records:
        try:
            found = decode_checkpoint(key, value)
        except MalformedRecord:
            continue
        where = found.topic_partition
        yield CheckpointSeen(
            position, found.group, where.topic, where.partition, found.upstream_offset, found.downstream_offset
        )


class ReadSoFar(NamedTuple):
    """The topic of MM2 that is being read, and the number of its offsets read so far."""

    what: str
    offsets: int


@dataclass(frozen=True, slots=True)
class MirrorTopics:
    """MM2's two topics of a flow, each with the cluster to read it from."""

    syncs: str
    syncs_on: Reader
    checkpoints: str
    checkpoints_on: Reader


def mirror_topics(settings: FlowSettings, source: Reader, target: Reader) -> MirrorTopics | None:
    """Returns MM2's topics of a flow between two clusters; None if the copier writes none."""
    if not settings.told_in:
        return None
    internal = settings.internal
    syncs_on = source if internal.offset_syncs_cluster == source.alias else target
    return MirrorTopics(internal.offset_syncs, syncs_on, internal.checkpoints, target)
