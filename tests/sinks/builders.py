"""Plain builders: a flow, its settings and two clusters in memory, with what a test does not care about left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any, cast

from sinks.engine.cluster_guard import ClusterGuard
from sinks.engine.deletion_checks import SECOND_LOOK_AFTER_S
from sinks.engine.flow_components import FlowComponents
from sinks.engine.reconcile import FlowReconcile
from sinks.engine.report import Observer, Report
from sinks.every_kind.controller import Controller, Write
from sinks.every_kind.wishes import Wishes
from sinks.flow_settings import AclRules, FlowSettings, Incremental, Limits, Pace
from sinks.kafka.ports.cluster import Cluster, ConfigEntry, Origin, Reader, TopicSpec
from sinks.kafka.ports.cluster_ports import ClusterPorts
from sinks.kafka.ports.watches import MetadataSignal, NoSignal
from sinks.kinds.acls.controller import write_acls
from sinks.kinds.assembly import EVERY_GROUP, Assembly, GroupScope, assemble
from sinks.kinds.brokers.rules import DEFAULT_PROPERTIES
from sinks.kinds.offsets import controller as offsets_controller
from sinks.kinds.shared_listings import SharedListings
from sinks.kinds.topics.writer import ConfigWriter, TopicWriter
from sinks.ledger.audit import Audit, Event, read_audit
from sinks.ledger.failover_record import FailoverRecord, State
from sinks.ledger.kept_divergences import Divergence, keep_divergences
from sinks.ledger.lease import Leadership, Unled
from sinks.ledger.ledger import Ledger
from sinks.ledger.ledger_entries import FAILOVER_STATE
from sinks.ledger.pins import PinFile
from sinks.model.changes import Change, Kind
from streaming.flow import Flow
from streaming.mm2.internal_topic_names import internal_topics
from streaming.mm2.replication_filters import DefaultConfigPropertyFilter, DefaultGroupFilter, DefaultTopicFilter
from streaming.mm2.replication_policy import DefaultReplicationPolicy
from tests.memory.memory_acls import MemoryAcls
from tests.memory.memory_cluster import MemoryCluster
from tests.memory.memory_groups import MemoryGroups
from tests.memory.memory_levels import MemoryLevels
from tests.memory.memory_records import MemoryRecords
from tests.memory.memory_users import MemoryUsers
from tests.sinks.memory_flow import Clock, Passwords, lister, memory_ports

# The clock of passes in memory is moved by hand. By the real one, a busy machine may stop a test for a second, and then
# a pass leaves the rest of MM2's topics to the next one.
offsets_controller.READS_FOR = float("inf")

FLOW = Flow("a", "b")
NOON = datetime(2024, 2, 29, 12, tzinfo=timezone.utc)

ON_BY_DEFAULT = tuple(kind for kind in Kind if kind not in (Kind.BROKER_CONFIG, Kind.CLIENT_QUOTA))


def flow_settings(
    properties: Mapping[str, str] | None = None,
    *,
    flow: Flow = FLOW,
    policy: DefaultReplicationPolicy | None = None,
    enabled: Collection[Kind] = ON_BY_DEFAULT,
    incremental: Incremental = Incremental.REQUESTED,
    topic_deletes: bool = False,
    acls: AclRules | None = None,
    pace: Pace | None = None,
    limits: Limits | None = None,
    emit_checkpoints: bool = False,
    matching: bool = False,
    isolation: str = "read_uncommitted",
) -> FlowSettings:
    """A flow of MM2's defaults; `properties` are for its policy and filters."""
    policy = policy or DefaultReplicationPolicy()
    topics, groups, configs = DefaultTopicFilter(), DefaultGroupFilter(), DefaultConfigPropertyFilter()
    for part in (policy, topics, groups, configs):
        part.configure(properties or {})
    return FlowSettings(
        flow=flow,
        policy=policy,
        topic_filter=topics,
        group_filter=groups,
        config_filter=configs,
        internal=internal_topics(policy, flow, "source"),
        enabled={kind: kind in enabled for kind in Kind},
        incremental=incremental,
        replication_factor=1,
        topic_deletes=topic_deletes,
        emit_checkpoints=emit_checkpoints,
        matching=matching,
        broker_configs=tuple(DEFAULT_PROPERTIES.split(", ")),
        acls=acls or AclRules(full=True),
        pace=pace or Pace(observe_rate=0),
        limits=limits or Limits(),
        isolation=isolation,
    )


