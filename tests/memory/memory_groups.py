"""Consumer groups in memory that keep Kafka's rules, for tests; the same contract as Kafka's."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sinks.faults import ItemFault, Observed
from sinks.kafka.ports.groups import GroupFaults, GroupReader, LogRange, Offsets, ends_of
from streaming.mm2.records import TopicPartition
from tests.memory.memory_cluster import GONE, answer

ACTIVE = ItemFault("UNKNOWN_MEMBER_ID", "The coordinator is not aware of this member.")


@dataclass
class MemoryGroups:
    """`offsets`: committed, by group; `active`: members, by group; `logs`: start and end of each partition;
    `ids`: of recreated topics; all others have the id that their name makes.

    `unreadable`: groups whose offsets cannot be read, each with the fault. `writes` counts write
    requests. Not `reachable`, it answers nothing.
    """

    alias: str
    offsets: dict[str, dict[TopicPartition, int]] = field(default_factory=dict)
    active: dict[str, int] = field(default_factory=dict)
    logs: dict[TopicPartition, LogRange] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, ItemFault] = field(default_factory=dict)
    reachable: bool = True
    writes: int = 0

    def names(self) -> set[str]:
        self._answer()
        return set(self.offsets) | set(self.active)

    def committed(self, groups: Collection[str]) -> Observed[str, Offsets]:
        self._answer()
        found = {group: dict(self.offsets.get(group, {})) for group in groups if group not in self.unreadable}
        return Observed(found, {group: self.unreadable[group] for group in groups if group in self.unreadable})

    def members(self, groups: Collection[str]) -> Observed[str, int]:
        self._answer()
        return Observed({group: self.active.get(group, 0) for group in groups})

    def ends(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        self._answer()
        found = {where: self.logs[where] for where in partitions if where in self.logs}
        return Observed(found, {where: GONE for where in partitions if where not in self.logs})

    def latest(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, int]:
        return ends_of(self.ends(partitions))

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        self._answer()
        there = {where.topic for where in self.logs}
        return {topic: self.ids.get(topic, f"id-of-{topic}") for topic in topics if topic in there}

    def commit(self, offsets: Mapping[str, Offsets]) -> GroupFaults:
        self._answer()
        if offsets:
            self.writes += 1
        faults: GroupFaults = {}
        for group, wanted in offsets.items():
            fault = ACTIVE if self.active.get(group) else None
            faults[group] = {where: fault or (None if where in self.logs else GONE) for where in wanted}
            if fault is None:
                committed = self.offsets.setdefault(group, {})
                committed.update({where: offset for where, offset in wanted.items() if where in self.logs})
        return faults

    def _answer(self) -> None:
        answer(self.alias, self.reachable)


class PlainGroupWatch:
    """Compares in Python. The contract suite's reference for `JvmGroupWatch`."""

    def __init__(self, groups: GroupReader) -> None:
        self._groups = groups
        self._last: dict[str, Offsets] = {}
        self.troubled: Collection[str] = ()

    def changed(self, groups: Collection[str], asked: Collection[str] | None = None) -> set[str]:
        seen = self._groups.committed(groups if asked is None else asked)
        found = {group for group, offsets in seen.items.items() if self._last.get(group) != offsets}
        followed = set(groups)
        self._last = {group: of for group, of in self._last.items() if group in followed} | dict(seen.items)
        self.troubled = frozenset(seen.errors)
        return found | self.troubled
