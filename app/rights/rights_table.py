"""The least rights that the job needs on both clusters of a flow: one table, for commands, checks and the docs.

`DescribeCluster` (the cluster's id) needs no right. DESCRIBE and DESCRIBE_CONFIGS are asked for beside the operations
that imply them: it allows nothing more, and a right that is taken away later takes no other with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sinks.flow_settings import FlowSettings
from sinks.model.kind_row import FlowSide, On, RequiredRight
from sinks.model.registry import Kind
from sinks.notify.log_listener import LogListener
from sinks.plugins.replication_listeners import wants_nothing

When = Callable[[FlowSettings], bool]


@dataclass(frozen=True)
class RightRule:
    """Operations on something, why, and when at all; `condition` says the same to readers."""

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


def _tells_groups(settings: FlowSettings) -> bool:
    return not wants_nothing(settings.listeners.groups)


def _verifies(settings: FlowSettings) -> bool:
    return settings.verifying.enabled


VERIFY = "lockstep.verify.enabled"


def _makes_preflights(settings: FlowSettings) -> bool:
    return settings.failover.preflight_interval > 0


PREFLIGHT = "lockstep.failover.preflight.interval.seconds > 0, the default"


RIGHT_RULES: tuple[RightRule, ...] = (
    RightRule(FlowSide.SOURCE, On.UPSTREAM, ("DESCRIBE", "DESCRIBE_CONFIGS"), "sees topics, partitions and configs"),
    RightRule(FlowSide.OFFSET_SYNCS, On.OFFSET_SYNCS, ("READ",), "reads which topics' records arrive"),
    RightRule(FlowSide.TARGET, On.CHECKPOINTS, ("READ",), "reads where groups stand"),
    RightRule(FlowSide.TARGET, On.HEARTBEATS, ("READ",), "reads whether MM2 runs"),
    RightRule(FlowSide.TARGET, On.REPLICATED_HEARTBEATS, ("READ",), "reads whether MM2 copies"),
    RightRule(
        FlowSide.TARGET,
        On.LEDGER,
        ("CREATE", "DESCRIBE_CONFIGS", "READ", "WRITE"),
        "remembers cluster ids and what it created, where nothing is forgotten",
    ),
    RightRule(
        FlowSide.TARGET, On.AUDIT, ("CREATE", "READ", "WRITE"), "writes what it did; READ is for `lockstep audit`"
    ),
    RightRule(FlowSide.TARGET, On.REMOTE, ("DESCRIBE", "DESCRIBE_CONFIGS"), "compares with the source"),
    *(_of_kind(kind, right) for kind in Kind for right in kind.row.rights),
    RightRule(
        FlowSide.SOURCE,
        On.COMMITS,
        ("DESCRIBE",),
        "asks only for groups that may have committed, instead of all in turn",
        "sync.group.offsets.enabled",
        lambda settings: settings.enabled[Kind.GROUP_OFFSET],
        optional=True,
    ),
    RightRule(
        FlowSide.TARGET,
        On.CHECKPOINTS,
        ("CREATE", "WRITE"),
        "writes checkpoints as MM2 does",
        "lockstep.emit.checkpoints.enabled",
        lambda settings: settings.emit_checkpoints,
    ),
    RightRule(FlowSide.SOURCE, On.UPSTREAM, ("READ",), "compares records", VERIFY, _verifies),
    RightRule(FlowSide.TARGET, On.REMOTE, ("READ",), "compares records", VERIFY, _verifies),
    RightRule(
        FlowSide.SOURCE,
        On.UPSTREAM,
        ("READ",),
        "counts the records that are missing on the target",
        PREFLIGHT,
        _makes_preflights,
    ),
    RightRule(FlowSide.TARGET, On.REMOTE, ("READ",), "sees which records are there", PREFLIGHT, _makes_preflights),
    RightRule(
        FlowSide.TARGET,
        On.TOPICS_LOG,
        ("CREATE", "READ", "WRITE"),
        "tells which topics are replicated",
        "topic.listener.class=lockstep.listeners:LogListener",
        lambda settings: isinstance(settings.listeners.topics, LogListener),
    ),
    RightRule(
        FlowSide.SOURCE,
        On.GROUPS,
        ("DESCRIBE",),
        "tells which groups are replicated",
        "group.listener.class",
        _tells_groups,
    ),
    RightRule(
        FlowSide.TARGET,
        On.GROUPS_LOG,
        ("CREATE", "READ", "WRITE"),
        "tells which groups are replicated",
        "group.listener.class=lockstep.listeners:LogListener",
        lambda settings: isinstance(settings.listeners.groups, LogListener),
    ),
)
