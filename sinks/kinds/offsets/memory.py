"""What a flow knows of offsets: MM2's syncs and checkpoints, and the answers that were given.

Syncs come with the stream, and from MM2's own topic where the stream cannot tell: at the start what came after the
ledger was last written, and at each full comparison what was missed. Each carries its offset in that topic, so that
one that comes twice changes nothing, and a gap shows that compaction took some.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sinks.engine.ledger import Entry, EntryKey, Ledger
from sinks.kafka.ports.cluster import Placed, Reader
from sinks.kinds.offsets.heard_queue import MOST_HEARD, HeardQueue
from sinks.kinds.offsets.histories import Histories
from sinks.kinds.offsets.history import NOWHERE, History, Pair
from sinks.kinds.offsets.translation import Answer
from streaming.errors import MalformedRecord
from streaming.hints import CheckpointSeen, SyncSeen
from streaming.mm2.codec import decode_checkpoint, decode_offset_sync
from streaming.mm2.records import TopicPartition

log = logging.getLogger(__name__)

Place = tuple[str, TopicPartition]
"""A group and one of its partitions."""


@dataclass(frozen=True, slots=True)
class MirrorTopics:
    """Where MM2 writes what a flow is about: its two topics, each with the cluster to read it from."""

    syncs: str
    syncs_on: Reader
    checkpoints: str
    checkpoints_on: Reader


@dataclass(frozen=True, slots=True)
class TopicIds:
    """The ids that a topic has on both sides, and the place in the offset-syncs topic from which syncs are about it."""

    source: str
    target: str
    since: int = NOWHERE

    def as_text(self) -> str:
        """For the ledger."""
        return f"{self.source} {self.target} {self.since}"

    @classmethod
    def parse(cls, text: str) -> TopicIds:
        """What `as_text` wrote."""
        source, target, since = text.split(" ")
        return cls(source, target, int(since))


class Heard(NamedTuple):
    """What the stream told of: groups that MM2 wrote a checkpoint for, partitions on the source that it restarted."""

    groups: set[str]
    restarted: set[TopicPartition]


class OffsetMemory:
    """All of it for one flow. `hear` may be called from any thread, everything else from one."""

    def __init__(self, most_heard: int = MOST_HEARD) -> None:
        self.histories = Histories()
        self.checkpoints: dict[Place, Pair] = {}
        """MM2's newest, by partition on the target."""
        self.answers: dict[Place, Answer] = {}
        """The last one given, by partition on the source."""
        self._ids: dict[str, TopicIds] = {}
        self._heard = HeardQueue(most_heard)
        self._topics: MirrorTopics | None = None
        self._saved_to = NOWHERE
        self._dropped: set[TopicPartition] = set()

    def hear(self, syncs: Collection[SyncSeen], checkpoints: Collection[CheckpointSeen]) -> None:
        """What a batch of the stream told; taken in by `drain`."""
        self._heard.put(syncs, checkpoints)

    def drain(self) -> Heard:
        """Takes in what was heard; what was too much of it is read from MM2's topics. Raises as `load` does."""
        groups: set[str] = set()
        restarted: set[TopicPartition] = set()
        batches, overflowed = self._heard.take()
        if overflowed and self._topics is not None:
            try:
                restarted |= self.catch_up(self._topics)
                groups |= self._read_checkpoints(self._topics)
            except BaseException:
                self._heard.overflow()
                raise
        for syncs, checkpoints in batches:
            restarted |= self._take_syncs(syncs)
            self._take_checkpoints(checkpoints)
            groups |= {seen.group for seen in checkpoints}
        return Heard(groups, restarted)

    def load(self, ledger: Ledger, topics: MirrorTopics) -> None:
        """What the ledger kept, and what MM2 wrote since then. Raises ClusterUnreachable, RightsMissing."""
        for where, history in ledger.histories():
            self.histories.restore(where, history)
        self._ids = {topic: TopicIds.parse(value) for (topic,), value in ledger.values(Entry.TOPIC_IDS).items()}
        self._saved_to = self.histories.position
        self._topics = topics
        self.catch_up(topics)
        self._read_checkpoints(topics)

    def _read_checkpoints(self, topics: MirrorTopics) -> set[str]:
        groups: set[str] = set()
        for chunk in topics.checkpoints_on.read_log_in_chunks(topics.checkpoints, 0):
            seen = list(_checkpoints(chunk.records))
            self._take_checkpoints(seen)
            groups |= {one.group for one in seen}
        return groups

    def catch_up(self, topics: MirrorTopics) -> set[TopicPartition]:
        """Takes in what the offset-syncs topic has beyond what is known, and notices when it was recreated.

        Returns the partitions that a restart of MM2 was told of.
        """
        known, restarted = self.histories.position, set[TopicPartition]()
        for chunk in topics.syncs_on.read_log_in_chunks(topics.syncs, known + 1):
            if chunk.whole and known != NOWHERE:
                log.warning("%s was recreated: its offset-syncs are counted anew", topics.syncs)
                self.histories.forget_positions()
                self._saved_to = known = NOWHERE
                self._ids = {topic: TopicIds(ids.source, ids.target) for topic, ids in self._ids.items()}
            restarted |= self._take_syncs(_syncs(chunk.records))
        return restarted

    def _take_syncs(self, syncs: Iterable[SyncSeen]) -> set[TopicPartition]:
        """The partitions that a restart of MM2 was told of."""
        restarted: set[TopicPartition] = set()
        for sync in syncs:
            if sync.position != self.histories.position + 1:
                # What compaction took from between two syncs of a partition may have told of a restart.
                self.histories.note_hole(sync.position)
            ids = self._ids.get(sync.topic)
            if (ids is None or sync.position > ids.since) and self.histories.take(
                sync.topic, sync.partition, sync.upstream, sync.downstream, sync.position
            ):
                restarted.add(TopicPartition(sync.topic, sync.partition))
        return restarted

    def _take_checkpoints(self, checkpoints: Iterable[CheckpointSeen]) -> None:
        for seen in checkpoints:
            place = (seen.group, TopicPartition(seen.topic, seen.partition))
            self.checkpoints[place] = Pair(seen.upstream, seen.downstream)

    def forget_groups(self, groups: Collection[str]) -> None:
        """Groups that are on the source no more."""
        self.answers = {place: answer for place, answer in self.answers.items() if place[0] not in groups}
        self.checkpoints = {place: pair for place, pair in self.checkpoints.items() if place[0] not in groups}

    def recognize(self, remote: Mapping[str, str], source: Mapping[str, str], target: Mapping[str, str]) -> set[str]:
        """Compares the ids of topics; forgets those that were made again, and returns their names on the source.

        `remote`: the name on the target by the name on the source; `source`, `target`: ids by name, "" where a
        cluster has none.
        """
        again: set[str] = set()
        for topic in remote.keys() & source.keys():
            known, seen = self._ids.get(topic), TopicIds(source[topic], target.get(remote[topic], ""))
            if known is None or not known.target:
                self._ids[topic] = TopicIds(seen.source, seen.target, known.since if known else NOWHERE)
            elif (known.source, known.target) != (seen.source, seen.target) and seen.target:
                self._forget(topic, remote[topic], seen)
                again.add(topic)
        return again

    def _forget(self, topic: str, remote: str, ids: TopicIds) -> None:
        self._ids[topic] = TopicIds(ids.source, ids.target, self.histories.position)
        self._dropped |= set(self.histories.drop(topic))
        self.checkpoints = {place: pair for place, pair in self.checkpoints.items() if place[1].topic != remote}
        self.answers = {place: answer for place, answer in self.answers.items() if place[1].topic != topic}

    def topics(self) -> frozenset[str]:
        """Those with a history, by their names on the source."""
        return self.histories.topics()

    def gone(self, topics: Collection[str]) -> None:
        """Forgets topics that are on the source no more."""
        for topic in topics:
            self._dropped |= set(self.histories.drop(topic))
            self.answers = {place: answer for place, answer in self.answers.items() if place[1].topic != topic}

    def save(self, ledger: Ledger) -> None:
        """Writes down what changed since the last time. Raises ClusterUnreachable."""
        position = self.histories.position
        kept: dict[TopicPartition, History | None] = dict.fromkeys(self._dropped)
        kept |= {where: self.histories.of(where) for where in self.histories.changed_since(self._saved_to)}
        ids: dict[EntryKey, str | None] = {
            (Entry.TOPIC_IDS, (topic,)): found.as_text() for topic, found in self._ids.items()
        }
        ledger.put(ids)
        ledger.put_histories(kept)
        self._saved_to = position
        self._dropped.clear()


def _syncs(records: Iterable[Placed]) -> Iterator[SyncSeen]:
    for position, key, value in records:
        try:
            sync = decode_offset_sync(key, value)
        except MalformedRecord:
            continue
        where = sync.topic_partition
        yield SyncSeen(position, where.topic, where.partition, sync.upstream_offset, sync.downstream_offset)


def _checkpoints(records: Iterable[Placed]) -> Iterator[CheckpointSeen]:
    for position, key, value in records:
        try:
            found = decode_checkpoint(key, value)
        except MalformedRecord:
            continue
        where = found.topic_partition
        yield CheckpointSeen(
            position, found.group, where.topic, where.partition, found.upstream_offset, found.downstream_offset
        )