def config_filter(properties: Mapping[str, str] | None = None) -> DefaultConfigPropertyFilter:
    """MM2's filter of configs."""
    built = DefaultConfigPropertyFilter()
    built.configure(properties or {})
    return built


def override(value: str | None, *, read_only: bool = False, sensitive: bool = False) -> ConfigEntry:
    """A config set on the topic itself."""
    return ConfigEntry(value, Origin.TOPIC, read_only, sensitive)


def config_change(topic: str, name: str, before: str | None, after: str | None) -> Change:
    """A change of one config."""
    return Change(Kind.TOPIC_CONFIG, (topic, name), before, after)


def topic_change(topic: str, before: int | None, after: int | None, **configs: str) -> Change:
    """A change of a topic by its partition counts; underscores in config names stand for dots."""
    overrides = tuple((name.replace("_", "."), value) for name, value in configs.items())
    return Change(
        Kind.TOPIC,
        (topic,),
        TopicSpec(before) if before is not None else None,
        TopicSpec(after, configs=overrides) if after is not None else None,
    )


def put_topic(cluster: MemoryCluster, topic: str, partitions: int = 1, **configs: str) -> None:
    """A topic that is there before the test begins; no write of Lockstep's."""
    overrides = tuple((name.replace("_", "."), value) for name, value in configs.items())
    cluster.create_topics({topic: TopicSpec(partitions, configs=overrides)})
    cluster.writes = 0


def set_config(cluster: MemoryCluster, topic: str, name: str, value: str | None) -> None:
    """A change by another client; not counted as a write of ours."""
    writes = cluster.writes
    fault = cluster.alter_topic_configs({topic: {name: value}})[topic]
    assert fault is None
    cluster.writes = writes


def overrides_of(cluster: MemoryCluster, topic: str) -> dict[str, str]:
    """What is set on a topic itself."""
    return dict(cluster.topics[topic].overrides)


def writers_to(
    cluster: Cluster, incremental: Incremental = Incremental.REQUIRED, acls: MemoryAcls | None = None
) -> dict[Kind, Write]:
    """A writer of each kind that needs no provider."""
    configs, acl = ConfigWriter(cluster, incremental), partial(write_acls, acls or MemoryAcls(cluster.alias))
    return {Kind.TOPIC: TopicWriter(cluster, configs).write, Kind.TOPIC_CONFIG: configs.write, Kind.ACL: acl}


def drained_in_a_batch(ledger: Ledger, topic: str, end: int, remote: str | None = None) -> None:
    """What `cutover --batch` keeps of a topic of one partition."""
    record = FailoverRecord(State.DRAINED, topics=(topic,))
    ledger.put({FAILOVER_STATE: record.to_text()})
    keep_divergences(ledger, {topic: Divergence(remote or f"a.{topic}", [end], [end], [0], True)})


