"""Groups with known positions: they read, commit, and stop at the end, near it, or anywhere."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from app.local.waiting import wait_for
from bench.drill.source_load import Topic
from sinks.kafka.kafka_cluster import KafkaCluster
from sinks.kafka.ports.groups import Offsets
from streaming.errors import LockstepError
from streaming.mm2.records import TopicPartition

END, NEAR, ANYWHERE = PLACES = ("at the end", "near the end", "anywhere")

NEAR_RECORDS: Final = 200
"""The farthest that a group near the end is behind it."""

EVERY = 0.5
"""Seconds between two commits of a group."""

COMMITTED_WITHIN = 60.0


@dataclass
class DrillReader:
    """One group on one topic. `read`: how many records of each partition; `stops`: share of the round after which."""

    group: str
    topic: Topic
    place: str
    behind: int
    stops: float
    to_log_end: bool
    read: dict[TopicPartition, int] = field(default_factory=lambda: defaultdict(int))

    def advance(self, done: float, chance: random.Random) -> None:
        """`done`: share of the round that is over; 1 when nothing more is written."""
        for where in self.topic.partitions:
            count = len(self.topic.written[where])
            if self.place == END:
                self.read[where] = count
            elif self.place == NEAR:
                self.read[where] = max(self.read[where], count - self.behind)
            elif done < self.stops:
                self.read[where] = chance.randint(self.read[where], count)

    def positions(self) -> Offsets:
        """The offset after the last record read, of each partition."""
        written = self.topic.written
        return {
            where: written[where][self.read[where] - 1][0] + 1 if self.read[where] else 0
            for where in self.topic.partitions
        }


def readers(topics: Sequence[Topic], each: int, chance: random.Random) -> list[DrillReader]:
    """So many groups for each topic and place. Half of those at the end commit the log's own end in the last commit.

    As consumers do: librdkafka's position is after the last record, Java's also after the transaction's marker.
    """
    return [
        DrillReader(
            f"{topic.name}-{place.replace(' ', '-')}-{number}",
            topic,
            place,
            behind=chance.randint(1, NEAR_RECORDS if topic.kind.burst > 1 else 5),
            stops=chance.uniform(0.1, 1.0),
            to_log_end=place == END and number % 2 == 1,
        )
        for topic in topics
        for place in PLACES
        for number in range(each)
    ]


class Commits:
    """Commits for all readers. `lock`: held, nothing is committed."""

    def __init__(
        self, source: KafkaCluster, readers: Sequence[DrillReader], seconds: float, chance: random.Random
    ) -> None:
        self._source, self._readers, self._seconds, self._random = source, readers, seconds, chance
        self.lock = threading.Lock()
        self.committed: dict[str, Offsets] = {}

    def begin(self) -> None:
        """Each at offset 0, so that everybody knows the groups before the round begins."""
        start: dict[str, Offsets] = {one.group: dict.fromkeys(one.topic.partitions, 0) for one in self._readers}
        wait_for(lambda: not self._faults(start), COMMITTED_WITHIN, "the groups' first commits")

    def run(self, stop: threading.Event) -> None:
        """Until `stop`. Raises LockstepError when a commit is refused."""
        ticks = 0
        while not stop.wait(EVERY):
            ticks += 1
            self._commit(min(ticks * EVERY / self._seconds, 0.999), at_end=False)

    def finish(self) -> None:
        """The last ones, when nothing is written any more."""
        self._commit(1.0, at_end=True)

    def _commit(self, done: float, *, at_end: bool) -> None:
        with self.lock:
            for one in self._readers:
                one.advance(done, self._random)
            offsets: dict[str, Offsets] = {one.group: one.positions() for one in self._readers}
            if at_end:
                offsets |= self._log_ends()
            if faults := self._faults(offsets):
                raise LockstepError(f"commits on the source were refused: {faults[:3]}")

    def _log_ends(self) -> dict[str, Offsets]:
        last = [one for one in self._readers if one.to_log_end]
        ends = self._source.groups.ends([where for one in last for where in one.topic.partitions]).items
        return {one.group: {where: ends[where].end for where in one.topic.partitions} for one in last}

    def _faults(self, offsets: dict[str, Offsets]) -> list[str]:
        changed = {group: of for group, of in offsets.items() if self.committed.get(group) != of}
        found = self._source.groups.commit(changed)
        faults = [f"{group}: {fault}" for group, of in found.items() for fault in of.values() if fault is not None]
        if not faults:
            self.committed |= changed
        return faults
