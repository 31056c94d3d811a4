"""Writes topics: creates, grows, deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sinks.faults import ItemFault
from sinks.kafka.ports.cluster import Cluster, Faults, TopicSpec
from sinks.kinds.topics.config_writer import REFUSALS, ConfigWriter
from sinks.model.changes import Change, Kind, Op, Outcome
from streaming.errors import LockstepError

EXISTS = "TOPIC_ALREADY_EXISTS"
"""MM2 creates remote topics, too, maybe at the same moment: that is success, but the topic is not ours."""

Applied = Mapping[str, str]


class TopicWriter:
    """Writes changes of the kind `topic` that have one operation.

    The outcome of a creation shows the configs that the topic has from us. Each of the others has an outcome of its
    own, of the kind `topic-config`, whether that kind is synced or not. The port asks for the lease before each request
    (`sinks.kafka.ports.permitted`).
    """

    def __init__(self, target: Cluster, configs: ConfigWriter) -> None:
        """`configs`: writes the configs of a topic that was refused with all of them."""
        self._target, self._configs = target, configs

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """An outcome for each change, and for each config refused on creation. Raises ClusterUnreachable,
        RightsMissing."""
        if changes[0].op is Op.CREATE:
            return self._create({change.key[0]: change for change in changes})
        faults = (self._grow if changes[0].op is Op.UPDATE else self._delete)(changes)
        return [Outcome(change, faults.get(change.key[0])) for change in changes]

    def _create(self, changes: Mapping[str, Change]) -> list[Outcome]:
        specs = {name: change.after for name, change in changes.items() if isinstance(change.after, TopicSpec)}
        faults = self._target.create_topics(specs)
        # A refused config must not keep the topic away: it is made bare, and each config is then tried by itself.
        bare = {
            name: replace(specs[name], configs=())
            for name, fault in faults.items()
            if fault is not None and fault.code in REFUSALS and specs[name].configs
        }
        if bare:
            faults |= self._target.create_topics(bare)
        configs = self._add_configs({name: specs[name] for name in bare if faults[name] is None})
        applied: dict[str, dict[str, str]] = {name: {} for name in bare}
        for one in configs:
            if one.error is None and isinstance(one.change.after, str):
                applied[one.change.key[0]][one.change.key[1]] = one.change.after
        outcomes = [_created(change, faults.get(name), applied.get(name)) for name, change in changes.items()]
        return outcomes + [one for one in configs if one.error is not None]

    def _add_configs(self, specs: Mapping[str, TopicSpec]) -> list[Outcome]:
        """Never raises: the topics are there, and that must be recorded."""
        changes = [
            Change(Kind.TOPIC_CONFIG, (topic, name), None, value)
            for topic, spec in specs.items()
            for name, value in spec.configs
        ]
        if not changes:
            return []
        try:
            return self._configs.write(changes)
        except LockstepError as error:
            fault = ItemFault(type(error).__name__, str(error))
            return [Outcome(change, fault) for change in changes]

    def _grow(self, changes: Sequence[Change]) -> Faults:
        return self._target.create_partitions(
            {change.key[0]: change.after.partitions for change in changes if isinstance(change.after, TopicSpec)}
        )

    def _delete(self, changes: Sequence[Change]) -> Faults:
        # By their ids: a topic that another client made anew in the meantime stays.
        ids = {change.key[0]: change.before.id for change in changes if isinstance(change.before, TopicSpec)}
        return self._target.delete_topics(list(ids), ids)


def _created(change: Change, fault: ItemFault | None, applied: Applied | None) -> Outcome:
    """`applied`: the configs written to a topic made bare; None: it was created with all of them."""
    already = fault is not None and fault.code == EXISTS
    if isinstance(change.after, TopicSpec) and (already or applied is not None):
        change = replace(change, after=replace(change.after, configs=tuple(sorted((applied or {}).items()))))
    return Outcome(change, None if already else fault, already)
