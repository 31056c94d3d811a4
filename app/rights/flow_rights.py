"""The rights that a flow needs under its settings: the table of rules, applied to its clusters and topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from sinks.failover.drill import DRILL_PREFIX
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.acl_binding import CLUSTER_NAME
from sinks.kinds.offsets.polled_groups import COMMITS_TOPIC
from sinks.model.registry import FlowSide, Kind, On, RequiredRight
from sinks.notify.log_listener import LogListener
from sinks.plugins.listeners import wants_nothing

# The least rights that the job needs on both clusters of a flow: one table, for commands, checks and the docs.
#
# `DescribeCluster` (the cluster's id) needs no right. DESCRIBE and DESCRIBE_CONFIGS are asked for beside the operations
# that imply them: it allows nothing more, and a right that is taken away later takes no other with it.


SOURCE, TARGET = FlowSide.SOURCE, FlowSide.TARGET
When = Callable[[FlowSettings], bool]


@dataclass(frozen=True)
class RightRule:
    """Operations on a resource: why and when they are needed. `condition`: the "when", as the docs word it."""

    side: FlowSide
    on: On
    operations: tuple[str, ...]
    why: str
    condition: str = "always"
    when: When = lambda settings: True
    optional: bool = False


def _of_kind(kind: Kind, right: RequiredRight) -> RightRule:
    def when(settings: FlowSettings) -> bool:
        return settings.enabled.get(kind, False) and (right.also is None or bool(getattr(settings, right.also)))

    condition = right.condition or kind.row.enabled_by[0].name
    return RightRule(right.side, right.on, right.operations, right.why, condition, when)


VERIFY: tuple[str, When] = ("lockstep.verify.enabled", lambda settings: settings.verifying.enabled)
PREFLIGHT: tuple[str, When] = (
    "lockstep.failover.preflight.interval.seconds > 0, the default",
    lambda settings: settings.failover.preflight_interval > 0,
)
MM2_ALONE: tuple[str, When] = ("lockstep.copier=mm2, the default", lambda settings: bool(settings.told_in))


RIGHT_RULES: tuple[RightRule, ...] = (
    RightRule(SOURCE, On.UPSTREAM, ("DESCRIBE", "DESCRIBE_CONFIGS"), "sees topics, partitions and configs"),
    *(
        RightRule(side, on, ("READ",), why, *MM2_ALONE)
        for side, on, why in (
            (FlowSide.OFFSET_SYNCS, On.OFFSET_SYNCS, "reads which topics' records arrive"),
            (TARGET, On.CHECKPOINTS, "reads the offsets of groups"),
            (TARGET, On.HEARTBEATS, "reads whether MM2 runs"),
            (TARGET, On.REPLICATED_HEARTBEATS, "reads whether MM2 copies"),
        )
    ),
    RightRule(
        TARGET,
        On.LEDGER,
        ("CREATE", "DESCRIBE_CONFIGS", "READ", "WRITE"),
        "remembers cluster ids and what it created, in a compacted topic",
    ),
    RightRule(TARGET, On.AUDIT, ("CREATE", "READ", "WRITE"), "writes audit events; READ is for `lockstep audit`"),
    RightRule(TARGET, On.REMOTE, ("DESCRIBE", "DESCRIBE_CONFIGS"), "compares with the source"),
    *(_of_kind(kind, right) for kind in Kind for right in kind.row.rights),
    RightRule(
        SOURCE,
        On.COMMITS,
        ("DESCRIBE",),
        "requests only groups that may have committed, instead of all in turn",
        "sync.group.offsets.enabled",
        lambda settings: settings.enabled[Kind.GROUP_OFFSET],
        optional=True,
    ),
    RightRule(
        TARGET,
        On.CHECKPOINTS,
        ("CREATE", "WRITE"),
        "writes checkpoints as MM2 does",
        "lockstep.emit.checkpoints.enabled",
        lambda settings: settings.emit_checkpoints,
    ),
    RightRule(SOURCE, On.UPSTREAM, ("READ",), "compares records", *VERIFY),
    RightRule(TARGET, On.REMOTE, ("READ",), "compares records", *VERIFY),
    RightRule(SOURCE, On.UPSTREAM, ("READ",), "counts the records that are missing on the target", *PREFLIGHT),
    RightRule(TARGET, On.REMOTE, ("READ",), "sees which records are there", *PREFLIGHT),
    RightRule(
        TARGET,
        On.TOPICS_LOG,
        ("CREATE", "READ", "WRITE"),
        "tells which topics are replicated",
        "topic.listener.class=lockstep.listeners:LogListener",
        lambda settings: isinstance(settings.listeners.topics, LogListener),
    ),
    RightRule(
        SOURCE,
        On.GROUPS,
        ("DESCRIBE",),
        "tells which groups are replicated",
        "group.listener.class",
        lambda settings: not wants_nothing(settings.listeners.groups),
    ),
    RightRule(
        TARGET,
        On.GROUPS_LOG,
        ("CREATE", "READ", "WRITE"),
        "tells which groups are replicated",
        "group.listener.class=lockstep.listeners:LogListener",
        lambda settings: isinstance(settings.listeners.groups, LogListener),
    ),
)


PROBED_NAME = "lockstep-rights-probe"
"""A name that stands for any topic and group in a check. Lockstep never creates it."""

EVERY = "*"


@dataclass(frozen=True, order=True, slots=True)
class Right:
    """One operation that the job needs on `cluster` (an alias). The words are Kafka's, in upper case."""

    cluster: str
    resource_type: str
    resource_name: str
    pattern_type: str
    operation: str
    why: str
    optional: bool = False


