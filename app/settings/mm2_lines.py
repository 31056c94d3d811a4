"""What MM2 is told in the same file, and what that means beside Lockstep: lines that work, but hardly as meant.

| MM2's line                            | why it is warned about                                                  |
|---------------------------------------|-------------------------------------------------------------------------|
| `forwarding.admin.class`              | Lockstep writes by itself, not through that class (KIP-787)             |
| `transforms`                          | what they rename, change or drop is not where offset-syncs say it is    |
| `emit.offset-syncs.enabled=false`     | without them no offset can be translated (KIP-1031)                     |
| `emit.heartbeats.enabled=false`       | without them nobody sees whether MM2 runs                               |
| `…interval.seconds`, where not read   | Lockstep polls at its own pace                                          |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.plugins import OLD_NAMES
from app.properties import keys
from app.properties.mistakes import Findings, PropertyLine
from app.properties.scoped_keys import Properties
from sinks.model.changes import Kind
from streaming.flow import Flow

FORWARDING_ADMIN = "forwarding.admin.class"
KAFKAS_ADMIN = "org.apache.kafka.connect.mirror.ForwardingAdmin"
TRANSFORMS = "transforms"
EMIT_OFFSET_SYNCS = "emit.offset-syncs.enabled"
EMIT_HEARTBEATS = "emit.heartbeats.enabled"

MM2_ONLY = "holds for MM2 only: Lockstep"
INTERVALS: Mapping[str, tuple[tuple[Kind, ...], str]] = {
    "sync.topic.acls.interval.seconds": (
        (Kind.ACL,),
        f"{MM2_ONLY} compares ACLs when the source's metadata log tells of a change, and where none does every 10 s",
    ),
    "refresh.groups.interval.seconds": (
        (Kind.GROUP_OFFSET,),
        f"{MM2_ONLY} lists groups every second, or as lockstep.{keys.SYNC_GROUP_OFFSETS_INTERVAL.name} says",
    ),
}
"""Intervals for which Lockstep has none of its own: the kinds that they are about, and when those are polled."""


def check_mm2_lines(properties: Properties, flow: Flow, findings: Findings) -> None:
    """Warns of lines for MM2 that mean something else, or nothing, for Lockstep's part of this flow."""
    for name, says in LINE_RULES.items():
        entry = properties.mm2_entry(name, flow)
        if entry is not None and entry.problem is None and (said := says(entry, properties, flow)) is not None:
            findings.warn(entry, said)
    for name, (kinds, said) in INTERVALS.items():
        entry = properties.mm2_entry(name, flow)
        if entry is not None and any(_is_on(properties, flow, kind) for kind in kinds):
            findings.warn(entry, said)


def _is_on(properties: Properties, flow: Flow, kind: Kind) -> bool:
    return any(properties.get(keys.TABLE[switch.name], flow) for switch in kind.row.enabled_by)


def _forwarding_admin(entry: PropertyLine, properties: Properties, flow: Flow) -> str | None:
    if entry.value == KAFKAS_ADMIN:
        return None
    return (
        "holds for MM2 only: Lockstep creates and alters topics, configs and ACLs itself, past that class; give its "
        "principal the rights that `lockstep rights` prints, or switch off lockstep.refresh.topics.enabled, "
        "lockstep.sync.topic.configs.enabled and lockstep.sync.topic.acls.enabled"
    )


def _transforms(entry: PropertyLine, properties: Properties, flow: Flow) -> str | None:
    if not entry.value:
        return None
    return (
        "MM2 may rename topics, change records or drop them with these: Lockstep expects remote topics under the "
        "names of the replication policy, and finds records on the target by timestamp, key and value. Where a "
        f"transformation changes those, write {keys.OFFSET_TRANSLATION.name}=conservative; one that renames topics "
        "belongs into a replication policy"
    )


def _no_offset_syncs(entry: PropertyLine, properties: Properties, flow: Flow) -> str | None:
    if not _is_false(entry):
        return None
    return (
        f"without offset-syncs Lockstep cannot translate offsets of {flow.name}, neither for groups that it syncs nor "
        f"for `lockstep offsets`; write {EMIT_OFFSET_SYNCS}=true where consumers are to fail over"
    )


def _no_heartbeats(entry: PropertyLine, properties: Properties, flow: Flow) -> str | None:
    """MM2 emits heartbeats of a->b on b, and copies those that any flow into a emits there."""
    into_source = [Flow(alias, flow.source) for alias in properties.aliases if alias != flow.source]
    copied = properties.mm2_get(keys.HEARTBEATS_REPLICATION, flow) and any(
        (other := properties.mm2_entry(EMIT_HEARTBEATS, one)) is None or not _is_false(other) for one in into_source
    )
    if not _is_false(entry) or copied:
        return None
    return (
        f"no heartbeat of MM2's reaches {flow.target}: the state of {flow.name} will be NO_HEARTBEAT, whether MM2 runs "
        f"or not; write {EMIT_HEARTBEATS}=true for {flow.name}, or for a flow into {flow.source}"
    )


def _is_false(entry: PropertyLine) -> bool:
    return entry.value.lower() == "false"


LINE_RULES: Mapping[str, Callable[[PropertyLine, Properties, Flow], str | None]] = {
    FORWARDING_ADMIN: _forwarding_admin,
    TRANSFORMS: _transforms,
    EMIT_OFFSET_SYNCS: _no_offset_syncs,
    EMIT_HEARTBEATS: _no_heartbeats,
}
"""By the key: what is to be said of a line; None where nothing is."""


def check_old_names(properties: Properties, findings: Findings) -> None:
    """Warns of each with its new name."""
    for entry in properties.by_key.values():
        for old in (part.strip() for part in entry.value.split(",")):
            if old in OLD_NAMES:
                findings.warn(entry, f"{old} is now called {OLD_NAMES[old]}; the old name goes with the next version")
