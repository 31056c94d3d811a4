"""What the sink of one flow must know, as plain values. `app.settings` builds them from the properties."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from sinks.model.changes import Kind
from sinks.model.principals import NOBODY, NamedPrincipals, PrincipalFilter, PrincipalMapping
from sinks.plugins.credential_provider import CredentialProvider
from sinks.plugins.listeners import (
    DefaultFailoverListener,
    DefaultGroupListener,
    DefaultTopicListener,
    FailoverListener,
    GroupListener,
    TopicListener,
)
from sinks.plugins.plugin_closing import PluginClosing
from streaming.flow import Flow
from streaming.mm2.internal_topic_names import InternalTopics, TopicOn, TopicRole, roles_of_flow
from streaming.mm2.replication_filters import ConfigPropertyFilter, GroupFilter, TopicFilter
from streaming.mm2.replication_policy import ReplicationPolicy


class Incremental(str, Enum):
    """`use.incremental.alter.configs` (KIP-894)."""

    REQUESTED = "requested"
    REQUIRED = "required"
    NEVER = "never"


class Copier(str, Enum):
    """`lockstep.copier`: what copies a flow's records.

    OFFSET_PRESERVING: records keep their offsets and topics their names. No topic shows how far it has copied.
    """

    MM2 = "mm2"
    OFFSET_PRESERVING = "offset-preserving"

    @property
    def label(self) -> str:
        """The copier's name in messages."""
        return "MM2" if self is Copier.MM2 else "the copier"


