"""MM2's newest checkpoint of each group and partition. Checkpoints from before a recreation or truncation are left
out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from sinks.every_kind.absence import MissingForLong
from sinks.every_kind.listing import Listed, replicated_topics
from sinks.kafka.ports.cluster import LogChunk
from sinks.kafka.ports.groups import GroupPartition
from sinks.kinds.offsets.history import NOWHERE, Pair
from sinks.kinds.offsets.mirror_records import checkpoints_of
from streaming.hints import CheckpointSeen
from streaming.mm2.records import TopicPartition
from streaming.mm2.topic_names import topic_name_fault


class KnownCheckpoints:
    """A flow's checkpoints. MM2 leaves checkpoints of deleted topics in its topic, and nothing there tells them
    apart."""

    def __init__(self) -> None:
        self.newest: dict[GroupPartition, Pair] = {}
        """By partition on the target."""
        self.read_to = NOWHERE
        """The highest offset in the checkpoints topic that was seen."""
        self.recreated = False
        """Whether the topic was recreated since `OffsetMemory` last adjusted the offsets it keeps of it."""
        self._positions: dict[GroupPartition, int] = {}
        self._since: dict[str, int] = {}
        self._doubtful: set[str] = set()
        self._unlisted = MissingForLong[GroupPartition]()

    def take(self, checkpoints: Iterable[CheckpointSeen]) -> set[str]:
        """Takes checkpoints in, in the order of their topic. Returns their groups. Impossible topic names are left
        out."""
        groups: set[str] = set()
        for seen in checkpoints:
            self.read_to = max(self.read_to, seen.position)
            if topic_name_fault(seen.topic):
                continue
            groups.add(seen.group)
            key = (seen.group, TopicPartition(seen.topic, seen.partition))
            if seen.topic not in self._doubtful and seen.position > self._since.get(seen.topic, NOWHERE):
                self.newest[key], self._positions[key] = Pair(seen.upstream, seen.downstream), seen.position
        return groups

    def catching_up(self, chunks_from: Callable[[int], Iterator[LogChunk]]) -> Iterator[None]:
        """Takes in what the topic has beyond what is known, a piece at a time. A topic that ends earlier was recreated.
        `chunks_from`: reads the topic from an offset on; what it raises is raised here."""
        known = self.read_to
        for chunk in chunks_from(known + 1):
            if chunk.whole and known != NOWHERE:
                self.count_again()
                known = NOWHERE
            self.take(checkpoints_of(chunk.records))
            if chunk.records:
                self.read_to = max(self.read_to, chunk.records[-1].position)
                yield

    def count_again(self) -> None:
        """The topic was recreated and counts from 0."""
        self.newest, self._positions, self._since, self.read_to = {}, {}, {}, NOWHERE
        self._unlisted = MissingForLong()
        self.recreated = True

    def believe_since(self, topic: str, position: int) -> None:
        """Drops checkpoints of a remote topic up to this offset of the checkpoints topic."""
        since = self._since[topic] = max(position, self._since.get(topic, NOWHERE))
        of_topic = (key for key in self.newest if key[1].topic == topic)
        self._drop({key for key in of_topic if self._positions.get(key, since) <= since})

    def doubt(self, topic: str) -> None:
        """A remote topic was recreated or truncated: its checkpoints do not count until `settle`."""
        self.believe_since(topic, self.read_to)
        self._doubtful.add(topic)

    @property
    def is_settled(self) -> bool:
        """Whether `settle` has nothing to do."""
        return not self._doubtful

    def settle(self) -> dict[str, int]:
        """Lets doubtful topics count again, from now on. All that the checkpoints topic has was taken in, and may be
        about the former topic. Returns the offset from which checkpoints count, by remote topic."""
        settled = dict.fromkeys(self._doubtful, self.read_to)
        for topic, position in settled.items():
            self.believe_since(topic, position)
        self._doubtful.clear()
        return settled

    def forget_groups(self, groups: Collection[str]) -> None:
        """Forgets groups that the source no longer has."""
        self._drop({key for key in self.newest if key[0] in groups})

    def forget_unlisted(self, listed: Listed, groups: Collection[str], now: float) -> None:
        """At each full comparison: forgets partitions that were not replicated, and groups that the source lacked, for
        long enough. A record in MM2's topic can name any. `groups`: the source's, empty if unknown. `now` in monotonic
        seconds."""
        unlisted: list[GroupPartition] = []
        if listed.source and listed.target:
            copies = {remote: listed.target[remote] for remote in replicated_topics(listed).values()}
            unlisted = [key for key in self.newest if (groups and key[0] not in groups) or _lacks(copies, key[1])]
        self._drop(self._unlisted.lasting(unlisted, now))

    def _drop(self, keys: Collection[GroupPartition]) -> None:
        for key in keys:
            self.newest.pop(key, None)
            self._positions.pop(key, None)


def _lacks(topics: Mapping[str, int], where: TopicPartition) -> bool:
    """Whether these topics lack a partition. `topics`: partitions of each, 0 if unknown."""
    count = topics.get(where.topic)
    return count is None or 0 < count <= where.partition
