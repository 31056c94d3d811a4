"""Which topics of ours the source lacks, and what both clusters say of them by name. Data is gone with a topic.

- `lockstep.sync.topic.deletes.enabled` asks for it;
- Lockstep created the topic, and it is still the same one, by its id;
- its name says that it is a copy of the source's topic, so that no other source feeds it;
- a broker of the source, asked for it by name, says UNKNOWN_TOPIC_OR_PARTITION. It is asked for every name that
  another separator would read from the copy's: the separator may be another one than when the copy was made.

What else must be true: `sinks.engine.admission`.
"""

from __future__ import annotations

from collections.abc import Collection

from sinks.every_kind.controller import PassContext, Sighting
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Reader
from sinks.model.changes import Key, Kind
from streaming.mm2.replication_policy import is_written_by_mm2_alone


def surplus_topics(settings: FlowSettings, context: PassContext) -> dict[str, str]:
    """Lockstep's own topics that the source's listing lacks, replicated or not: names on the target, ids."""
    if not settings.topic_deletes:
        return {}
    listed, policy, alias = context.listed, settings.policy, settings.flow.source
    found: dict[str, str] = {}
    for name, known in context.ledger.owned_ids(Kind.TOPIC).items():
        upstream = policy.upstream_topic(name)
        if upstream is None or not known or name not in listed.target or name in listed.desired.upstream:
            continue
        if policy.format_remote_topic(alias, upstream) != name or not is_written_by_mm2_alone(policy, alias, upstream):
            continue
        # A policy before this one may have kept names as they are.
        if listed.source.keys().isdisjoint({name, *_upstream_by_any_separator(alias, name)}):
            found[name] = known
    return found


SEPARATING = "._-"
"""What may separate an alias from a topic's name, one of them or several."""


def _upstream_by_any_separator(alias: str, name: str) -> set[str]:
    """What a copy of this name may be called on the source, whichever separator it was named with."""
    if not name.startswith(alias):
        return set()
    rest = name.removeprefix(alias)
    separators = len(rest) - len(rest.lstrip(SEPARATING))
    # Without a separator at all only where the name has none: a right on `x` covers no question for `.x`.
    return {rest[at:] for at in range(min(1, separators), separators + 1)} - {"", ".", ".."}


def second_look_at_topics(
    settings: FlowSettings, source: Reader, target: Reader, context: PassContext, keys: Collection[Key]
) -> dict[Key, Sighting]:
    """Those that are gone on the source, and still the same on the target. Raises ClusterUnreachable, RightsMissing."""
    policy, alias = settings.policy, settings.flow.source
    asked = {
        name: {topic, *_upstream_by_any_separator(alias, name)}
        for (name,) in keys
        if (topic := policy.upstream_topic(name)) is not None
    }
    absent = source.confirmed_absent({topic for topics in asked.values() for topic in topics})
    gone = {name for name, topics in asked.items() if topics <= absent}
    known, ids = context.ledger.owned_ids(Kind.TOPIC), target.topic_ids(gone) if gone else {}
    return {(name,): Sighting.GONE for name in gone if known.get(name) and ids.get(name) == known[name]}
