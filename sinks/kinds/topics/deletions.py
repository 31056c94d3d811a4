"""Which topics of ours the source lacks, and what both clusters say of them by name. Data is gone with a topic.

- `lockstep.sync.topic.deletes.enabled` asks for it;
- Lockstep created the topic, and it is still the same one, by its id;
- its name says that it is a copy of the source's topic, so that no other source feeds it;
- a broker of the source, asked for it by name, says UNKNOWN_TOPIC_OR_PARTITION.

What else must be true: `sinks.engine.deletions`.
"""

from __future__ import annotations

from collections.abc import Collection

from sinks.engine.model import Key, Kind
from sinks.flow_settings import FlowSettings
from sinks.kafka.ports.cluster import Reader
from sinks.kinds.controller import PassContext, Sighting
from streaming.mm2.replication_policy import is_written_by_mm2_alone


def surplus_topics(settings: FlowSettings, context: PassContext) -> set[str]:
    """Names on the target of those of ours that the source's listing lacks, whether they are replicated or not."""
    if not settings.topic_deletes:
        return set()
    listed, policy, alias = context.listed, settings.policy, settings.flow.source
    found: set[str] = set()
    for name, known in context.ledger.owned_ids(Kind.TOPIC).items():
        upstream = policy.upstream_topic(name)
        if upstream is None or not known or name not in listed.target or name in listed.desired.upstream:
            continue
        if is_written_by_mm2_alone(policy, alias, upstream):
            found.add(name)
    return found


def look_up_topics(
    settings: FlowSettings, source: Reader, target: Reader, context: PassContext, keys: Collection[Key]
) -> dict[Key, Sighting]:
    """Those that are gone on the source, and still the same on the target. Raises ClusterUnreachable, RightsMissing."""
    upstream = {topic: name for (name,) in keys if (topic := settings.policy.upstream_topic(name)) is not None}
    gone = {upstream[topic] for topic in source.confirmed_absent(upstream.keys())}
    known, ids = context.ledger.owned_ids(Kind.TOPIC), target.topic_ids(gone) if gone else {}
    return {(name,): Sighting.GONE for name in gone if known.get(name) and ids.get(name) == known[name]}
