"""What of the topics that are to be compared can be compared now. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sinks.engine.model import Key, Kind
from sinks.kinds.listing import Listed


def lacking(listed: Listed, awaited: Collection[Key]) -> set[str]:
    """Remote topics that are not there, or with too few partitions, and that nobody waits for to be shown."""
    wanted, there = listed.desired.partitions.items(), listed.target
    return {name for name, count in wanted if there.get(name, 0) < count and (name,) not in awaited}


def upstream_of(remote: Mapping[str, str], names: Collection[str]) -> set[str]:
    """The upstream topics of these remote ones, of which most passes have none. `remote`: by upstream topic."""
    return {topic for topic, name in remote.items() if name in names} if names else set()


def can_be_compared(dirty: Collection[str], listed: Listed, lacks: Collection[str], active: Collection[Kind]) -> bool:
    """Whether a pass could do something about one of these upstream topics. `lacks`: remote topics that lack something;
    `active`: kinds that are synced, and neither paused nor at rest."""
    if {Kind.TOPIC, Kind.TOPIC_CONFIG} <= {*active}:
        return bool(dirty)
    if Kind.TOPIC_CONFIG in active:
        ready: Collection[str] = listed.target
    else:
        ready = lacks if Kind.TOPIC in active else ()
    return any(listed.desired.remote.get(topic) in ready for topic in dirty)