def rights_of_flow(settings: FlowSettings, rules: Iterable[RightRule] = RIGHT_RULES) -> list[Right]:
    """Returns the rights that a flow needs under its settings, sorted. A right with two reasons is listed once, with
    the first."""
    found: dict[tuple[str, ...], Right] = {}
    for rule in (rule for rule in rules if rule.when(settings)):
        if rule.on is On.DRILL_COPY and not drill_copy_prefix(settings):
            # Every topic is far more than a drill may delete.
            continue
        for operation in rule.operations:
            key = (_alias(settings, rule.side), *resource(settings, rule.on), operation)
            known = found.get(key)
            if known is None or (known.optional and not rule.optional):
                found[key] = Right(*key, rule.why, rule.optional)
    return sorted(found.values())


def _alias(settings: FlowSettings, side: FlowSide) -> str:
    if side is FlowSide.OFFSET_SYNCS:
        return settings.internal.offset_syncs_cluster
    return settings.flow.source if side is SOURCE else settings.flow.target


ANY_FLOW: Mapping[On, tuple[str, str, str]] = {
    On.CLUSTER: ("CLUSTER", CLUSTER_NAME, "LITERAL"),
    On.GROUPS: ("GROUP", EVERY, "LITERAL"),
    On.TRANSACTIONAL_IDS: ("TRANSACTIONAL_ID", EVERY, "LITERAL"),
    On.UPSTREAM: ("TOPIC", EVERY, "LITERAL"),
    On.COMMITS: ("TOPIC", COMMITS_TOPIC, "LITERAL"),
    On.DRILL_GROUPS: ("GROUP", DRILL_PREFIX, "PREFIXED"),
    On.DRILL_TOPIC: ("TOPIC", DRILL_PREFIX, "PREFIXED"),
}
"""Resource type, name and pattern type of resources whose name is the same for every flow."""


def resource(settings: FlowSettings, on: On) -> tuple[str, str, str]:
    """Returns Kafka's resource type, name and pattern type."""
    internal = settings.internal
    if on in ANY_FLOW:
        return ANY_FLOW[on]
    if on is On.DRILL_COPY:
        return "TOPIC", drill_copy_prefix(settings), "PREFIXED"
    if on is On.REMOTE:
        prefix = remote_prefix(settings)
        return ("TOPIC", prefix, "PREFIXED") if prefix else ("TOPIC", EVERY, "LITERAL")
    names = {
        On.OFFSET_SYNCS: internal.offset_syncs,
        On.CHECKPOINTS: internal.checkpoints,
        On.HEARTBEATS: internal.heartbeats,
        On.REPLICATED_HEARTBEATS: settings.policy.format_remote_topic(settings.flow.source, internal.heartbeats),
        On.LEDGER: internal.ledger,
        On.AUDIT: internal.audit,
        On.TOPICS_LOG: internal.topics,
        On.GROUPS_LOG: internal.groups,
    }
    return "TOPIC", names[on], "LITERAL"


def remote_prefix(settings: FlowSettings, upstream: str = "") -> str:
    """Returns the prefix of the remote names of topics that begin with `upstream`; "" if the policy adds a suffix."""
    remote = settings.policy.format_remote_topic(settings.flow.source, upstream + PROBED_NAME)
    return remote.removesuffix(PROBED_NAME) if remote.endswith(PROBED_NAME) else ""


