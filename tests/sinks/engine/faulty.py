"""A cluster in memory that hides topics, and whose writes fail before or after they take effect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from sinks.faults import ClusterUnreachable
from sinks.kafka.memory.memory_cluster import MemoryCluster
from sinks.kafka.ports.cluster import Alterations, Faults, TopicSpec

T = TypeVar("T")


class Crash(BaseException):
    """The process ends here."""


class When(str, Enum):
    """How a write fails."""

    BEFORE = "before it took effect"
    AFTER = "after it took effect"
    CRASH_BEFORE = "the process ends before it took effect"
    CRASH_AFTER = "the process ends after it took effect"


@dataclass
class FaultyCluster(MemoryCluster):
    """`hidden`: topics that no listing shows, as if DESCRIBE were missing. `failing`: how the write after the next
    `countdown` ones fails. `made`: ids of topics that were created through this client."""

    hidden: set[str] = field(default_factory=set)
    failing: When | None = None
    countdown: int = 0
    made: set[str] = field(default_factory=set)

    def list_topics(self) -> dict[str, int]:
        return {name: count for name, count in super().list_topics().items() if name not in self.hidden}

    def create_topics(self, specs: Mapping[str, TopicSpec]) -> Faults:
        def create() -> Faults:
            before = set(self.topics)
            faults = MemoryCluster.create_topics(self, specs)
            self.made |= {self.topics[name].id for name in specs if name in self.topics and name not in before}
            return faults

        return self._perhaps(create)

    def create_partitions(self, counts: Mapping[str, int]) -> Faults:
        return self._perhaps(lambda: MemoryCluster.create_partitions(self, counts))

    def delete_topics(self, topics: Collection[str]) -> Faults:
        return self._perhaps(lambda: MemoryCluster.delete_topics(self, topics))

    def alter_topic_configs(self, alterations: Alterations) -> Faults:
        return self._perhaps(lambda: MemoryCluster.alter_topic_configs(self, alterations))

    def append_log(self, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        self._perhaps(lambda: MemoryCluster.append_log(self, topic, records))

    def _perhaps(self, write: Callable[[], T]) -> T:
        if self.failing is None or self.countdown:
            self.countdown = max(0, self.countdown - 1)
            return write()
        how, self.failing = self.failing, None
        if how in (When.AFTER, When.CRASH_AFTER):
            write()
        if how in (When.CRASH_BEFORE, When.CRASH_AFTER):
            raise Crash(how.value)
        raise ClusterUnreachable(f"{self.alias}: the write failed {how.value}")
