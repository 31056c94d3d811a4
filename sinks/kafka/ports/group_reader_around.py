"""A `GroupReader` that knows some offsets by itself, and asks another one for everything else."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sinks.faults import Observed
from sinks.kafka.ports.groups import GroupReader, LogRange, Offsets
from streaming.mm2.records import TopicPartition


class GroupReaderAround:
    """All but `committed`, which its heirs answer; see `GroupReader` for meaning and errors."""

    def __init__(self, groups: GroupReader) -> None:
        self._groups = groups

    def names(self) -> set[str]:
        return self._groups.names()

    def members(self, groups: Collection[str]) -> Observed[str, int]:
        return self._groups.members(groups)

    def ends(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, LogRange]:
        return self._groups.ends(partitions)

    def latest(self, partitions: Collection[TopicPartition]) -> Observed[TopicPartition, int]:
        return self._groups.latest(partitions)

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        return self._groups.topic_ids(topics)

    def _with_others(self, known: Mapping[str, Offsets], groups: Collection[str]) -> Observed[str, Offsets]:
        """What is known, and of the other groups what the other reader says."""
        left = set(groups) - known.keys()
        if not left:
            return Observed(dict(known))
        others = self._groups.committed(left)
        return Observed({**known, **others.items}, others.errors)