@dataclass
class World:
    """A flow between two clusters in memory, its pass, and a clock moved by hand."""

    settings: FlowSettings = field(default_factory=flow_settings)
    source: MemoryCluster = field(default_factory=lambda: MemoryCluster("a", "id-of-a"))
    target: MemoryCluster = field(default_factory=lambda: MemoryCluster("b", "id-of-b"))
    clock: Clock = field(default_factory=Clock)
    audit: Audit | None = None
    read_source: Reader | None = None
    source_acls: MemoryAcls = field(default_factory=lambda: MemoryAcls("a"))
    target_acls: MemoryAcls = field(default_factory=lambda: MemoryAcls("b"))
    source_users: MemoryUsers = field(default_factory=lambda: MemoryUsers("a"))
    target_users: MemoryUsers = field(default_factory=lambda: MemoryUsers("b"))
    source_groups: MemoryGroups = field(default_factory=lambda: MemoryGroups("a"))
    target_groups: MemoryGroups = field(default_factory=lambda: MemoryGroups("b"))
    provider: Passwords = field(default_factory=lambda: Passwords())
    observers: list[Observer] = field(default_factory=list)
    source_levels: MemoryLevels = field(default_factory=lambda: MemoryLevels("a"))
    target_levels: MemoryLevels = field(default_factory=lambda: MemoryLevels("b"))
    source_records: MemoryRecords = field(default_factory=lambda: MemoryRecords("a"))
    target_records: MemoryRecords = field(default_factory=lambda: MemoryRecords("b"))
    others: dict[str, dict[str, Any]] = field(default_factory=dict)
    pins: PinFile | None = None
    now: Callable[[], datetime] = lambda: NOON
    wishes: Wishes = field(default_factory=Wishes)
    leadership: Leadership = field(default_factory=Unled)
    listings: SharedListings | None = None
    reviewed: bool = False
    signal: MetadataSignal = field(default_factory=NoSignal)
    source_epochs: Callable[[], Sequence[int]] = lambda: ()
    command: GroupScope | None = None
    """The groups of a command's single pass; None for the job's passes."""
    controllers: Sequence[Controller] = field(init=False)
    reconcile: FlowReconcile = field(init=False)

    def __post_init__(self) -> None:
        if self.settings.enabled.get(Kind.SCRAM_USER) and self.settings.provider is None:
            self.settings = replace(self.settings, provider=self.provider)
        self.restart()

    def restart(self) -> None:
        """A new process: everything kept in memory is gone."""
        source = cast(Cluster, self.read_source or self.source)
        ports = self._ports_of(source), self._ports_of_target()
        once, scope = self.command is not None, self.command or EVERY_GROUP
        assembly = Assembly(self.settings, *ports, once, comes_again=not once, scope=scope, wishes=self.wishes)
        made = assemble(assembly)
        self.controllers = made.controllers
        components = FlowComponents(
            topics=lister(self.settings, source, self.target, self.listings),
            guard=ClusterGuard(self.settings.flow, self.source, self.target, pins=self.pins),
            open_ledger=self.ledger,
            audit=self.audit or Audit(self.settings.internal.audit, self.target, 1, "tester@here", self.now),
            controllers=made.controllers,
            writers=made.writers,
            target=self.target,
            observers=self.observers,
            leadership=self.leadership,
            wishes=self.wishes,
            reviewed=self.reviewed,
            signal=self.signal,
            source_epochs=self.source_epochs,
        )
        self.reconcile = FlowReconcile(self.settings, components, self.clock)

    def _ports_of(self, source: Cluster) -> ClusterPorts:
        mine = self.source_acls, self.source_users, self.source_groups
        return memory_ports(source, *mine, self.others, self.source_levels, self.source_records)

    def _ports_of_target(self) -> ClusterPorts:
        mine = self.target_acls, self.target_users, self.target_groups
        ports = memory_ports(self.target, *mine, self.others, self.target_levels, self.target_records)
        return ports.written_with(self.leadership.check)

    def controller(self, kind: Kind) -> Controller:
        """That of this kind."""
        return next(one for one in self.controllers if kind in one.kinds)

    def ledger(self) -> Ledger:
        """The ledger as it is in its topic now."""
        permit = self.leadership.check
        return Ledger(self.settings.internal.ledger, self.target, self.target, 1, self.now, permit=permit)

    def run_pass(self, *requested: str, everything: bool = False, after: float = 1.0) -> Report:
        """One pass, `after` seconds later."""
        self.clock.now += after
        return self.reconcile.run_pass(requested, everything)

    def run_until_deleted(self, *, after: float = 1.0) -> Report:
        """A pass, and the one that looks again at what the first one would delete."""
        self.run_pass(after=after)
        return self.run_pass(after=SECOND_LOOK_AFTER_S)

    def settle(self) -> None:
        """Passes until one has nothing to do, then counts writes from zero."""
        for _ in range(5):
            if not self.run_pass().outcomes:
                break
        else:
            raise AssertionError("five passes in a row wrote something")
        self.run_pass()
        self.target.writes = 0

    def events(self) -> list[Event]:
        """What the audit topic says, oldest first."""
        return read_audit(self.settings.internal.audit, self.target)


def world_in_step() -> World:
    """x and y on the source, both in step, and nothing written yet."""
    built = World()
    put_topic(built.source, "x", 3, retention_ms="1")
    put_topic(built.source, "y")
    built.settle()
    return built
