"""Which remote topics that MM2 made may become Lockstep's own. Pure, but for asking the topics' ids.

One that is adopted may be deleted with its records, so nothing less than all of this must hold:

- the source's topic is replicated, and the copy has as many partitions;
- the copy's name says that only MM2 writes it: never under the identity policy;
- it is none of MM2's own topics, nor one of Lockstep's;
- the target tells its id, by which it is known from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sinks.every_kind.listing import Listed
from sinks.flow_settings import FlowSettings
from sinks.kinds.topics.rules import OWN
from sinks.ledger.adoption import Alike
from sinks.model.changes import Key
from streaming.mm2.replication_policy import is_written_by_mm2_alone

OTHERS_WRITE = "its name does not say that only MM2 writes it: another source, or a program, may feed the same topic"
INTERNAL = "is a topic of MM2's own"
NO_ID = "the target tells no id of it, by which it would be known again"


def adoptable_topics(
    settings: FlowSettings, listed: Listed, ids_of: Callable[[Collection[str]], Mapping[str, str]]
) -> Alike:
    """`ids_of`: of topics on the target, by name. Raises what that raises."""
    same = {
        topic: name
        for topic, name in listed.desired.remote.items()
        if listed.source.get(topic) and listed.target.get(name) == listed.source[topic] and not name.startswith(OWN)
    }
    refused: dict[Key, str] = {}
    for topic, name in same.items():
        if reason := _why_not(settings, topic):
            refused[name,] = reason
    names = [name for name in same.values() if (name,) not in refused]
    ids = ids_of(names) if names else {}
    refused |= {(name,): NO_ID for name in names if not ids.get(name)}
    return Alike({(name,): ids[name] for name in names if ids.get(name)}, refused)


def _why_not(settings: FlowSettings, topic: str) -> str | None:
    policy = settings.policy
    if policy.is_heartbeats_topic(topic) or policy.is_internal_topic(topic):
        return INTERNAL
    return None if is_written_by_mm2_alone(policy, settings.flow.source, topic) else OTHERS_WRITE
