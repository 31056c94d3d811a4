"""The least rights that the job needs on both clusters of a flow: one table, for commands, checks and the docs.

`DescribeCluster` (the cluster's id) needs no right. DESCRIBE and DESCRIBE_CONFIGS are asked for beside the operations
that imply them: it allows nothing more, and a right that is taken away later takes no other with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from sinks.cluster.rights import Allowed
from sinks.listeners import DefaultGroupListener
from sinks.model import Kind
from sinks.notify.log_listener import LogListener
from sinks.settings import FlowSettings

PROBE = "lockstep-rights-probe"
"""Stands for any topic; none of this name is ever made."""

EVERY = "*"
CLUSTER_NAME = "kafka-cluster"


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


class End(str, Enum):
    """An end of a flow. OFFSET_SYNCS: the one that `offset-syncs.topic.location` names."""

    SOURCE = "source"
    TARGET = "target"
    OFFSET_SYNCS = "source, or target with offset-syncs.topic.location=target"


When = Callable[[FlowSettings], bool]


@dataclass(frozen=True)
class Rule:
    """Operations on something, why, and when at all; `condition` says the same to readers."""

    end: End
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
    Rule(End.SOURCE, On.UPSTREAM, ("DESCRIBE", "DESCRIBE_CONFIGS"), "sees topics, partitions and configs"),
    Rule(
        End.SOURCE,
        On.CLUSTER,
        ("DESCRIBE",),
        "hears of changes at once, instead of looking at topics in turn",
        optional=True,
    ),
    Rule(End.OFFSET_SYNCS, On.OFFSET_SYNCS, ("READ",), "hears which topics' records arrive"),
    Rule(End.TARGET, On.CHECKPOINTS, ("READ",), "hears where groups stand"),
    Rule(End.TARGET, On.HEARTBEATS, ("READ",), "hears whether MM2 runs"),
    Rule(End.TARGET, On.CROSSED, ("READ",), "hears whether MM2 copies"),
    Rule(End.TARGET, On.LEDGER, ("CREATE", "READ", "WRITE"), "remembers cluster ids and what it created"),
    Rule(End.TARGET, On.AUDIT, ("CREATE", "READ", "WRITE"), "writes what it did; READ is for `lockstep audit`"),
    Rule(End.TARGET, On.REMOTE, ("DESCRIBE", "DESCRIBE_CONFIGS"), "compares with the source"),
    Rule(
        End.TARGET,
        On.REMOTE,
        ("ALTER_CONFIGS",),
        "keeps topic configs in step",
        "sync.topic.configs.enabled",
        _kind(Kind.TOPIC_CONFIG),
    ),
    Rule(
        End.TARGET,
        On.REMOTE,
        ("CREATE", "ALTER"),
        "creates remote topics and adds partitions",
        "refresh.topics.enabled",
        _kind(Kind.TOPIC),
    ),
    Rule(
        End.TARGET,
        On.REMOTE,
        ("DELETE",),
        "deletes remote topics that it made",
        "lockstep.sync.topic.deletes.enabled",
        lambda settings: settings.enabled.get(Kind.TOPIC, False) and settings.topic_deletes,
    ),
    Rule(End.SOURCE, On.CLUSTER, ("DESCRIBE",), "reads ACLs", "sync.topic.acls.enabled", _kind(Kind.ACL)),
    Rule(
        End.TARGET,
        On.CLUSTER,
        ("DESCRIBE", "ALTER"),
        "reads and writes ACLs",
        "sync.topic.acls.enabled",
        _kind(Kind.ACL),
    ),
    Rule(End.SOURCE, On.CLUSTER, ("DESCRIBE",), "reads SCRAM users", "SCRAM users are synced", _kind(Kind.SCRAM_USER)),
    Rule(
        End.TARGET,
        On.CLUSTER,
        ("DESCRIBE", "ALTER"),
        "reads and writes SCRAM users",
        "SCRAM users are synced",
        _kind(Kind.SCRAM_USER),
    ),
    Rule(End.SOURCE, On.CLUSTER, ("DESCRIBE_CONFIGS",), "reads broker configs", BROKERS, _kind(Kind.BROKER_CONFIG)),
    Rule(
        End.TARGET,
        On.CLUSTER,
        ("DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
        "reads and writes broker configs",
        BROKERS,
        _kind(Kind.BROKER_CONFIG),
    ),
    Rule(End.SOURCE, On.GROUPS, ("DESCRIBE",), "sees groups and their offsets", SYNCED, _kind(Kind.GROUP_OFFSET)),
    Rule(
        End.TARGET,
        On.GROUPS,
        ("DESCRIBE", "READ"),
        "sees members and offsets, and commits",
        SYNCED,
        _kind(Kind.GROUP_OFFSET),
    ),
    Rule(End.TARGET, On.REMOTE, ("READ",), "commits offsets of these topics", SYNCED, _kind(Kind.GROUP_OFFSET)),
    Rule(
        End.SOURCE,
        On.UPSTREAM,
        ("READ",),
        "finds a group's record again on the target",
        f"{SYNCED}, lockstep.offset.translation=matched",
        lambda settings: settings.matching and settings.enabled.get(Kind.GROUP_OFFSET, False),
    ),
    Rule(
        End.TARGET,
        On.CHECKPOINTS,
        ("CREATE", "WRITE"),
        "writes checkpoints as MM2 does",
        "lockstep.emit.checkpoints.enabled",
        lambda settings: settings.emit_checkpoints,
    ),
    Rule(
        End.TARGET,
        On.TOPICS_LOG,
        ("CREATE", "READ", "WRITE"),
        "tells which topics are replicated",
        "topic.listener.class=sinks.notify.log_listener:LogListener",
        lambda settings: isinstance(settings.listeners.topics, LogListener),
    ),
    Rule(
        End.SOURCE, On.GROUPS, ("DESCRIBE",), "tells which groups are replicated", "group.listener.class", _tells_groups
    ),
    Rule(
        End.TARGET,
        On.GROUPS_LOG,
        ("CREATE", "READ", "WRITE"),
        "tells which groups are replicated",
        "group.listener.class=sinks.notify.log_listener:LogListener",
        lambda settings: isinstance(settings.listeners.groups, LogListener),
    ),
)


@dataclass(frozen=True, order=True, slots=True)
class Right:
    """One operation that the job needs on `cluster` (an alias). The words are Kafka's own, in upper case."""

    cluster: str
    resource_type: str
    resource_name: str
    pattern_type: str
    operation: str
    why: str
    optional: bool = False


