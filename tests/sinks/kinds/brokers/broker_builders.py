"""Builders for the brokers' configs: levels in memory, and a flow that keeps nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sinks.engine.cluster_guard import ClusterGuard
from sinks.engine.deletion_checks import SECOND_LOOK_AFTER_S
from sinks.engine.flow_components import FlowComponents
from sinks.engine.reconcile import FlowReconcile
from sinks.engine.report import Report
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Origin
from sinks.kafka.ports.config_levels import DEFAULT_OF_ALL, LevelledEntry, Levels, Synonym
from sinks.kinds.assembly import Assembly, assemble
from sinks.kinds.brokers.rules import PROPERTIES, BrokerConfigRules
from sinks.kinds.polled_controller import REST
from sinks.ledger.audit import Audit
from sinks.ledger.ledger import Ledger
from sinks.model.changes import Change, Kind
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_groups import MemoryGroups
from tests.memory.memory_levels import MemoryLevels
from tests.memory.memory_users import MemoryUsers
from tests.sinks.builders import NOON, Clock, flow_settings, memory_ports
from tests.sinks.memory_flow import PlainListing


def rules(chosen: str | None = None) -> BrokerConfigRules:
    """Of a list, or of the default one."""
    return BrokerConfigRules({} if chosen is None else {PROPERTIES: chosen})


def level(name: str, value: str | None, *origins: Origin) -> LevelledEntry:
    """An entry that has this value at each of these levels."""
    return LevelledEntry(value, origins[0], synonyms=tuple(Synonym(name, value, origin) for origin in origins))


def set_cluster_wide(**configs: str) -> Levels:
    """A cluster-wide default; underscores in names stand for dots."""
    names = {name.replace("_", "."): value for name, value in configs.items()}
    return {name: level(name, value, Origin.CLUSTER) for name, value in names.items()}


def broker_change(name: str, before: str | None, after: str | None) -> Change:
    """A change of the cluster-wide default."""
    return Change(Kind.BROKER_CONFIG, ("", name), before, after)


def default_of(levels: MemoryLevels) -> dict[str, str]:
    """What is set cluster-wide."""
    return dict(levels.set_at.get(DEFAULT_OF_ALL, {}))


def put(levels: MemoryLevels, configs: Mapping[str, str | None]) -> None:
    """A change of the cluster-wide default by another client; not counted as a write of ours."""
    writes = levels.writes
    assert levels.alter({DEFAULT_OF_ALL: configs}) == {DEFAULT_OF_ALL: None}
    levels.writes = writes


@dataclass
class BrokerWorld:
    """A flow between two clusters in memory that keeps broker configs, its pass, and a clock moved by hand."""

    settings: FlowSettings = field(default_factory=lambda: flow_settings(enabled=[Kind.BROKER_CONFIG]))
    source: MemoryLevels = field(default_factory=lambda: MemoryLevels("a"))
    target: MemoryLevels = field(default_factory=lambda: MemoryLevels("b"))
    clock: Clock = field(default_factory=Clock)
    topics: MemoryCluster = field(default_factory=lambda: MemoryCluster("b", "id-of-b"))

    def __post_init__(self) -> None:
        upstream, internal = MemoryCluster("a", "id-of-a"), self.settings.internal
        acls, users, groups = MemoryAcls("a"), MemoryUsers("a"), MemoryGroups("a")
        made = assemble(
            Assembly(
                self.settings,
                memory_ports(upstream, acls, users, groups, levels=self.source),
                memory_ports(self.topics, acls, users, groups, levels=self.target),
            ),
            [Kind.BROKER_CONFIG],
        )
        components = FlowComponents(
            topics=PlainListing(self.settings, upstream, self.topics),
            guard=ClusterGuard(self.settings.flow, upstream, self.topics),
            open_ledger=self.ledger,
            audit=Audit(internal.audit, self.topics, 1, "tester@here", lambda: NOON),
            controllers=made.controllers,
            writers=made.writers,
            target=self.topics,
        )
        self.reconcile = FlowReconcile(self.settings, components, self.clock)

    def ledger(self) -> Ledger:
        """The ledger as it is in its topic now."""
        return Ledger(self.settings.internal.ledger, self.topics, self.topics, 1, lambda: NOON)

    def run_pass(self, after: float = REST) -> Report:
        """One pass, `after` seconds later."""
        self.clock.now += after
        return self.reconcile.run_pass()

    def run_until_deleted(self) -> Report:
        """A pass, and the one that looks again at what the first one would delete."""
        self.run_pass()
        return self.run_pass(after=SECOND_LOOK_AFTER_S)