def drill_copy_prefix(settings: FlowSettings) -> str:
    """Returns the prefix that only the copies of drill topics have; "" if there is none."""
    return remote_prefix(settings, DRILL_PREFIX)


# The rights that the commands of a failover need beside the job's.


FAILOVER_RULES: tuple[RightRule, ...] = (
    RightRule(SOURCE, On.CLUSTER, ("DESCRIBE", "ALTER"), "fences topics with DENY ACLs", "`fence`, `cutover`, `drill`"),
    RightRule(SOURCE, On.UPSTREAM, ("READ",), "sees which records are missing on the target", "`preflight`, `cutover`"),
    RightRule(
        SOURCE,
        On.TRANSACTIONAL_IDS,
        ("DESCRIBE",),
        "names open transactions, and tells those that hang",
        "`fence`, `cutover`, `promote`",
        optional=True,
    ),
    RightRule(
        SOURCE,
        On.TRANSACTIONAL_IDS,
        ("WRITE",),
        "has their coordinator abort them",
        "`--abort-transactions`",
        optional=True,
    ),
    RightRule(
        SOURCE,
        On.GROUPS,
        ("READ",),
        "commits the groups' offsets on the way back",
        "`offsets --reverse --execute`",
        lambda settings: settings.enabled[Kind.GROUP_OFFSET],
    ),
    RightRule(TARGET, On.REMOTE, ("READ",), "sees which records are there", "`preflight`, `cutover`, `failover`"),
    RightRule(
        TARGET,
        On.CLUSTER,
        ("DESCRIBE", "ALTER"),
        "grants ALLOW WRITE that was held back",
        "lockstep.acl.stage.writes",
        lambda settings: settings.acls.stage_writes,
    ),
)

DRILL = "`drill`"

DRILL_RULES: tuple[RightRule, ...] = (
    RightRule(
        SOURCE,
        On.DRILL_TOPIC,
        ("CREATE", "DELETE", "DESCRIBE", "READ", "WRITE"),
        "creates a topic, writes to it, and deletes it",
        DRILL,
        optional=True,
    ),
    RightRule(SOURCE, On.DRILL_GROUPS, ("DESCRIBE", "READ"), "commits offsets of two groups", DRILL, optional=True),
    RightRule(
        TARGET,
        On.DRILL_COPY,
        ("DELETE", "DESCRIBE", "READ"),
        "counts the copied records, and deletes the copy",
        DRILL,
        optional=True,
    ),
    RightRule(TARGET, On.DRILL_GROUPS, ("DESCRIBE",), "sees where they would continue", DRILL, optional=True),
)
"""Rights of a drill. A failover needs none of them: an operator without them can fail over but not practise it."""


def failover_rights(settings: FlowSettings) -> list[Right]:
    """Returns the rights that a failover of this flow needs under its settings, sorted."""
    return rights_of_flow(settings, FAILOVER_RULES)


def drill_rights(settings: FlowSettings) -> list[Right]:
    """Returns the rights that a drill needs besides, sorted."""
    return rights_of_flow(settings, DRILL_RULES)


def rights_on_names(settings: FlowSettings, names: Mapping[On, Collection[str]]) -> list[Right]:
    """Returns the rights that a drill needs on its topics and groups, by name. The names need not match a prefix."""
    of_drill = [
        Right(
            _alias(settings, rule.side),
            "GROUP" if rule.on is On.DRILL_GROUPS else "TOPIC",
            name,
            "LITERAL",
            operation,
            rule.why,
        )
        for rule in DRILL_RULES
        for name in names[rule.on]
        for operation in rule.operations
    ]
    fences = [right for right in failover_rights(settings) if right.cluster == settings.flow.source]
    return [*of_drill, *(right for right in fences if right.resource_type == "CLUSTER")]


DRILL_EXAMPLE = "practice"

UNNAMED_COPY = (
    "{why}: the policy calls the copy of {topic} {copy}, so no prefix covers only the copies of drills. Grant "
    "{operations} on the copy of the one topic that you name: for `lockstep drill --topic {topic}` on {copy}"
)


def unnamed_copies(settings: FlowSettings) -> list[str]:
    """Returns a text that tells what to grant for drills if their copies have no prefix of their own; "" if they have
    one."""
    if drill_copy_prefix(settings):
        return []
    copy = settings.policy.format_remote_topic(settings.flow.source, DRILL_EXAMPLE)
    return [
        UNNAMED_COPY.format(why=rule.why, topic=DRILL_EXAMPLE, copy=copy, operations=", ".join(rule.operations))
        for rule in DRILL_RULES
        if rule.on is On.DRILL_COPY
    ]
