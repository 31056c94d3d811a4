"""Creates, grows and deletes topics. Writes their configs in the ways of `use.incremental.alter.configs` (KIP-894)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sinks.faults import IncrementalUnsupported, ItemFault
from sinks.flow_settings import Incremental
from sinks.kafka.ports.cluster import Cluster, Faults, TopicConfigs, TopicSpec
from sinks.kinds.refused_configs import REFUSALS, Values, write_configs
from sinks.model.changes import Change, Kind, Op, Outcome
from streaming.errors import LockstepError

log = logging.getLogger(__name__)

REPLACES = (
    "topic configs are written with the deprecated AlterConfigs, which replaces all configs of a topic ({}). It undoes "
    "what another client changes on {} between Lockstep's read and its write, excluded configs too"
)

UNREADABLE = ItemFault(
    "SENSITIVE_OVERRIDE",
    "the old AlterConfigs API would erase a sensitive override of this topic, whose value cannot be read; "
    "set use.incremental.alter.configs=requested",
)


class ConfigWriter:
    """Writes topic configs to one target. Remembers whether its brokers lack IncrementalAlterConfigs.

    It never asks for the lease. The port that it writes through does, before each request
    (`sinks.kafka.ports.permitted`).
    """

    def __init__(self, target: Cluster, mode: Incremental) -> None:
        self._target = target
        self._mode = mode
        self._incremental = mode is not Incremental.NEVER

    @property
    def warning(self) -> str | None:
        """Returns what an operator must know about how configs are written now; None if each config is altered by
        itself."""
        if self._incremental:
            return None
        alias = self._target.alias
        never = self._mode is Incremental.NEVER
        why = "use.incremental.alter.configs=never" if never else f"{alias} has no IncrementalAlterConfigs"
        return REPLACES.format(why, alias)

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """Returns an outcome per change. Raises IncrementalUnsupported, only in the mode `required`."""
        if self._incremental:
            try:
                return write_configs(changes, self._target.alter_topic_configs)
            except IncrementalUnsupported as error:
                self._fall_back(error)
        return write_configs(changes, self._replace)

    def _fall_back(self, error: IncrementalUnsupported) -> None:
        alias = self._target.alias
        if self._mode is Incremental.REQUIRED:
            raise IncrementalUnsupported(
                f"the target cluster {alias} is not compatible with IncrementalAlterConfigs API, and "
                "use.incremental.alter.configs=required asks for it: upgrade its brokers to Kafka 2.3 or later, or set "
                "`requested`"
            ) from error
        log.warning(
            "The target cluster %s is not compatible with IncrementalAlterConfigs API. Therefore using deprecated "
            "AlterConfigs API for syncing topic configurations",
            alias,
        )
        self._incremental = False

    def _replace(self, wanted: Mapping[str, Values]) -> Faults:
        """Write with the old API. It erases every config that it is not given, so the topic's other configs are read
        and written back."""
        current = self._target.describe_topic_configs(list(wanted))
        faults: Faults = dict(current.errors)
        merged: dict[str, dict[str, str]] = {}
        for topic, configs in current.items.items():
            present = overrides(configs)
            if present is None:
                faults[topic] = UNREADABLE
                continue
            merged[topic] = {name: value for name, value in (present | wanted[topic]).items() if value is not None}
        return faults | self._target.replace_topic_configs(merged) if merged else faults


def overrides(configs: TopicConfigs) -> Values | None:
    """Returns configs that are set on the topic itself; None if a value cannot be read."""
    found: Values = {}
    for name, entry in configs.items():
        if entry.is_override:
            if entry.value is None:
                return None
            found[name] = entry.value
    return found


EXISTS = "TOPIC_ALREADY_EXISTS"
"""Error if another client, for example MM2, created the topic at the same moment. The creation counts as applied, but
Lockstep does not own the topic."""

Applied = Mapping[str, str]


class TopicWriter:
    """Writes changes of the kind `topic` that have one operation.

    The outcome of a creation shows the configs that the new topic has. Each other config has an outcome of the kind
    `topic-config`, whether that kind is synced or not. The port asks for the lease before each request
    (`sinks.kafka.ports.permitted`).
    """

    def __init__(self, target: Cluster, configs: ConfigWriter) -> None:
        """`configs`: writes the configs of a topic that was refused with all of them at once."""
        self._target, self._configs = target, configs

    def write(self, changes: Sequence[Change]) -> list[Outcome]:
        """Returns an outcome for each change, and for each config that was refused at creation. Raises
        ClusterUnreachable, RightsMissing."""
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
        """Add configs one by one. Never raises, because the topics exist now and that must be recorded."""
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
    """`applied`: configs that were added to a topic that was created without any; None: it was created with all."""
    already = fault is not None and fault.code == EXISTS
    if isinstance(change.after, TopicSpec) and (already or applied is not None):
        change = replace(change, after=replace(change.after, configs=tuple(sorted((applied or {}).items()))))
    return Outcome(change, None if already else fault, already)
