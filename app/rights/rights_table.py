"""The least rights that the job needs on both clusters of a flow: one table, for commands, checks and the docs.

`DescribeCluster` (the cluster's id) needs no right. DESCRIBE and DESCRIBE_CONFIGS are asked for beside the operations
that imply them: it allows nothing more, and a right that is taken away later takes no other with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from sinks.engine.model import Kind
from sinks.flow_settings import FlowSettings
from sinks.notify.listeners import DefaultGroupListener
from sinks.notify.log_listener import LogListener


class On(str, Enum):
    """What a rule of the table is about; the docs show these words."""

    CLUSTER = "the cluster"
    UPSTREAM = "replicated topics"
    REMOTE = "remote topics"
    OFFSET_SYNCS = "MM2's offset-syncs"
    CHECKPOINTS = "MM2's checkpoints"
    HEARTBEATS = "MM2's heartbeats"
    CROSSED = "MM2's replicated heartbeats"
    LEDGER = "Lockstep's ledger"
    AUDIT = "Lockstep's audit topic"
    GROUPS = "consumer groups"
    TOPICS_LOG = "the topic of LogListener for topics"
    GROUPS_LOG = "the topic of LogListener for groups"


class FlowSide(str, Enum):
    """An end of a flow. OFFSET_SYNCS: the one that `offset-syncs.topic.location` names."""

    SOURCE = "source"
    TARGET = "target"
    OFFSET_SYNCS = "source, or target with offset-syncs.topic.location=target"


When = Callable[[FlowSettings], bool]


@dataclass(frozen=True)
class Rule:
    """Operations on something, why, and when at all; `condition` says the same to readers."""

    end: FlowSide
    on: On
    operations: tuple[str, ...]
    why: str
    condition: str = "always"
    when: When = lambda settings: True
    optional: bool = False


def _kind(kind: Kind) -> When:
    return lambda settings: settings.enabled.get(kind, False)


def _tells_groups(settings: FlowSettings) -> bool:
    return not isinstance(settings.listeners.groups, DefaultGroupListener)


BROKERS = "lockstep.sync.broker.configs.enabled"
SYNCED = "sync.group.offsets.enabled"

RULES: tuple[Rule, ...] = (
    Rule(FlowSide.SOURCE, On.UPSTREAM, ("DESCRIBE", "DESCRIBE_CONFIGS"), "sees topics, partitions and configs"),
    Rule(
        FlowSide.SOURCE,
        On.CLUSTER,
        ("DESCRIBE",),
        "hears of changes at once, instead of looking at topics in turn",
        optional=True,
    ),
    Rule(FlowSide.OFFSET_SYNCS, On.OFFSET_SYNCS, ("READ",), "hears which topics' records arrive"),
    Rule(FlowSide.TARGET, On.CHECKPOINTS, ("READ",), "hears where groups stand"),
    Rule(FlowSide.TARGET, On.HEARTBEATS, ("READ",), "hears whether MM2 runs"),
    Rule(FlowSide.TARGET, On.CROSSED, ("READ",), "hears whether MM2 copies"),
    Rule(
        FlowSide.TARGET,
        On.LEDGER,
        ("CREATE", "DESCRIBE_CONFIGS", "READ", "WRITE"),
        "remembers cluster ids and what it created, where nothing is forgotten",
    ),
    Rule(FlowSide.TARGET, On.AUDIT, ("CREATE", "READ", "WRITE"), "writes what it did; READ is for `lockstep audit`"),
    Rule(FlowSide.TARGET, On.REMOTE, ("DESCRIBE", "DESCRIBE_CONFIGS"), "compares with the source"),
    Rule(
        FlowSide.TARGET,
        On.REMOTE,
        ("ALTER_CONFIGS",),
        "keeps topic configs in step",
        "sync.topic.configs.enabled",
        _kind(Kind.TOPIC_CONFIG),
    ),
    Rule(
        FlowSide.TARGET,
        On.REMOTE,
        ("CREATE", "ALTER"),
        "creates remote topics and adds partitions",
        "refresh.topics.enabled",
        _kind(Kind.TOPIC),
    ),
    Rule(
        FlowSide.TARGET,
        On.REMOTE,
        ("DELETE",),
        "deletes remote topics that it made",
        "lockstep.sync.topic.deletes.enabled",
        lambda settings: settings.enabled.get(Kind.TOPIC, False) and settings.topic_deletes,
    ),
    Rule(FlowSide.SOURCE, On.CLUSTER, ("DESCRIBE",), "reads ACLs", "sync.topic.acls.enabled", _kind(Kind.ACL)),
    Rule(
        FlowSide.TARGET,
        On.CLUSTER,
        ("DESCRIBE", "ALTER"),
        "reads and writes ACLs",
        "sync.topic.acls.enabled",
        _kind(Kind.ACL),
    ),
    Rule(
        FlowSide.SOURCE,
        On.CLUSTER,
        ("DESCRIBE",),
        "reads SCRAM users",
        "SCRAM users are synced",
        _kind(Kind.SCRAM_USER),
    ),
    Rule(
        FlowSide.TARGET,
        On.CLUSTER,
        ("DESCRIBE", "ALTER"),
        "reads and writes SCRAM users",
        "SCRAM users are synced",
        _kind(Kind.SCRAM_USER),
    ),
    Rule(
        FlowSide.SOURCE, On.CLUSTER, ("DESCRIBE_CONFIGS",), "reads broker configs", BROKERS, _kind(Kind.BROKER_CONFIG)
    ),
    Rule(
        FlowSide.TARGET,
        On.CLUSTER,
        ("DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
        "reads and writes broker configs",
        BROKERS,
        _kind(Kind.BROKER_CONFIG),
    ),
    Rule(FlowSide.SOURCE, On.GROUPS, ("DESCRIBE",), "sees groups and their offsets", SYNCED, _kind(Kind.GROUP_OFFSET)),
    Rule(
        FlowSide.TARGET,
        On.GROUPS,
        ("DESCRIBE", "READ"),
        "sees members and offsets, and commits",
        SYNCED,
        _kind(Kind.GROUP_OFFSET),
    ),
    Rule(FlowSide.TARGET, On.REMOTE, ("READ",), "commits offsets of these topics", SYNCED, _kind(Kind.GROUP_OFFSET)),
    Rule(
        FlowSide.SOURCE,
        On.UPSTREAM,
        ("READ",),
        "finds a group's record again on the target",
        f"{SYNCED}, lockstep.offset.translation=matched",
        lambda settings: settings.matching and settings.enabled.get(Kind.GROUP_OFFSET, False),
    ),
    Rule(
        FlowSide.TARGET,
        On.CHECKPOINTS,
        ("CREATE", "WRITE"),
        "writes checkpoints as MM2 does",
        "lockstep.emit.checkpoints.enabled",
        lambda settings: settings.emit_checkpoints,
    ),
    Rule(
        FlowSide.TARGET,
        On.TOPICS_LOG,
        ("CREATE", "READ", "WRITE"),
        "tells which topics are replicated",
        "topic.listener.class=sinks.notify.log_listener:LogListener",
        lambda settings: isinstance(settings.listeners.topics, LogListener),
    ),
    Rule(
        FlowSide.SOURCE,
        On.GROUPS,
        ("DESCRIBE",),
        "tells which groups are replicated",
        "group.listener.class",
        _tells_groups,
    ),
    Rule(
        FlowSide.TARGET,
        On.GROUPS_LOG,
        ("CREATE", "READ", "WRITE"),
        "tells which groups are replicated",
        "group.listener.class=sinks.notify.log_listener:LogListener",
        lambda settings: isinstance(settings.listeners.groups, LogListener),
    ),
)