def needed_rights(settings: FlowSettings) -> list[Right]:
    """What a flow needs as it is set, sorted. What has two reasons is there once, with the first."""
    found: dict[tuple[str, ...], Right] = {}
    for rule in (rule for rule in RULES if rule.when(settings)):
        for operation in rule.operations:
            place = (_alias(settings, rule.end), *resource(settings, rule.on), operation)
            known = found.get(place)
            if known is None or (known.optional and not rule.optional):
                found[place] = Right(*place, rule.why, rule.optional)
    return sorted(found.values())


def _alias(settings: FlowSettings, end: End) -> str:
    if end is End.OFFSET_SYNCS:
        return settings.internal.offset_syncs_cluster
    return settings.flow.source if end is End.SOURCE else settings.flow.target


def resource(settings: FlowSettings, on: On) -> tuple[str, str, str]:
    """Kafka's resource type, name and pattern type."""
    internal = settings.internal
    if on is On.CLUSTER:
        return "CLUSTER", CLUSTER_NAME, "LITERAL"
    if on is On.GROUPS:
        return "GROUP", EVERY, "LITERAL"
    if on is On.UPSTREAM:
        return "TOPIC", EVERY, "LITERAL"
    if on is On.REMOTE:
        prefix = remote_prefix(settings)
        return ("TOPIC", prefix, "PREFIXED") if prefix else ("TOPIC", EVERY, "LITERAL")
    names = {
        On.OFFSET_SYNCS: internal.offset_syncs,
        On.CHECKPOINTS: internal.checkpoints,
        On.HEARTBEATS: internal.heartbeats,
        On.CROSSED: settings.policy.format_remote_topic(settings.flow.source, internal.heartbeats),
        On.LEDGER: internal.ledger,
        On.AUDIT: internal.audit,
        On.TOPICS_LOG: internal.topics,
        On.GROUPS_LOG: internal.groups,
    }
    return "TOPIC", names[on], "LITERAL"


def remote_prefix(settings: FlowSettings) -> str:
    """What the policy puts in front of a topic's name; empty where it does not, or puts something behind it."""
    remote = settings.policy.format_remote_topic(settings.flow.source, PROBE)
    return remote.removesuffix(PROBE) if remote.endswith(PROBE) else ""


class Verdict(str, Enum):
    """Whether a right is there. UNKNOWN: the cluster cannot say it yet."""

    GRANTED = "granted"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """A right, whether it is there, and what the verdict rests on."""

    right: Right
    verdict: Verdict
    reason: str = ""


def judge(
    rights: Iterable[Right], allowed: Mapping[str, Allowed], replicated: Mapping[str, Collection[str]], probe: str
) -> list[Finding]:
    """`allowed` and `replicated`, the names of replicated topics there, by alias; `probe`: a remote topic's name."""
    return [_judged(right, allowed[right.cluster], replicated[right.cluster], probe) for right in rights]


def _judged(right: Right, allowed: Allowed, replicated: Collection[str], probe: str) -> Finding:
    if right.resource_type == "CLUSTER":
        granted = right.operation in allowed.cluster
        return Finding(right, Verdict.GRANTED if granted else Verdict.MISSING)
    if right.resource_type == "GROUP":
        return Finding(right, Verdict.UNKNOWN, "what may be done with groups is not asked")
    literal = right.pattern_type == "LITERAL" and right.resource_name != EVERY
    created = right.resource_name if literal else probe
    if right.operation == "CREATE" and created in allowed.creatable:
        return Finding(right, Verdict.GRANTED if allowed.creatable[created] else Verdict.MISSING)
    return _of_topic(right, allowed) if literal else _of_topics(right, allowed, replicated)


def _of_topic(right: Right, allowed: Allowed) -> Finding:
    seen = allowed.topics.get(right.resource_name, "UNKNOWN_TOPIC_OR_PART")
    if isinstance(seen, frozenset):
        return Finding(right, Verdict.GRANTED if right.operation in seen else Verdict.MISSING)
    if seen == "TOPIC_AUTHORIZATION_FAILED":
        return Finding(right, Verdict.MISSING, "the topic may not even be seen")
    return Finding(right, Verdict.UNKNOWN, "the topic does not exist yet")


def _of_topics(right: Right, allowed: Allowed, replicated: Collection[str]) -> Finding:
    seen = {name: words for name in replicated if isinstance(words := allowed.topics.get(name), frozenset)}
    lacking = sorted(name for name, words in seen.items() if right.operation not in words)
    if lacking:
        return Finding(right, Verdict.MISSING, f"on {len(lacking)} of {len(seen)} topics, e.g. {lacking[0]}")
    if not seen:
        return Finding(right, Verdict.UNKNOWN, "no such topic is there, or none may be seen: DESCRIBE shows them")
    return Finding(right, Verdict.GRANTED, f"on {len(seen)} topics that can be seen")
