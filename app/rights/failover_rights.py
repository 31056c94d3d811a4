"""The rights that the commands of a failover need beyond those of the job."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from app.rights.flow_rights import Right, drill_copy_prefix, rights_of_flow
from app.rights.rights_table import FlowSide, On, RightRule
from sinks.flow_settings import FlowSettings
from sinks.model.changes import Kind

FAILOVER_RULES: tuple[RightRule, ...] = (
    RightRule(
        FlowSide.SOURCE,
        On.CLUSTER,
        ("DESCRIBE", "ALTER"),
        "fences topics with DENY ACLs",
        "`fence`, `cutover`, `drill`",
    ),
    RightRule(
        FlowSide.SOURCE,
        On.UPSTREAM,
        ("READ",),
        "sees which records are missing on the target",
        "`preflight`, `cutover`",
    ),
    RightRule(
        FlowSide.SOURCE,
        On.TRANSACTIONAL_IDS,
        ("DESCRIBE",),
        "names open transactions, and tells those that hang",
        "`fence`, `cutover`, `promote`",
        optional=True,
    ),
    RightRule(
        FlowSide.SOURCE,
        On.TRANSACTIONAL_IDS,
        ("WRITE",),
        "has their coordinator abort them",
        "`--abort-transactions`",
        optional=True,
    ),
    RightRule(
        FlowSide.SOURCE,
        On.GROUPS,
        ("READ",),
        "commits the groups' offsets on the way back",
        "`offsets --reverse --execute`",
        lambda settings: settings.enabled[Kind.GROUP_OFFSET],
    ),
    RightRule(
        FlowSide.TARGET, On.REMOTE, ("READ",), "sees which records are there", "`preflight`, `cutover`, `failover`"
    ),
    RightRule(
        FlowSide.TARGET,
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
        FlowSide.SOURCE,
        On.DRILL_TOPIC,
        ("CREATE", "DELETE", "DESCRIBE", "READ", "WRITE"),
        "makes a topic, writes it, and takes it away",
        DRILL,
        optional=True,
    ),
    RightRule(
        FlowSide.SOURCE, On.DRILL_GROUPS, ("DESCRIBE", "READ"), "commits offsets of two groups", DRILL, optional=True
    ),
    RightRule(
        FlowSide.TARGET,
        On.DRILL_COPY,
        ("DELETE", "DESCRIBE", "READ"),
        "counts what was copied, and takes it away",
        DRILL,
        optional=True,
    ),
    RightRule(FlowSide.TARGET, On.DRILL_GROUPS, ("DESCRIBE",), "sees where they would continue", DRILL, optional=True),
)
"""A failover needs none of these: who lacks them cannot practise one."""


def failover_rights(settings: FlowSettings) -> list[Right]:
    """What a failover of this flow needs as it is set, sorted."""
    return rights_of_flow(settings, FAILOVER_RULES)


def drill_rights(settings: FlowSettings) -> list[Right]:
    """What a drill needs beside them, sorted."""
    return rights_of_flow(settings, DRILL_RULES)


def rights_on_names(settings: FlowSettings, names: Mapping[On, Collection[str]]) -> list[Right]:
    """What a drill needs on the topics and groups that it will make, by name: the names need not match a prefix."""
    flow = settings.flow
    of_drill = [
        Right(
            flow.source if rule.side is FlowSide.SOURCE else flow.target,
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
    fences = [right for right in failover_rights(settings) if right.cluster == flow.source]
    return [*of_drill, *(right for right in fences if right.resource_type == "CLUSTER")]


DRILL_EXAMPLE = "practice"

UNNAMED_COPY = (
    "{why}: the policy calls the copy of {topic} {copy}, so that no prefix has the copies of drills alone. Grant "
    "{operations} on the copy of the one topic that you name: for `lockstep drill --topic {topic}` on {copy}"
)


def unnamed_copies(settings: FlowSettings) -> list[str]:
    """What to grant for drills where their copies have no prefix of their own, in words; empty where they have one."""
    if drill_copy_prefix(settings):
        return []
    copy = settings.policy.format_remote_topic(settings.flow.source, DRILL_EXAMPLE)
    return [
        UNNAMED_COPY.format(why=rule.why, topic=DRILL_EXAMPLE, copy=copy, operations=", ".join(rule.operations))
        for rule in DRILL_RULES
        if rule.on is On.DRILL_COPY
    ]
