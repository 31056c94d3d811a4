"""Writes topics: creates, grows, deletes."""

from __future__ import annotations

from collections.abc import Sequence

from sinks.engine.model import Change, Op, Outcome
from sinks.kafka.ports.cluster import Cluster, Faults, TopicSpec
from sinks.kinds.topics.config_writer import REFUSALS

EXISTS = "TOPIC_ALREADY_EXISTS"
"""MM2 creates remote topics, too, maybe at the same moment: that is success, but the topic is not ours."""


class TopicWriter:
    """Writes changes of the kind `topic` that have one operation."""

    def __init__(self, target: Cluster) -> None:
        self._target = target

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """One outcome for each change. Raises ClusterUnreachable, RightsMissing."""
        steps = {Op.CREATE: self._create, Op.UPDATE: self._grow, Op.DELETE: self._delete}
        faults = steps[changes[0].op](changes)
        outcomes = []
        for change in changes:
            fault = faults.get(change.key[0])
            already = fault is not None and fault.code == EXISTS
            outcomes.append(Outcome(change, None if already else fault, already))
        return outcomes

    def _create(self, changes: Sequence[Change]) -> Faults:
        specs = {change.key[0]: change.after for change in changes if isinstance(change.after, TopicSpec)}
        faults = self._target.create_topics(specs)
        # A refused config must not keep the topic away: it is made bare, and each config is then tried by itself.
        bare = {
            name: TopicSpec(specs[name].partitions, specs[name].replication_factor)
            for name, fault in faults.items()
            if fault is not None and fault.code in REFUSALS and specs[name].configs
        }
        return faults | self._target.create_topics(bare) if bare else faults

    def _grow(self, changes: Sequence[Change]) -> Faults:
        return self._target.create_partitions(
            {change.key[0]: change.after.partitions for change in changes if isinstance(change.after, TopicSpec)}
        )

    def _delete(self, changes: Sequence[Change]) -> Faults:
        return self._target.delete_topics([change.key[0] for change in changes])
