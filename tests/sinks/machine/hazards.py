"""What befalls a cluster in memory: it hides things, is away, and its writes fail before or after they take effect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeVar, cast

from sinks.faults import ClusterUnreachable
from sinks.kafka.ports.cluster import Alterations, Faults, TopicSpec
from sinks.model.changes import Key, Kind, Op
from tests.memory.memory_cluster import MemoryCluster

T = TypeVar("T")


class Crash(BaseException):
    """The process ends here."""


class When(str, Enum):
    """How a write fails."""

    BEFORE = "before it took effect"
    AFTER = "after it took effect"
    CRASH_BEFORE = "the process ends before it took effect"
    CRASH_AFTER = "the process ends after it took effect"


class Written(NamedTuple):
    """A write that took effect."""

    kind: Kind
    op: Op
    key: Key


def topic_of(one: Written) -> str | None:
    """The topic that was changed, or that an ACL names."""
    if one.kind in (Kind.TOPIC, Kind.TOPIC_CONFIG):
        return one.key[0]
    return one.key[1] if one.kind is Kind.ACL and one.key[0] == "TOPIC" else None


@dataclass
class Hazard:
    """Of all of a cluster. `failing`: how the write after the next `countdown` ones fails. `blank`: kinds that it
    shows empty. `stale`: what the next answer of a cluster about a kind shows, by alias; `misread`: kinds that got such
    an answer. `written`: what its clients wrote, until a test clears it."""

    failing: When | None = None
    countdown: int = 0
    blank: set[Kind] = field(default_factory=set)
    stale: tuple[str, Kind, object] | None = None
    misread: set[Kind] = field(default_factory=set)
    written: list[Written] = field(default_factory=list)

    def shown(self, alias: str, kind: Kind, now: T) -> T:
        """What a list is shown as: `now`, or once what a broker that is behind still has."""
        if self.stale is None or self.stale[:2] != (alias, kind):
            return now
        self.misread.add(kind)
        was, self.stale = self.stale[2], None
        return cast(T, was)

    def perhaps(self, write: Callable[[], T]) -> T:
        """Writes, or fails. Raises ClusterUnreachable, Crash."""
        if self.failing is None or self.countdown:
            self.countdown = max(0, self.countdown - 1)
            return write()
        how, self.failing = self.failing, None
        if how in (When.AFTER, When.CRASH_AFTER):
            write()
        if how in (When.CRASH_BEFORE, When.CRASH_AFTER):
            raise Crash(how.value)
        raise ClusterUnreachable(f"the write failed {how.value}")

    def note(self, kind: Kind, before: Mapping[Key, object], after: Mapping[Key, object]) -> None:
        """Takes down what became of each key."""
        for key in before.keys() | after.keys():
            if before.get(key) != after.get(key):
                op = Op.CREATE if key not in before else Op.DELETE if key not in after else Op.UPDATE
                self.written.append(Written(kind, op, key))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Another client writes: nothing fails, and none of it is Lockstep's."""
        failing, written = self.failing, list(self.written)
        self.failing = None
        yield
        self.failing, self.written = failing, written


@dataclass
class FaultyCluster(MemoryCluster):
    """`hidden`: topics that no listing shows, as if DESCRIBE were missing. `made`: ids of topics that were created
    through this client."""

    hidden: set[str] = field(default_factory=set)
    hazard: Hazard = field(default_factory=Hazard)
    made: set[str] = field(default_factory=set)

    def list_topics(self) -> dict[str, int]:
        return {name: count for name, count in super().list_topics().items() if name not in self.hidden}

    def create_topics(self, specs: Mapping[str, TopicSpec]) -> Faults:
        return self._noted(lambda: MemoryCluster.create_topics(self, specs), Kind.TOPIC)

    def create_partitions(self, counts: Mapping[str, int]) -> Faults:
        return self._noted(lambda: MemoryCluster.create_partitions(self, counts), Kind.TOPIC)

    def delete_topics(self, topics: Collection[str], ids: Mapping[str, str] | None = None) -> Faults:
        return self._noted(lambda: MemoryCluster.delete_topics(self, topics, ids), Kind.TOPIC)

    def alter_topic_configs(self, alterations: Alterations) -> Faults:
        return self._noted(lambda: MemoryCluster.alter_topic_configs(self, alterations), Kind.TOPIC_CONFIG)

    def create_log(self, topic: str, replication_factor: int | None, configs: Mapping[str, str]) -> None:
        self.hazard.perhaps(lambda: MemoryCluster.create_log(self, topic, replication_factor, configs))

    def append_log(self, topic: str, records: Sequence[tuple[bytes, bytes | None]]) -> list[int]:
        if topic not in self.topics:
            raise ClusterUnreachable(f"{self.alias}: {topic} takes no record within the time limit")
        return self.hazard.perhaps(lambda: MemoryCluster.append_log(self, topic, records))

    def _noted(self, write: Callable[[], T], kind: Kind) -> T:
        def noted() -> T:
            topics, configs = self._counts(), self._configs()
            ids = {one.id for one in self.topics.values()}
            done = write()
            self.made |= {one.id for one in self.topics.values()} - ids
            if kind is Kind.TOPIC:
                self.hazard.note(kind, topics, self._counts())
            else:
                self.hazard.note(kind, configs, self._configs())
            return done

        return self.hazard.perhaps(noted)

    def _counts(self) -> dict[Key, object]:
        return {(name,): one.partitions for name, one in self.topics.items()}

    def _configs(self) -> dict[Key, object]:
        return {(name, key): value for name, one in self.topics.items() for key, value in one.overrides.items()}