@dataclass(frozen=True, slots=True)
class Limits:
    """When a plan refuses itself: it deletes more than `max_delete_percent` of a kind, or creates more than
    `max_create` of it within an hour.

    A kind with fewer than `max_delete_minimum` items counts as if it had so many, so that one of three may be deleted.
    """

    max_delete_percent: float = 30.0
    max_delete_minimum: int = 10
    max_create: int = 50_000

    def allowed(self, existing: int) -> int:
        """Returns how many items of a kind one plan may delete. `existing`: how many there are."""
        counted = max(existing, self.max_delete_minimum)
        return int(self.max_delete_percent * counted // 100)


@dataclass(frozen=True)
class AclRules:
    """How a flow's ACLs are synced. `full`: `sync.full.acl.enabled`; `deletes`: `lockstep.sync.acl.deletes.enabled`.

    `protected`: principals of the target, the job's own above all, whose ACLs, users and quotas are never touched.
    `adopted`: users that may be overwritten although Lockstep did not create them. `stage_writes`: ALLOW WRITE of
    topics waits until the target takes over. `wildcard_denies`: a DENY of all groups, or of all transactional ids, is
    copied.
    """

    full: bool = False
    deletes: bool = True
    principals: PrincipalFilter = field(default_factory=PrincipalFilter)
    mapping: PrincipalMapping = field(default_factory=PrincipalMapping)
    protected: NamedPrincipals = NOBODY
    adopted: NamedPrincipals = NOBODY
    stage_writes: bool = False
    wildcard_denies: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """How often and how much a flow polls, in seconds. `observe_share`: share of the time for polling topic configs.
    `observe_rate`: topics a second; 0: as many as the share allows. `intervals`: by kind, the time between two
    polls."""

    observe_share: float = 0.1
    observe_rate: int = 0
    full_comparison_interval: float = 60.0
    shard_topics: int = 2000
    heartbeat_timeout: float = 30.0
    intervals: Mapping[Kind, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Listeners:
    """Listeners of topics and groups. `timeout`: seconds that one call may take. `secrets`: values that no log may
    show."""

    topics: TopicListener = field(default_factory=DefaultTopicListener)
    groups: GroupListener = field(default_factory=DefaultGroupListener)
    timeout: float = 10.0
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Safety:
    """What protects the target. `cluster_ids`: by alias, from the file. `pins`: the local file of ids. `ledger_secret`:
    signs this flow's ledger. `reverse_secret`: signs the reverse flow's. `ledger_factor`, `audit_factor`: replication
    factors at creation; None: as many as the target has brokers for."""

    cluster_ids: Mapping[str, str] = field(default_factory=dict)
    pins: Path | None = None
    ledger_secret: str | None = field(default=None, repr=False)
    reverse_secret: str | None = field(default=None, repr=False)
    ledger_factor: int | None = None
    audit_factor: int | None = None


@dataclass(frozen=True, slots=True)
class FailoverRules:
    """How a flow fails over.

    A flow is ready with at most `max_loss` (records), `max_loss_age` (seconds), `max_drift` (differences of a kind) and
    `max_groups_skipping` (partitions of groups). `proof_seconds`: how long the logs' ends must stand still to prove a
    fence. `ends_interval`: seconds between two reads of the source's ends. `preflight_interval`: seconds between two
    preflights of a job; 0: it makes none. `listener`, `program`: told of each state, for at most `hook_seconds`.
    `copier_copies_acls`: the copier would carry a fence to the target.
    """

    max_loss: int = 0
    max_loss_age: float = 60.0
    max_drift: int = 0
    max_groups_skipping: int = 0
    proof_seconds: float = 10.0
    ends_interval: float = 5.0
    preflight_interval: int = 60
    listener: FailoverListener = field(default_factory=DefaultFailoverListener)
    program: str | None = None
    hook_seconds: float = 10.0
    copier_copies_acls: bool = False


@dataclass(frozen=True, slots=True)
class Verifying:
    """Whether the running job compares records, and how many bytes a second it reads of each side for that."""

    enabled: bool = False
    rate: int = 1024 * 1024


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """One enabled flow, with its policy and filters already built. `disabled_reasons`: why a kind is not enabled, where
    the operator may think that it is. `provider`: of passwords, None without any.

    `emit_checkpoints`: `lockstep.emit.checkpoints.enabled`. `matching`: `lockstep.offset.translation` is `matched`.
    `copier_keeps`: kinds that the copier keeps in step itself; Lockstep compares them without a write.
    `upstream_aliases`: clusters from which flows of the file copy to the source.
    `isolation`: how MM2's consumer reads the source, its `isolation.level`. `broker_configs`: names and patterns from
    `lockstep.broker.config.properties`. `closing`: who closes the plug-ins.
    """

    flow: Flow
    policy: ReplicationPolicy
    topic_filter: TopicFilter
    group_filter: GroupFilter
    config_filter: ConfigPropertyFilter
    internal: InternalTopics
    enabled: Mapping[Kind, bool]
    disabled_reasons: Mapping[Kind, str] = field(default_factory=dict)
    heartbeats_replication: bool = True
    upstream_aliases: frozenset[str] = frozenset()
    copier: Copier = Copier.MM2
    copier_keeps: frozenset[Kind] = frozenset()
    incremental: Incremental = Incremental.REQUESTED
    replication_factor: int = 2
    topic_deletes: bool = False
    emit_checkpoints: bool = False
    matching: bool = True
    isolation: str = "read_uncommitted"
    broker_configs: tuple[str, ...] = ()
    listeners: Listeners = field(default_factory=Listeners)
    acls: AclRules = field(default_factory=AclRules)
    provider: CredentialProvider | None = None
    pace: Pace = field(default_factory=Pace)
    limits: Limits = field(default_factory=Limits)
    safety: Safety = field(default_factory=Safety)
    failover: FailoverRules = field(default_factory=FailoverRules)
    verifying: Verifying = field(default_factory=Verifying)
    closing: PluginClosing = field(default_factory=PluginClosing, compare=False, repr=False)

    @property
    def keeps_offsets(self) -> bool:
        """Whether a record has the same offset on both sides."""
        return self.copier is Copier.OFFSET_PRESERVING

    @property
    def told_in(self) -> Mapping[TopicOn, TopicRole]:
        """The internal topics in which the copier writes about the flow, and what each one tells."""
        return {} if self.keeps_offsets else roles_of_flow(self.flow, self.policy, self.internal)

    @property
    def naming(self) -> str:
        """A digest of what decides names on the target: the replication policy and the mapping of principals."""
        names = [self.policy.format_remote_topic(self.flow.source, "t"), str(self.acls.mapping)]
        return hashlib.sha256(repr(names).encode()).hexdigest()[:16]

    @property
    def synced(self) -> frozenset[Kind]:
        return frozenset(kind for kind, is_enabled in self.enabled.items() if is_enabled)

    @property
    def plugins(self) -> tuple[object, ...]:
        """Every plug-in: the objects whose classes the file can name."""
        filters = (self.topic_filter, self.group_filter, self.config_filter)
        return (
            self.policy,
            *filters,
            self.listeners.topics,
            self.listeners.groups,
            self.provider,
            self.failover.listener,
        )

    def close(self) -> None:
        """Closes the plug-ins, each once, however often this is called. Raises nothing."""
        self.closing.close(self.plugins)
